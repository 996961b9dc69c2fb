package local

import (
	"context"
	"os"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/storage"
)

// maxOpened is how many bodies stay open for who asks for them next.
const maxOpened = 256

// shared is an open body that several read at the same time. The last one closes it.
type shared struct {
	*os.File
	users atomic.Int64
	// lost is whether the disk has failed to give the body back since it was hashed.
	lost atomic.Bool
}

func newOpened() *lru.Cache[digest.Digest, *shared] {
	opened, _ := lru.NewWithEvict(maxOpened, func(_ digest.Digest, file *shared) { _ = file.Close() }) // It was only read.
	return opened
}

// join is false when the file has been closed.
func (f *shared) join() bool {
	users := f.users.Load()
	for users > 0 && !f.users.CompareAndSwap(users, users+1) {
		users = f.users.Load()
	}
	return users > 0
}

// ReadAt implements io.ReaderAt.
func (f *shared) ReadAt(p []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(p, at)
	if unreadable(err) {
		f.lost.Store(true)
	}
	return n, err
}

// Close leaves the file to the others who read it.
func (f *shared) Close() error {
	if f.users.Add(-1) > 0 {
		return nil
	}
	return f.File.Close()
}

// share is openIntact for who reads the body, and leaves it open for the next. As long as it was not opened before, who
// removes the body waits, and then finds it open.
func (s *Store) share(ctx context.Context, artifact storage.Artifact) (*shared, error) {
	if file, ok := s.sharedAlready(artifact); ok {
		return file, nil
	}
	unlock, ok := s.digests.await(ctx.Done(), artifact.Digest)
	if !ok {
		return nil, ctx.Err()
	}
	defer unlock()
	if file, ok := s.sharedAlready(artifact); ok {
		return file, nil
	}
	opened, err := s.openIntact(artifact)
	file := &shared{File: opened}
	if err == nil {
		file.users.Store(2) // The caller, and who comes next.
		s.opened.Add(artifact.Digest, file)
	}
	return file, err
}

// sharedAlready looks at the open file alone: its times tell, too, that it has lost its name.
func (s *Store) sharedAlready(artifact storage.Artifact) (*shared, bool) {
	file, ok := s.opened.Get(artifact.Digest)
	if !ok || !file.join() {
		return nil, false
	}
	id, err := identify(file.File)
	if file.lost.Load() {
		s.verdicts.remember(id, artifact.Digest, unknown)
	}
	if err == nil && s.verdicts.of(id, artifact.Digest) == intact {
		return file, true
	}
	s.opened.Remove(artifact.Digest)
	_ = file.Close() // It was only read.
	return nil, false
}

// closeLost closes the bodies that others have removed, such as an operator who makes room.
func (s *Store) closeLost() {
	for _, d := range s.opened.Keys() {
		if file, ok := s.sharedAlready(storage.Artifact{Digest: d}); ok {
			_ = file.Close() // It was only read.
		}
	}
}

// removeBlob removes the body of that digest. One that stayed open would keep its bytes on the disk.
func (s *Store) removeBlob(d digest.Digest) error {
	err := s.disk.remove(blobPath(d))
	s.opened.Remove(d)
	return err
}
