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

// condemn removes the damaged blob if it still is that very file, or without a file if it cannot be opened. What other
// objects name it find it missing. A process that does not write only remembers the damage, and so does not serve it either.
func (s *Store) condemn(file *os.File, artifact storage.Artifact) error {
	if !s.isWriter() {
		return nil
	}
	defer s.digests.lock(artifact.Digest)()
	blob := blobPath(artifact.Digest)
	isBad, err := s.isStill(file, blob)
	if err != nil || !isBad {
		return err
	}
	if err := s.removeBlob(artifact.Digest); err != nil {
		return err
	}
	return s.disk.syncDir(path.Dir(blob))
}

func (s *Store) isStill(bad *os.File, name string) (bool, error) {
	if bad == nil {
		file, _, err := s.disk.open(name)
		if err == nil {
			_ = file.Close() // It was only opened.
		}
		return unreadable(err), nil
	}
	opened, err := bad.Stat()
	if err != nil {
		return false, err
	}
	named, err := s.disk.root.Lstat(name)
	return err == nil && os.SameFile(named, opened), nil
}
