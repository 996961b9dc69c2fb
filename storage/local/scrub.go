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
// callers run it rarely and in the background.
func (s *Store) Scrub(ctx context.Context) (checked int, damaged []storage.Object, err error) {
	objects, err := s.folders(ctx)
	if err != nil {
		return 0, nil, fmt.Errorf("scrub: %w", err)
	}
	for _, object := range objects {
		record, err := s.load(object)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return checked, damaged, fmt.Errorf("scrub %s: %w", object, err)
		}
		lost := false
		for i, artifact := range artifacts(record) {
			if err := ctx.Err(); err != nil {
				return checked, damaged, fmt.Errorf("scrub: %w", err)
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
				return checked, damaged, fmt.Errorf("scrub %s: %w", object, err)
			}
		}
		if lost {
			damaged = append(damaged, object)
		}
	}
	return checked, damaged, nil
}

func (s *Store) scrub(object storage.Object, artifact storage.Artifact) error {
	file, err := s.disk.open(artifact.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return storage.ErrNotFound
	}
	if err != nil {
		return err
	}
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
