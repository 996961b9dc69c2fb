package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"sluice.dev/sluice/storage"
)

// Scrub hashes every recorded artifact again, whatever is remembered about its file: a disk may rot without a trace.
// It returns how many it read, and the objects, in lexical order, that have lost one. What is damaged is removed, and
// OnDamage is told, also when an object's current body is missing. It takes as long as reading the whole storage;
// callers run it rarely and in the background. What goes wrong with one object does not keep it from the others.
func (s *Store) Scrub(ctx context.Context) (checked int, damaged []storage.Object, err error) {
	objects, err := s.folders(ctx)
	var failed failures
	failed.add(err)
	for _, object := range objects {
		if err := ctx.Err(); err != nil {
			failed.add(err)
			break
		}
		read, lost, err := s.scrubObject(ctx, object)
		checked += read
		if lost {
			damaged = append(damaged, object)
		}
		if err != nil {
			failed.add(fmt.Errorf("%s: %w", object, err))
		}
	}
	if err := failed.join(); err != nil {
		return checked, damaged, fmt.Errorf("scrub: %w", err)
	}
	return checked, damaged, nil
}

func (s *Store) scrubObject(ctx context.Context, object storage.Object) (checked int, lost bool, err error) {
	record, err := s.load(object)
	if errors.Is(err, storage.ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	var failed failures
	for i, artifact := range artifacts(record) {
		if err := ctx.Err(); err != nil {
			failed.add(err)
			break
		}
		err := s.scrub(object, artifact)
		switch {
		case err == nil:
			checked++
		case errors.Is(err, storage.ErrDamaged):
			checked++
			lost = true
		case errors.Is(err, storage.ErrNotFound):
			lost = lost || i == 0 && s.reportMissing(object, artifact)
		default:
			failed.add(err)
		}
	}
	return checked, lost, failed.join()
}

func (s *Store) scrub(object storage.Object, artifact storage.Artifact) error {
	file, _, err := s.disk.open(blobPath(artifact.Digest))
	if errors.Is(err, fs.ErrNotExist) {
		return storage.ErrNotFound
	}
	if unreadable(err) {
		return s.reportDamage(object, nil, artifact)
	}
	if err != nil {
		return err
	}
	dropCache(file)
	is, _, err := s.judgeAfresh(file, artifact, func(identity) verdict { return unknown })
	if err != nil {
		return errors.Join(err, file.Close())
	}
	if is == damaged {
		return s.reportDamage(object, file, artifact)
	}
	return file.Close()
}

// reportMissing tells OnDamage about a current body that is gone, unless the record has moved on meanwhile.
func (s *Store) reportMissing(object storage.Object, artifact storage.Artifact) bool {
	unlock := s.objects.lock(object)
	record, err := s.load(object)
	unlock()
	if err != nil || record.Current.Path != artifact.Path || record.Current.Digest != artifact.Digest {
		return false
	}
	s.options.OnDamage(object, storage.PathError(artifact.Path, storage.ErrNotFound))
	return true
}
