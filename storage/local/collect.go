package local

import (
	"context"
	"errors"
	"path"
	"syscall"

	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/retention"
)

// Collect implements storage.Writer. It makes room on a full disk.
func (s *Store) Collect(ctx context.Context, object storage.Object, named string) (removed []storage.Artifact, err error) {
	defer during(&err, "collect %s", object)
	if err := errors.Join(object.Validate(), ctx.Err()); err != nil {
		return nil, err
	}
	if err := s.beginWriting(ctx); err != nil {
		return nil, err
	}
	defer s.objects.lock(object)()
	record, err := s.load(object)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	now := s.options.Now()
	renamed, begun := retention.Renamed(record, named, now)
	garbage := retention.Garbage(renamed, named, s.options.Retention, now)
	if !begun && len(garbage) == 0 {
		return nil, nil
	}
	// The record goes first, so that it does not name what is being removed.
	err = s.save(object, retention.Without(renamed, garbage))
	if err != nil && !isFull(err) {
		return nil, err
	}
	if err != nil {
		// A time that cannot be kept would begin for ever. It counts from when the current body was stored.
		renamed, _ = retention.Renamed(record, named, record.Current.StoredAt)
		garbage = retention.Garbage(renamed, named, s.options.Retention, now)
	}
	record = retention.Without(renamed, garbage)
	s.names.set(object, digests(record))
	for _, old := range garbage {
		for _, d := range bodies(old.Digest, old.Companion) {
			if err := s.reap(d); err != nil {
				return removed, err
			}
		}
		removed = append(removed, old.Artifact)
	}
	if err != nil {
		// There was no room for it. Until now it has named old bodies that are gone, which Open takes for missing.
		err = s.save(object, record)
	}
	return removed, err
}

// isFull tells whether the disk, or our share of it, has no room for a new file.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Delete implements storage.Writer. The record goes first, so that nothing is served that is half gone.
func (s *Store) Delete(ctx context.Context, object storage.Object) (err error) {
	defer during(&err, "delete %s", object)
	if err := errors.Join(object.Validate(), ctx.Err()); err != nil {
		return err
	}
	if err := s.beginWriting(ctx); err != nil {
		return err
	}
	defer s.objects.lock(object)()
	return s.remove(object)
}

// remove removes the object's record, and the bodies that nobody else names. The object's lock is held.
func (s *Store) remove(object storage.Object) error {
	dir := path.Dir(recordPath(object))
	entries, err := s.disk.list(dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		if err := s.disk.removeTree(recordPath(object)); err != nil {
			return err
		}
		s.meanings.remove(recordPath(object))
		if err := s.disk.syncDir(dir); err != nil {
			return err
		}
		if err := s.dropPublic(object); err != nil {
			return err
		}
	}
	for _, d := range s.names.set(object, nil) {
		if err := s.reap(d); err != nil {
			return err
		}
	}
	return s.dropFolder(object)
}

// dropFolder removes the folder of the object's record, and those above it, as far as they are empty.
func (s *Store) dropFolder(object storage.Object) error {
	s.tree.Lock()
	defer s.tree.Unlock()
	return s.disk.prune(path.Dir(recordPath(object)), recordsDir)
}
