package retention

import (
	"slices"
	"time"

	"sluice.dev/sluice/storage"
)

// Supersede makes the record that takes the place of previous. The artifact that was current moves to the front of
// Superseded unless next names the same path, and has no time yet; next's own Superseded does not count. A path that previous still
// names keeps its digest: storage.ErrPathTaken otherwise, also when the body behind it has been lost.
// An empty StoredAt is filled in: with the earlier time if the same body is published again, with now if not.
func Supersede(previous, next storage.Record, now time.Time) (storage.Record, error) {
	now = now.UTC().Round(0)
	history := previous.Superseded
	if previous.Current.Path != "" {
		history = slices.Concat([]storage.Superseded{{Artifact: previous.Current}}, history)
	}
	next.Superseded = nil
	for _, old := range history {
		if old.Path != next.Current.Path {
			next.Superseded = append(next.Superseded, old)
			continue
		}
		if old.Digest != next.Current.Digest {
			return storage.Record{}, storage.PathError(old.Path, storage.ErrPathTaken)
		}
	}
	next.Current.StoredAt = storedAt(previous.Current, next.Current, now)
	return next, nil
}

func storedAt(previous, next storage.Artifact, now time.Time) time.Time {
	switch {
	case !next.StoredAt.IsZero():
		return next.StoredAt.UTC().Truncate(time.Second)
	case previous.Path == next.Path && !previous.StoredAt.IsZero():
		return previous.StoredAt
	default:
		return now.Truncate(time.Second)
	}
}

// Renamed begins the time of what status named before it named this path, and tells whether there is any that had none.
func Renamed(record storage.Record, named string, now time.Time) (_ storage.Record, begun bool) {
	record.Superseded = slices.Clone(record.Superseded)
	for i := lastNamed(record, named) + 1; i < len(record.Superseded); i++ {
		if at := &record.Superseded[i].SupersededAt; at.IsZero() {
			*at, begun = now.UTC().Round(0), true
		}
	}
	return record, begun
}

// lastNamed is where the record has the superseded artifact that status names still; -1 when status names the current one,
// or nothing that is stored.
func lastNamed(record storage.Record, named string) int {
	if named == record.Current.Path {
		return -1
	}
	return slices.IndexFunc(record.Superseded, func(old storage.Superseded) bool { return old.Path == named })
}

// Without returns the record without the given superseded artifacts.
func Without(record storage.Record, garbage []storage.Superseded) storage.Record {
	gone := make(map[string]bool, len(garbage))
	for _, old := range garbage {
		gone[old.Path] = true
	}
	var kept []storage.Superseded
	for _, old := range record.Superseded {
		if !gone[old.Path] {
			kept = append(kept, old)
		}
	}
	record.Superseded = kept
	return record
}
