package local

import (
	"context"
	"errors"
	"fmt"

	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/retention"
)

// Publish implements storage.Writer. When it fails, the object's record and files are as they were; the body stays
// staged, for another try or for Discard.
func (s *Store) Publish(
	ctx context.Context, object storage.Object, staged storage.Staged, record storage.Record,
) (published storage.Record, err error) {
	defer during(&err, "publish %s for %s", staged.Digest, object)
	d := staged.Digest
	record.Current.Digest, record.Current.Size, record.Current.Companion = d, staged.Size, staged.Companion
	if err := errors.Join(object.CheckPath(record.Current.Path), d.Validate(), validCompanion(staged.Companion), ctx.Err()); err != nil {
		return storage.Record{}, err
	}
	if err := s.beginWriting(ctx); err != nil {
		return storage.Record{}, err
	}
	defer s.objects.lock(object)()
	previous, err := s.load(object)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return storage.Record{}, err
	}
	record, err = retention.Supersede(previous, record, s.options.Now())
	if err != nil {
		return storage.Record{}, err
	}
	// The caller's claim may have been dropped by an earlier publication, or for its age.
	if err := s.keep(record.Current); err != nil {
		return storage.Record{}, fmt.Errorf("staged body: %w", err)
	}
	defer s.staged.drop(d)
	if record.Current.Companion != (storage.Companion{}) {
		if err := s.keep(companionOf(record.Current.Companion)); err != nil {
			return storage.Record{}, fmt.Errorf("staged companion: %w", err)
		}
		defer s.staged.drop(record.Current.Companion.Digest)
	}
	if err := s.save(object, record); err != nil {
		return storage.Record{}, errors.Join(err, s.dropFolder(object))
	}
	for _, d := range bodies(d, staged.Companion) {
		s.staged.drop(d)
	}
	return record, nil
}
