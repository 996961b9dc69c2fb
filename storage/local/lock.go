package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/storage"
)

// writerLock is this process's right to write. The kernel drops it when the process ends in any way.
type writerLock struct {
	mu   sync.Mutex
	file *os.File
	// held is whether there is a file, for who must not wait for mu.
	held atomic.Bool
}

// beginWriting takes the lock unless this store has it already, and puts the storage's own folders in order. What
// somebody has removed under a running process is made again. storage.ErrInUse when another process has the lock.
// No object's lock is held.
func (s *Store) beginWriting(ctx context.Context) error {
	s.lock.mu.Lock()
	defer s.lock.mu.Unlock()
	if s.lock.file != nil {
		inPlace, err := s.lockInPlace()
		if err != nil {
			return fmt.Errorf("lock storage: %w", err)
		}
		if inPlace {
			return s.prepare()
		}
		// A lock on a file that has lost its name keeps nobody out.
		if err := s.lock.drop(); err != nil {
			return fmt.Errorf("lock storage: %w", err)
		}
	}
	file, err := s.flock()
	if err != nil {
		return fmt.Errorf("lock storage: %w", err)
	}
	// Whatever lies in tmp was left by a process that is gone.
	err = s.prepare()
	if err == nil {
		err = errors.Join(s.disk.sweepTmp(), s.countAll(ctx))
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	s.lock.file = file
	s.lock.held.Store(true)
	return nil
}

// countAll learns what all records name, of which others may have written some. A folder that the disk does not give back
// has none, as with such a file: it keeps nobody else from writing.
func (s *Store) countAll(ctx context.Context) error {
	objects, err := s.folders(ctx)
	if err != nil && (ctx.Err() != nil || !unreadable(err)) {
		return err
	}
	for _, object := range s.names.and(objects) {
		unlock := s.objects.lock(object)
		err := s.count(object)
		unlock()
		if err != nil {
			return fmt.Errorf("record of %s: %w", object, err)
		}
	}
	return nil
}

func (s *Store) flock() (*os.File, error) {
	if err := s.disk.mkdirAll(ownDir); err != nil {
		return nil, err
	}
	file, err := s.disk.root.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = storage.ErrInUse
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// lockInPlace tells whether the lock's name still leads to the file that is locked.
func (s *Store) lockInPlace() (bool, error) {
	held, err := s.lock.file.Stat()
	if err != nil {
		return false, err
	}
	named, err := s.disk.root.Lstat(lockFile)
	if err != nil {
		if errors.Is(missing(err), fs.ErrNotExist) {
			return false, nil
		}
		return false, err
	}
	return os.SameFile(held, named), nil
}

// prepare makes those of the storage's own folders that are not there, or not any more.
func (s *Store) prepare() error {
	for _, dir := range []string{tmpDir, path.Join(blobsDir, s.options.Algorithm.String()), recordsDir} {
		if _, err := s.disk.root.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			if err := s.disk.mkdirAll(dir); err != nil {
				return fmt.Errorf("prepare storage: %w", err)
			}
		}
	}
	return nil
}

// isWriter tells whether this store has the lock. A mere reader removes nothing.
func (s *Store) isWriter() bool { return s.lock.held.Load() }

func (l *writerLock) release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	return l.drop()
}

// drop is release for who holds mu.
func (l *writerLock) drop() error {
	defer func() { l.file = nil; l.held.Store(false) }()
	// A child that is being started may have the file, too, until it runs its own program.
	return errors.Join(unix.Flock(int(l.file.Fd()), unix.LOCK_UN), l.file.Close())
}
