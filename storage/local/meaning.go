package local

import (
	lru "github.com/hashicorp/golang-lru/v2"

	"sluice.dev/sluice/storage"
)

// maxMeanings bounds the memory of the meanings to some tens of megabytes. A forgotten record is merely read again.
const maxMeanings = 1 << 16

// meanings remembers what the published names of objects mean, for as long as the file of the object's record is the
// same. Readers of all processes ask it.
type meanings struct {
	objects *lru.Cache[storage.Object, meaning]
}

type meaning struct {
	record    identity           // of the file that says so
	artifacts []storage.Artifact // the current one first
}

func newMeanings() meanings {
	objects, _ := lru.New[storage.Object, meaning](maxMeanings) // It fails for a size below one alone.
	return meanings{objects}
}

// meaning lists the artifacts that the object's record names, the current one first, without what only status shows.
func (s *Store) meaning(object storage.Object) ([]storage.Artifact, error) {
	id, err := s.disk.identify(recordPath(object))
	if known, ok := s.meanings.objects.Get(object); ok && err == nil && known.record == id {
		return known.artifacts, nil
	}
	record, id, err := s.read(object)
	if err != nil {
		return nil, err
	}
	all := artifacts(record)
	for i := range all {
		all[i].Revision, all[i].Metadata = "", nil
	}
	s.meanings.objects.Add(object, meaning{record: id, artifacts: all})
	return all, nil
}
