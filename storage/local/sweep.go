package local

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"sluice.dev/sluice/storage"
)

// SweepOrphans removes the objects that alive does not know, by name and UID, and returns them. An object whose
// current artifact was stored less than grace ago stays: the caller's view of the world may be older than that.
// It also removes what crashes left behind: unfinished files, bodies that no record names, bodies that have been
// staged for more than an hour; and it closes those that others have removed. What goes wrong with one object does not keep
// it from the others. Alive is called without locks.
func (s *Store) SweepOrphans(ctx context.Context, alive func(object storage.Object, uid string) bool, grace time.Duration) ([]storage.Object, error) {
	if err := s.beginWriting(ctx); err != nil {
		return nil, err
	}
	var failed failures
	objects, err := s.folders(ctx)
	failed.add(err)
	var removed []storage.Object
	for _, object := range s.names.and(objects) {
		if err := ctx.Err(); err != nil {
			return removed, fmt.Errorf("sweep: %w", errors.Join(failed.join(), err))
		}
		gone, err := s.sweepObject(object, alive, grace)
		if err != nil {
			failed.add(fmt.Errorf("%s: %w", object, err))
			continue
		}
		if gone {
			removed = append(removed, object)
		}
	}
	s.staged.expire(s.options.Now())
	failed.add(s.disk.sweepTmp())
	failed.add(s.sweepBlobs())
	s.closeLost()
	if err := failed.join(); err != nil {
		return removed, fmt.Errorf("sweep: %w", err)
	}
	return removed, nil
}

func (s *Store) sweepObject(object storage.Object, alive func(storage.Object, string) bool, grace time.Duration) (gone bool, err error) {
	seen, err := s.load(object)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return false, err
	}
	orphan := err == nil && s.options.Now().Sub(seen.Current.StoredAt) >= grace && !alive(object, seen.UID)

	defer s.objects.lock(object)()
	// Someone may have published while alive was asked.
	record, err := s.load(object)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		// Without a record nothing of the object is served; it is made again when it is asked for.
		return false, s.remove(object)
	case err != nil:
		return false, err
	case orphan && record.UID == seen.UID && record.Current.StoredAt.Equal(seen.Current.StoredAt):
		return true, s.remove(object)
	default:
		s.names.set(object, digests(record))
		return false, s.dropPublic(object)
	}
}

// dropPublic removes the files that an earlier version linked under their public paths: nobody opens them, and they keep
// their bytes on the disk. Only of an object with a record they are known to be the storage's own.
func (s *Store) dropPublic(object storage.Object) error {
	dir := object.Dir()
	if err := s.disk.removeTree(dir); err != nil {
		return err
	}
	return s.disk.prune(path.Dir(dir), ".")
}
