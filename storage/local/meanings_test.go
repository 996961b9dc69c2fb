package local

import (
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/storage"
)

// TestMeaningsHaveABound: there may be any number of objects, and what an upstream says of an artifact stands in its record.
// Nothing else runs meanwhile, so that the memory is theirs.
func TestMeaningsHaveABound(t *testing.T) {
	for name, metadata := range map[string]map[string]string{"usual": {"org.example": "value"}, "long": {"org.example": strings.Repeat("x", 3000)}, "many": numbered(500)} {
		m := newMeanings()
		before := heap()
		var last string
		for i := range 15_000 {
			last = fmt.Sprintf("source/namespace/object-%d/record.json", i)
			m.add(last, remembered(i, metadata))
		}
		if used := heap() - before; used > maxMeaningBytes || m.bytes > maxMeaningBytes {
			t.Errorf("%s: %d meanings take %d bytes, counted as %d", name, m.len(), used, m.bytes)
		}
		if _, ok := m.get(last); !ok || m.len() < maxMeaningBytes/(200<<10) {
			t.Errorf("%s: %d meanings are kept, the last one: %t", name, m.len(), ok)
		}
		for m.len() > 0 {
			m.kept.RemoveOldest()
		}
		if m.bytes != 0 {
			t.Errorf("%s: no meaning is left, and takes %d bytes", name, m.bytes)
		}
	}
}

func heap() int {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

func numbered(entries int) map[string]string {
	all := map[string]string{}
	for i := range entries {
		all[fmt.Sprint(i)] = ""
	}
	return all
}

// remembered is a meaning that shares no memory with others.
func remembered(i int, metadata map[string]string) meaning {
	record := storage.Record{
		UID: fmt.Sprintf("uid-%030d", i), ConfigChecksum: fmt.Sprintf("sha256:%064d", i), BaseChecksum: fmt.Sprintf("sha256:%064d", i),
		Title: fmt.Sprintf("title %d", i),
		Current: storage.Artifact{
			Path: fmt.Sprintf("source/namespace/object-%d/%040d.tar.gz", i, i), Digest: digest.Digest(fmt.Sprintf("sha256:%064d", i)),
			Revision: fmt.Sprintf("main@sha1:%040d", i), Metadata: maps.Clone(metadata),
		},
	}
	for key, value := range record.Current.Metadata {
		record.Current.Metadata[strings.Clone(key)] = strings.Clone(value)
	}
	return meaning{record: &record, artifacts: strip(record)}
}
