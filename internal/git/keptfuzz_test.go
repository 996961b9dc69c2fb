package git

import (
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// fuzzLimits keep one run small.
var fuzzLimits = packLimits{objects: 1000, object: 1 << 16, delta: 1 << 16, unpacked: 1 << 20}

// chainOf is a pack with a chain of deltas, the last of which is as deep as a fetch may leave it.
func chainOf(tb testing.TB) []byte {
	tb.Helper()
	w := &packWriter{t: tb}
	w.blob("a")
	for i := range maxChain {
		w.offsetDelta(i, []byte{1, 1, 1, byte(i)}) // From one byte to another.
	}
	return w.bytes()
}

// keptPack is what a fetch of the pack leaves in the cache, and the file with its data.
func keptPack(tb testing.TB, content []byte, limits packLimits) (*kept, string) {
	tb.Helper()
	p, err := indexWithin(context.Background(), content, limits)
	if err != nil {
		tb.Fatal(err)
	}
	name := filepath.Join(tb.TempDir(), "data-1")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		tb.Fatal(err)
	}
	k := &kept{length: int64(len(content)), compact: int64(len(content)), objects: p.objects, byHash: p.byHash, forget: func() {}}
	return k, name
}

// over is a pack behind a copy of what is kept.
func over(t *testing.T, k *kept, name string, content []byte) *pack {
	t.Helper()
	data, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	copied := *k
	copied.objects, copied.data = slices.Clone(k.objects), data
	s := copied.spool()
	s.memory, s.size = content, int64(len(content))
	p := newPack(t.Context(), s, &copied, fuzzLimits, "")
	t.Cleanup(func() { _ = p.Close() }) // It was only read.
	return p
}

// checkObjects checks that whatever can be read is what it is named.
func checkObjects(t *testing.T, p *pack, all bool) {
	t.Helper()
	for i, object := range p.objects {
		got, err := p.load(t.Context(), int32(i))
		if err != nil && all || err == nil && plumbing.ComputeHash(object.kind, got) != object.hash {
			t.Errorf("object %d: %v", i, err)
		}
		if stream, err := p.open(t.Context(), int32(i)); err == nil {
			_ = stream.Close() // Reading is tested above.
		}
	}
}

// FuzzThinPack takes packs whose deltas apply to what earlier fetches brought. What comes of them can be kept.
func FuzzThinPack(f *testing.F) {
	k, name := keptPack(f, chainOf(f), fuzzLimits)
	first, last := k.objects[0].hash, k.objects[len(k.objects)-1].hash
	w := &packWriter{t: f}
	w.refDelta(first, word(1, "on the first"))
	w.offsetDelta(0, insert(12, " and more"))
	w.refDelta(last, word(1, "on the last"))
	f.Add(w.bytes())
	w = &packWriter{t: f}
	w.blob("0")
	w.refDelta(plumbing.ComputeHash(plumbing.BlobObject, []byte("on it")), word(5, "later"))
	w.refDelta(last, word(1, "on it"))
	f.Add(w.bytes())
	w = &packWriter{t: f}
	w.refDelta(plumbing.Hash{1}, word(1, "on nothing"))
	f.Add(w.bytes())
	f.Fuzz(func(t *testing.T, content []byte) {
		if len(content) > packHeader+packTrailer { // Let the fuzzer get past the checksum.
			sum := sha1.Sum(content[:len(content)-packTrailer])
			content = append(content[:len(content)-packTrailer:len(content)-packTrailer], sum[:]...)
		}
		p := over(t, k, name, content)
		if err := p.index(t.Context(), fuzzLimits); err != nil {
			if !errors.Is(err, ErrProtocol) && !errors.Is(err, ErrLimit) {
				t.Errorf("nameless error: %v", err)
			}
			return
		}
		checkObjects(t, p, true)
		for i := p.kept; i < len(p.objects); i++ {
			if p.objects[i].depth > maxChain {
				t.Errorf("object %d is %d deltas deep", i, p.objects[i].depth)
			}
		}
	})
}

// FuzzKeptIndex reads an index of the cache whose checksum is right, whatever wrote it, and follows it.
func FuzzKeptIndex(f *testing.F) {
	k, name := keptPack(f, chainOf(f), fuzzLimits)
	k.tips, k.crowd = []tip{{commit: k.objects[0].hash}}, []member{{k.objects[0].hash, refID("refs/heads/main")}, {k.objects[0].hash, 0}}
	f.Add(k.encode("data-1"))
	k.objects[0].base, k.objects[0].depth = 1, 2
	f.Add(k.encode("data-1")) // Objects on each other.
	k.objects[0] = packed{data: -1, length: 1 << 62, raw: 1 << 62, size: -1, base: 1 << 30, depth: -1}
	k.byHash[0] = 1 << 30
	f.Add(k.encode("data-1"))
	many := k.encode("data-1")
	binary.LittleEndian.PutUint64(many[len(keptFormat)+keptName+16:], uint64(len(k.objects))+1<<62)
	f.Add(many) // So many that their sizes overflow.
	crowd := k.encode("data-1")
	binary.LittleEndian.PutUint64(crowd[len(keptFormat)+keptName+32:], 1<<62)
	f.Add(crowd)
	f.Fuzz(func(t *testing.T, content []byte) {
		if len(content) > 4 { // Let the fuzzer get past the checksum.
			content = slices.Clone(content)
			at := len(content) - 4
			binary.LittleEndian.PutUint32(content[at:], crc32.Checksum(content[:at], crc32.MakeTable(crc32.Castagnoli)))
		}
		k := &kept{forget: func() {}}
		if err := k.decode(content, fuzzLimits.object); err != nil {
			if !errors.Is(err, errDamaged) {
				t.Errorf("nameless error: %v", err)
			}
			return
		}
		if len(k.objects)*(keptRecord+4) > len(content) {
			t.Errorf("%d objects out of %d bytes", len(k.objects), len(content))
		}
		p := over(t, k, name, nil)
		for i := range p.objects {
			_, _ = p.lookUp(p.objects[i].hash)
			if frames := p.frames(int32(i)); frames < 0 || frames > framesAtOnce*fuzzLimits.object {
				t.Errorf("object %d takes %d bytes", i, frames)
			}
		}
		checkObjects(t, p, false)
	})
}
