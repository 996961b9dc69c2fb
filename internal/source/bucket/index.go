package bucket

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
)

const (
	// indexPrefix is what the files of indexes are called.
	indexPrefix = "bucket-index-"
	// maxIndexes is how many are kept: all are looked at whenever one is written.
	maxIndexes = 4096
	// indexCost is what a byte of an index takes in memory, as a text and as what it says, for objects and for the archive.
	indexCost = 4
)

// entry is an object in an artifact.
type entry struct {
	Key, Content string
	Size         int64
	Sum          [sha256.Size]byte
}

// index is what an artifact is made of.
type index struct {
	Objects []entry
	Archive []byte // the index of package archive
}

// parts keeps the index of each artifact beside what it was made of. It implements source.Parts. An index that is lost, or
// that somebody else wrote, costs a fetch of all objects.
type parts struct {
	dir      string
	max      int64
	identity string
	files    []file // what the artifact is made of that is going to be saved
}

func (p parts) path(archive digest.Digest) string {
	name := sha256.Sum256(fmt.Appendf(nil, "%q", []string{p.identity, archive.String()}))
	return filepath.Join(p.dir, fmt.Sprintf("%s%x", indexPrefix, name))
}

// Load implements source.Parts.
func (p parts) Load(archive digest.Digest) []byte { return p.read(archive).Archive }

// size is that of the index; zero where there is none.
func (p parts) size(archive digest.Digest) int64 {
	if info, err := os.Stat(p.path(archive)); p.dir != "" && err == nil {
		return info.Size()
	}
	return 0
}

// read gives an empty index where there is none that is whole.
func (p parts) read(archive digest.Digest) (found index) {
	if p.dir == "" {
		return found
	}
	text, err := os.ReadFile(p.path(archive))
	if err != nil || len(text) < crc32.Size ||
		binary.BigEndian.Uint32(text) != crc32.ChecksumIEEE(text[crc32.Size:]) ||
		gob.NewDecoder(bytes.NewReader(text[crc32.Size:])).Decode(&found) != nil {
		return index{}
	}
	return found
}

// Save implements source.Parts. What cannot be kept is made anew.
func (p parts) Save(archive digest.Digest, ofArchive []byte) {
	if p.dir == "" {
		return
	}
	all := index{Archive: ofArchive, Objects: make([]entry, 0, len(p.files))}
	for _, f := range p.files {
		e := entry{Key: f.object.Key, Content: f.object.Content(), Size: f.object.Size}
		if _, err := hex.Decode(e.Sum[:], []byte(f.digest.Encoded())); err != nil {
			return
		}
		all.Objects = append(all.Objects, e)
	}
	to := bytes.NewBuffer(make([]byte, crc32.Size))
	if gob.NewEncoder(to).Encode(all) != nil {
		return
	}
	binary.BigEndian.PutUint32(to.Bytes(), crc32.ChecksumIEEE(to.Bytes()[crc32.Size:]))
	if err := replace(p.path(archive), to.Bytes()); err == nil {
		p.prune()
	}
}

// replace makes a file appear as a whole.
func replace(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	aside, err := os.CreateTemp(filepath.Dir(path), indexPrefix+"new-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(aside, bytes.NewReader(content))
	if err = errors.Join(err, aside.Close()); err == nil {
		err = os.Rename(aside.Name(), path)
	}
	if err != nil {
		_ = os.Remove(aside.Name()) // It is pruned later otherwise.
	}
	return err
}

// prune removes the oldest indexes of too many.
func (p parts) prune() {
	found, _ := os.ReadDir(p.dir) // What is not found takes room until the next time.
	var all []os.FileInfo
	var size int64
	for _, e := range found {
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), indexPrefix) {
			all, size = append(all, info), size+info.Size()
		}
	}
	slices.SortFunc(all, func(a, b os.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for i, oldest := range all {
		if size <= p.max && len(all)-i <= maxIndexes {
			break
		}
		if os.Remove(filepath.Join(p.dir, oldest.Name())) == nil {
			size -= oldest.Size()
		}
	}
}
