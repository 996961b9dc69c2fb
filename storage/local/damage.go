package local

import (
	"errors"
	"os"
	"path"

	"sluice.dev/sluice/storage"
)

// reportDamage takes a damaged file out of service and tells OnDamage. It closes the file and returns
// storage.ErrDamaged, joined with what went wrong on the way.
func (s *Store) reportDamage(object storage.Object, file *os.File, artifact storage.Artifact) error {
	unlock := s.objects.lock(object)
	err := errors.Join(storage.ErrDamaged, s.condemn(file, artifact), file.Close())
	unlock()
	s.options.OnDamage(object, storage.PathError(artifact.Path, err))
	return err
}

// condemn removes the damaged file's names: the published path and the blob, each only if it still is that very file.
// The object's lock is held. Links of other objects to the same file are found and removed when they are looked at.
// A process that does not write only remembers the damage, and so does not serve it either.
func (s *Store) condemn(file *os.File, artifact storage.Artifact) error {
	if !s.isWriter() {
		return nil
	}
	bad, err := file.Stat()
	if err != nil {
		return err
	}
	defer s.digests.lock(artifact.Digest)()
	for _, name := range []string{artifact.Path, blobPath(artifact.Digest)} {
		info, err := s.disk.root.Lstat(name)
		if err != nil || !os.SameFile(info, bad) {
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
