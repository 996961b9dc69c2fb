package extension

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
)

// kept is what is known of a module in the store. It stands in a line before the module's bytes.
type kept struct {
	// Module is the digest of its bytes, and Size their number.
	Module string `json:"module"`
	Size   int64  `json:"size"`
	// Image and Signer are for people who look into the folder.
	Image  string `json:"image"`
	Signer string `json:"signer"`
}

// store keeps modules that were proved, in a folder that is this process's alone. It may be lost at any time, which costs a fetch.
type store struct {
	dir string

	mu   sync.Mutex
	busy map[string]chan struct{} // is closed when who works on the module has ended
	root *os.Root                 // nil before it is used
}

// maxStored bounds all modules together, in bytes.
const maxStored = 256 << 20

func newStore(dir string) *store { return &store{dir: dir, busy: map[string]chan struct{}{}} }

// begin waits until nobody else works on the module.
func (s *store) begin(ctx context.Context, name string) (done func(), err error) {
	for {
		s.mu.Lock()
		other := s.busy[name]
		if other == nil {
			mine := make(chan struct{})
			s.busy[name] = mine
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				delete(s.busy, name)
				close(mine)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (s *store) open() (*os.Root, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root != nil {
		return s.root, nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	s.root, err = os.OpenRoot(s.dir)
	return s.root, err
}

// aside is behind the name of a file that is being written.
const aside = ".new"

// maxLine bounds what stands before a module.
const maxLine = 8 << 10

// find is what is known of a module that is there.
func (s *store) find(name string) (kept, error) {
	file, found, _, err := s.enter(name)
	if err != nil {
		return kept{}, err
	}
	return found, file.Close()
}

// enter opens a module's file, and reads its first line.
func (s *store) enter(name string) (_ *os.File, found kept, content io.Reader, err error) {
	root, err := s.open()
	if err != nil {
		return nil, kept{}, nil, err
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, kept{}, nil, err
	}
	reader := bufio.NewReaderSize(file, maxLine)
	line, err := reader.ReadSlice('\n')
	if err == nil {
		err = json.Unmarshal(line, &found)
	}
	if info, statErr := file.Stat(); err == nil && (statErr != nil || info.Size() != int64(len(line))+found.Size) {
		err = errors.New("it is not as long as it was")
	}
	if err != nil {
		return nil, kept{}, nil, errors.Join(err, file.Close())
	}
	return file, found, reader, nil
}

// read is the module itself. One that is damaged is removed, so that it is fetched anew.
func (s *store) read(name string) ([]byte, error) {
	file, found, reader, err := s.enter(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // It was only read.
	content := bytes.NewBuffer(make([]byte, 0, found.Size+bytes.MinRead))
	if _, err := content.ReadFrom(io.LimitReader(reader, found.Size+1)); err != nil {
		return nil, err
	}
	if of := digest.Digest(found.Module); of.Validate() != nil || of.Algorithm().FromBytes(content.Bytes()) != of {
		return nil, errors.Join(fmt.Errorf("%s is damaged", found.Module), s.root.Remove(name))
	}
	return content.Bytes(), nil
}

// put keeps a module: wholly or not at all.
func (s *store) put(name string, of kept, content io.Reader) error {
	root, err := s.open()
	if err != nil {
		return err
	}
	if err := s.makeRoom(root, of.Size); err != nil {
		return err
	}
	file, err := root.Create(name + aside)
	if err != nil {
		return err
	}
	line, err := json.Marshal(of)
	if err == nil {
		_, err = file.Write(append(line, '\n'))
	}
	if err == nil {
		_, err = io.Copy(file, content)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, root.Remove(name+aside))
	}
	return root.Rename(name+aside, name)
}

// makeRoom removes what was kept first, and what a process left that was killed.
func (s *store) makeRoom(root *os.Root, bytes int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	infos := make([]fs.FileInfo, 0, len(entries))
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && s.busy[strings.TrimSuffix(entry.Name(), aside)] == nil {
			infos = append(infos, info)
			bytes += info.Size()
		}
	}
	slices.SortFunc(infos, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, info := range infos {
		if bytes <= maxStored {
			return nil
		}
		if err := root.Remove(info.Name()); err != nil {
			return err
		}
		bytes -= info.Size()
	}
	return nil
}
