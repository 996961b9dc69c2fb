package local

import (
	"context"
	"errors"
	"path"
	"syscall"

	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/retention"
)

// Collect implements storage.Writer. It also removes files in the object's folder that a crash left there. It makes room
// on a full disk.
func (s *Store) Collect(ctx context.Context, object storage.Object) (removed []storage.Artifact, err error) {
	defer during(&err, "collect %s", object)
	if err := errors.Join(object.Validate(), ctx.Err()); err != nil {
		return nil, err
	}
	if err := s.beginWriting(); err != nil {
		return nil, err
	}
	defer s.objects.lock(object)()
	record, err := s.load(object)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, s.dropStrays(object)
	}
	if err != nil {
		return nil, err
	}
	garbage := retention.Garbage(record, s.options.Retention, s.options.Now())
	if len(garbage) == 0 {
		return nil, s.dropStrays(object)
	}
	record = retention.Without(record, garbage)
	// The record goes first, so that it does not name what is being removed.
	err = s.save(object, record)
	if err != nil && !isFull(err) {
		return nil, err
	}
	var removeErr error
	if removed, removeErr = s.removeAll(garbage); removeErr != nil {
		return removed, errors.Join(err, removeErr)
	}
	if err != nil {
		// There was no room for it. Until now it has named old bodies that are gone, which Open takes for missing.
		if err := s.save(object, record); err != nil {
			return removed, err
		}
	}
	return removed, s.dropStrays(object)
}

// isFull tells whether the disk, or our share of it, has no room for a new file.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// removeAll removes the files and blobs of superseded artifacts. The object's lock is held.
func (s *Store) removeAll(garbage []storage.Superseded) ([]storage.Artifact, error) {
	var removed []storage.Artifact
	for _, old := range garbage {
		if err := s.unlink(old.Artifact); err != nil {
			return removed, err
		}
		removed = append(removed, old.Artifact)
		if err := s.reap(old.Digest); err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// Delete implements storage.Writer. The record goes first, so that nothing is served that is half gone.
func (s *Store) Delete(ctx context.Context, object storage.Object) (err error) {
	defer during(&err, "delete %s", object)
	if err := errors.Join(object.Validate(), ctx.Err()); err != nil {
		return err
	}
	if err := s.beginWriting(); err != nil {
		return err
	}
	defer s.objects.lock(object)()
	return s.remove(object)
}

// remove removes the object's record, files and blobs. The object's lock is held.
func (s *Store) remove(object storage.Object) error {
	record, err := s.load(object)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	dir := path.Dir(recordPath(object))
	entries, err := s.disk.list(dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		if err := s.disk.removeTree(recordPath(object)); err != nil {
			return err
		}
		if err := s.disk.syncDir(dir); err != nil {
			return err
		}
	}
	if record.Current.Path != "" {
		for _, artifact := range artifacts(record) {
			if err := s.unlink(artifact); err != nil {
				return err
			}
			if err := s.reap(artifact.Digest); err != nil {
				return err
			}
		}
	}
	return s.dropStrays(object)
}

// dropStrays removes every file in the object's folder that its record does not name, and the folders left empty.
// The object's lock is held, so none of them is about to be recorded.
func (s *Store) dropStrays(object storage.Object) error {
	record, err := s.load(object)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	recorded := make(map[string]bool)
	for _, artifact := range artifacts(record) {
		recorded[artifact.Path] = true
	}
	entries, err := s.disk.list(object.Dir())
	if err != nil {
		return err
	}
	removed := false
	for _, entry := range entries {
		name := path.Join(object.Dir(), entry.Name())
		if recorded[name] {
			continue
		}
		if err := s.disk.removeTree(name); err != nil {
			return err
		}
		removed = true
	}
	if removed {
		if err := s.disk.syncDir(object.Dir()); err != nil {
			return err
		}
	}
	if record.Current.Path != "" {
		return nil
	}
	s.tree.Lock()
	defer s.tree.Unlock()
	// The folder of records goes last: without it the rest would be nobody's.
	if err := s.disk.prune(object.Dir(), "."); err != nil {
		return err
	}
	return s.disk.prune(path.Dir(recordPath(object)), recordsDir)
}
