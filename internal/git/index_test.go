package git

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// packWriter makes packs that no git would make.
type packWriter struct {
	t       testing.TB
	body    bytes.Buffer
	count   uint32
	offsets []int64
	// deflater is reused, for it takes long to make.
	deflater *zlib.Writer
}

func (w *packWriter) add(kind plumbing.ObjectType, size int, reference []byte, content []byte) {
	w.t.Helper()
	w.offsets = append(w.offsets, int64(packHeader+w.body.Len()))
	w.count++
	first := byte(kind)<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		w.body.WriteByte(first | 0x80)
		first = byte(size & 0x7f)
	}
	w.body.WriteByte(first)
	w.body.Write(reference)
	if w.deflater == nil {
		w.deflater = zlib.NewWriter(&w.body)
	}
	w.deflater.Reset(&w.body)
	if _, err := w.deflater.Write(content); err != nil {
		w.t.Fatal(err)
	}
	if err := w.deflater.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *packWriter) blob(content string) {
	w.add(plumbing.BlobObject, len(content), nil, []byte(content))
}

func (w *packWriter) refDelta(base plumbing.Hash, delta []byte) {
	w.add(plumbing.REFDeltaObject, len(delta), base[:], delta)
}

// offsetDelta refers to an earlier object by its distance.
func (w *packWriter) offsetDelta(base int, delta []byte) {
	distance := int64(packHeader+w.body.Len()) - w.offsets[base]
	encoded := []byte{byte(distance & 0x7f)}
	for distance >>= 7; distance > 0; distance >>= 7 {
		distance--
		encoded = append([]byte{0x80 | byte(distance&0x7f)}, encoded...)
	}
	w.add(plumbing.OFSDeltaObject, len(delta), encoded, delta)
}

func (w *packWriter) bytes() []byte {
	pack := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), w.count)
	pack = append(pack, w.body.Bytes()...)
	sum := sha1.Sum(pack)
	return append(pack, sum[:]...)
}

var testLimits = packLimits{objects: 10_000, object: 1 << 20, delta: 1 << 20, unpacked: 8 << 20}

func indexBytes(ctx context.Context, content []byte) (*pack, error) {
	return indexWithin(ctx, content, testLimits)
}

func indexWithin(ctx context.Context, content []byte, limits packLimits) (*pack, error) {
	return indexSpool(ctx, &spool{memory: content, size: int64(len(content))}, limits, "")
}

