package local

import (
	"maps"
	"slices"

	"sluice.dev/sluice/storage"
)

// maxKept is how long the text of a record may be that is kept as a whole.
const maxKept = 4 << 10

// meaning is what the published names of an object mean, for as long as the file of the object's record is the same.
// Readers of all processes ask it.
type meaning struct {
	file      identity           // that says so
	record    *storage.Record    // may be nil
	artifacts []storage.Artifact // the current one first, without what only status shows
}

// known is the object's meaning, if it is known of the file that its record is in now.
func (s *Store) known(object storage.Object) (meaning, bool) {
	path := recordPath(object)
	known, ok := s.meanings.get(path)
	if !ok {
		return known, false
	}
	id, err := s.disk.identify(path)
	return known, err == nil && known.file == id
}

// meaning lists the artifacts that the object's record names, the current one first, without what only status shows.
func (s *Store) meaning(object storage.Object) ([]storage.Artifact, error) {
	if known, ok := s.known(object); ok {
		return known.artifacts, nil
	}
	record, err := s.read(object)
	return strip(record), err
}

// load gives the object's record. One that cannot be understood counts as none: storage.ErrNotFound.
func (s *Store) load(object storage.Object) (storage.Record, error) {
	if known, ok := s.known(object); ok && known.record != nil {
		return clone(*known.record), nil
	}
	return s.read(object)
}

// remember keeps what was read of the file.
func (s *Store) remember(object storage.Object, file identity, record storage.Record, length int) {
	known := meaning{file: file, artifacts: strip(record)}
	if length <= maxKept {
		kept := clone(record)
		known.record = &kept
	}
	s.meanings.add(recordPath(object), known)
}

// strip lists what the record names, the current artifact first, without what only status shows.
func strip(record storage.Record) []storage.Artifact {
	all := artifacts(record)
	for i := range all {
		all[i].Revision, all[i].Metadata = "", nil
	}
	return all
}

// clone is a record that others may change.
func clone(record storage.Record) storage.Record {
	record.Superseded = slices.Clone(record.Superseded)
	record.Current.Metadata = maps.Clone(record.Current.Metadata)
	for i := range record.Superseded {
		record.Superseded[i].Metadata = maps.Clone(record.Superseded[i].Metadata)
	}
	return record
}
