package local

import (
	"errors"
	"os"
	"path"

	"sluice.dev/sluice/storage"
)

// reportDamage takes a damaged file out of service and tells OnDamage. It closes the file, which is nil when it cannot
// be opened, and returns storage.ErrDamaged, joined with what went wrong on the way.
func (s *Store) reportDamage(object storage.Object, file *os.File, artifact storage.Artifact) error {
	unlock := s.objects.lock(object)
	err := errors.Join(storage.ErrDamaged, s.condemn(file, artifact))
	unlock()
	if file != nil {
		err = errors.Join(err, file.Close())
	}
	s.options.OnDamage(object, storage.PathError(artifact.Path, err))
	return err
}

// condemn removes the damaged file's names: the published path and the blob, each only if it still is that very file.
// The object's lock is held. Links of other objects to the same file are found and removed when they are looked at.
// Without a file it removes those of the names that cannot be opened.
// A process that does not write only remembers the damage, and so does not serve it either.
func (s *Store) condemn(file *os.File, artifact storage.Artifact) error {
	if !s.isWriter() {
		return nil
	}
	isBad := s.cannotOpen
	if file != nil {
		bad, err := file.Stat()
		if err != nil {
			return err
		}
		isBad = func(name string) bool {
			info, err := s.disk.root.Lstat(name)
			return err == nil && os.SameFile(info, bad)
		}
	}
	defer s.digests.lock(artifact.Digest)()
	for _, name := range []string{artifact.Path, blobPath(artifact.Digest)} {
		if !isBad(name) {
			continue
		}
		if err := s.disk.remove(name); err != nil {
			return err
		}
		if err := s.disk.syncDir(path.Dir(name)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) cannotOpen(name string) bool {
	file, err := s.disk.open(name)
	if err == nil {
		_ = file.Close() // It was only opened.
	}
	return unreadable(err)
}