func indexSpool(ctx context.Context, s *spool, limits packLimits, dir string) (*pack, error) {
	p := newPack(ctx, s, nil, limits, dir)
	if err := p.index(ctx, limits); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// copies is a delta that copies the whole base some times over.
func copies(base, times int) []byte {
	delta := binary.AppendUvarint(nil, uint64(base))
	delta = binary.AppendUvarint(delta, uint64(base*times))
	for range times {
		delta = append(delta, 0x80|0x10|0x20|0x40, byte(base), byte(base>>8), byte(base>>16))
	}
	return delta
}

func insert(base int, text string) []byte {
	delta := binary.AppendUvarint(nil, uint64(base))
	delta = binary.AppendUvarint(delta, uint64(base+len(text)))
	delta = append(delta, 0x80|0x10, byte(base), byte(len(text)))
	return append(delta, text...)
}

func TestDeltasOfAllKinds(t *testing.T) {
	t.Parallel()
	w := &packWriter{t: t}
	base := "the base of everything"
	middle, top := base+" middle", base+" middle top"
	// A delta may come before its base when it names it by hash, and base and delta may be deltas themselves.
	w.refDelta(plumbing.ComputeHash(plumbing.BlobObject, []byte(middle)), insert(len(middle), " top"))
	w.refDelta(plumbing.ComputeHash(plumbing.BlobObject, []byte(base)), insert(len(base), " middle"))
	w.blob(base)
	w.offsetDelta(2, insert(len(base), " by offset"))
	w.offsetDelta(3, insert(len(base+" by offset"), "!"))
	w.blob(base) // An object may be there twice.
	p, err := indexBytes(t.Context(), w.bytes())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{base, middle, top, base + " by offset", base + " by offset!"} {
		index, err := p.find(plumbing.ComputeHash(plumbing.BlobObject, []byte(want)), plumbing.BlobObject)
		if err != nil {
			t.Errorf("%q: %v", want, err)
			continue
		}
		if got, err := p.load(t.Context(), index); err != nil || string(got) != want || p.objects[index].size != int64(len(want)) {
			t.Errorf("want %q, got %q, %v", want, got, err)
		}
	}
}

func TestHostilePacks(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		make   func(w *packWriter)
		want   error
	}{
		"thin":  {"A base that is not there.", func(w *packWriter) { w.refDelta(plumbing.Hash{1}, copies(4, 1)) }, ErrProtocol},
		"cycle": {"Deltas on each other never begin.", func(w *packWriter) { w.refDelta(plumbing.Hash{1}, copies(4, 1)); w.offsetDelta(0, copies(4, 1)) }, ErrProtocol},
		"delta bomb": {"A delta that doubles, on and on.", func(w *packWriter) {
			w.blob(strings.Repeat("x", 1<<12))
			for i := range 20 {
				w.offsetDelta(i, copies(1<<(12+i), 2))
			}
		}, ErrLimit},
		"many results": {"Small results, but many.", func(w *packWriter) {
			w.blob(strings.Repeat("x", 1<<12))
			for range 20 {
				w.offsetDelta(0, copies(1<<12, 200))
			}
		}, ErrLimit},
		"claims much":   {"A size that is not there, beyond the limit.", func(w *packWriter) { w.add(plumbing.BlobObject, 1<<40, nil, []byte("x")) }, ErrLimit},
		"claims more":   {"A size that is not there.", func(w *packWriter) { w.add(plumbing.BlobObject, 5, nil, []byte("x")) }, ErrProtocol},
		"claims less":   {"More than announced.", func(w *packWriter) { w.add(plumbing.BlobObject, 1, nil, []byte("xxxxx")) }, ErrProtocol},
		"kind 0":        {"No such kind.", func(w *packWriter) { w.add(0, 1, nil, []byte("x")) }, ErrProtocol},
		"kind 5":        {"A reserved kind.", func(w *packWriter) { w.add(5, 1, nil, []byte("x")) }, ErrProtocol},
		"offset":        {"A base before the pack.", func(w *packWriter) { w.add(plumbing.OFSDeltaObject, 2, []byte{0xff, 0x7f}, []byte("xx")) }, ErrProtocol},
		"on itself":     {"A delta on itself.", func(w *packWriter) { w.add(plumbing.OFSDeltaObject, 2, []byte{0}, []byte("xx")) }, ErrProtocol},
		"offset bits":   {"An endless offset.", func(w *packWriter) { w.add(plumbing.OFSDeltaObject, 2, bytes.Repeat([]byte{0xff}, 20), nil) }, ErrProtocol},
		"wrong base":    {"A delta for a base of another size.", func(w *packWriter) { w.blob("abc"); w.offsetDelta(0, copies(4, 1)) }, ErrProtocol},
		"copies beyond": {"A delta that reads beyond its base.", func(w *packWriter) { w.blob("abc"); w.offsetDelta(0, []byte{3, 5, 0x91, 1, 5}) }, ErrProtocol},
		"reserved":      {"A reserved delta command.", func(w *packWriter) { w.blob("abc"); w.offsetDelta(0, []byte{3, 5, 0}) }, ErrProtocol},
		"short delta":   {"A delta without sizes.", func(w *packWriter) { w.blob("abc"); w.offsetDelta(0, []byte{0xff}) }, ErrProtocol},
	}
	for name, c := range cases {
		w := &packWriter{t: t}
		c.make(w)
		if _, err := indexBytes(t.Context(), w.bytes()); !errors.Is(err, c.want) {
			t.Errorf("%s %s want %v, got %v", name, c.reason, c.want, err)
		}
	}
	w := &packWriter{t: t}
	w.blob("abc")
	good := w.bytes()
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := indexBytes(stopped, good); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	for n := range good {
		if _, err := indexBytes(t.Context(), good[:n]); !errors.Is(err, ErrProtocol) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	w.count = 2
	if _, err := indexBytes(t.Context(), w.bytes()); !errors.Is(err, ErrProtocol) {
		t.Errorf("an object is missing: %v", err)
	}
	w.count = 0
	if _, err := indexBytes(t.Context(), w.bytes()); !errors.Is(err, ErrProtocol) {
		t.Errorf("bytes that belong to no object: %v", err)
	}
	w.count = 1 << 31
	if _, err := indexBytes(t.Context(), w.bytes()); !errors.Is(err, ErrLimit) {
		t.Errorf("too many objects: %v", err)
	}
}

func TestDeepChainsAreCut(t *testing.T) {
	t.Parallel()
	w := &packWriter{t: t}
	w.blob("x")
	for i := range maxDeltaDepth + 1 {
		w.offsetDelta(i, []byte{1, 1, 1, byte(i)}) // From one byte to another.
	}
	if _, err := indexBytes(t.Context(), w.bytes()); !errors.Is(err, ErrLimit) {
		t.Errorf("want %v, got %v", ErrLimit, err)
	}
}

// TestBasesAreLetGo has more bytes of bases than are kept, with two deltas on each, so that bases are needed again.
func TestBasesAreLetGo(t *testing.T) {
	t.Parallel()
	const size, levels = 1 << 20, 80
	w := &packWriter{t: t}
	content := strings.Repeat("0123456789abcdef", size/16)
	w.blob(content)
	change := func(i byte) []byte { // The base, but for its first byte.
		delta := binary.AppendUvarint(nil, size)
		delta = binary.AppendUvarint(delta, size)
		rest := size - 1
		return append(delta, 1, i, 0x80|0x01|0x10|0x20|0x40, 1, byte(rest&0xff), byte(rest>>8&0xff), byte(rest>>16))
	}
	var want []plumbing.Hash
	last := 0
	for i := range levels {
		w.offsetDelta(last, change(byte(i)))
		last = len(w.offsets) - 1
		w.offsetDelta(last, change(byte(i+levels)))
		for _, first := range []byte{byte(i), byte(i + levels)} {
			want = append(want, plumbing.ComputeHash(plumbing.BlobObject, append([]byte{first}, content[1:]...)))
		}
	}
	p, err := indexWithin(t.Context(), w.bytes(), packLimits{objects: 1000, object: size, delta: size, unpacked: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	for i, hash := range want {
		if _, err := p.find(hash, plumbing.BlobObject); err != nil {
			t.Errorf("delta %d: %v", i, err)
		}
	}
}

// FuzzIndexPack checks that every object of an accepted pack has the name it is found under, and that nothing panics.
func FuzzIndexPack(f *testing.F) {
	w := &packWriter{t: f}
	w.blob("the base of everything")
	w.offsetDelta(0, insert(22, " more"))
	w.refDelta(plumbing.ComputeHash(plumbing.BlobObject, []byte("the base of everything")), insert(22, " by hash"))
	f.Add(w.bytes())
	w = &packWriter{t: f}
	w.add(plumbing.TreeObject, 0, nil, nil)
	w.add(plumbing.CommitObject, 4, nil, []byte("tree"))
	f.Add(w.bytes())
	f.Add([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, content []byte) {
		if len(content) > packHeader+packTrailer { // Let the fuzzer get past the checksum.
			sum := sha1.Sum(content[:len(content)-packTrailer])
			content = append(content[:len(content)-packTrailer:len(content)-packTrailer], sum[:]...)
		}
		p, err := indexBytes(t.Context(), content)
		if err != nil {
			return
		}
		for i, object := range p.objects {
			got, err := p.load(t.Context(), int32(i))
			if err != nil || plumbing.ComputeHash(object.kind, got) != object.hash {
				t.Errorf("object %d: %v", i, err)
			}
		}
	})
}
