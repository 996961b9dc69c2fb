package git

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

func TestPatch(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789abcdef", 0x20000/16)
	cases := map[string]struct {
		reason string
		base   string
		delta  []byte
		want   string
		fails  bool
	}{
		"insert":         {"Bytes of the delta's own.", "", []byte{0, 3, 3, 'a', 'b', 'c'}, "abc", false},
		"copy":           {"Bytes of the base.", "abcdef", []byte{6, 2, 0x91, 2, 2}, "cd", false},
		"both":           {"One after the other.", "abcdef", []byte{6, 4, 0x90, 3, 1, 'x'}, "abcx", false},
		"no length":      {"A copy without a length has 64 KiB.", large, []byte{0x80, 0x80, 8, 0x80, 0x80, 4, 0x80}, large[:0x10000], false},
		"third byte":     {"The third byte of offset and length.", large, []byte{0x80, 0x80, 8, 0x80, 0x80, 4, 0xc4, 1, 1}, large[:0x10000], false},
		"nothing":        {"An empty result.", "abc", []byte{3, 0}, "", false},
		"other base":     {"The base has another size.", "abc", []byte{4, 1, 1, 'x'}, "", true},
		"beyond":         {"A copy from behind the base.", "abc", []byte{3, 2, 0x91, 2, 2}, "", true},
		"too much":       {"More than announced.", "abc", []byte{3, 2, 3, 'x', 'y', 'z'}, "", true},
		"too little":     {"Less than announced.", "abc", []byte{3, 2, 1, 'x'}, "", true},
		"cut insert":     {"An insert that is cut off.", "abc", []byte{3, 2, 2, 'x'}, "", true},
		"cut copy":       {"A copy that is cut off.", "abc", []byte{3, 2, 0x91, 1}, "", true},
		"reserved":       {"The command that is none.", "abc", []byte{3, 1, 0}, "", true},
		"no sizes":       {"Nothing.", "abc", nil, "", true},
		"one size":       {"No size of the result.", "abc", []byte{3}, "", true},
		"endless number": {"A size beyond 64 bits.", "abc", bytes.Repeat([]byte{0xff}, 12), "", true},
	}
	for name, c := range cases {
		got, err := patch([]byte(c.base), c.delta, announced(c.delta))
		if (err != nil) != c.fails || err == nil && string(got) != c.want {
			t.Errorf("%s %s got %d bytes, %v", name, c.reason, len(got), err)
		}
		if err == nil && cap(got) != len(c.want) {
			t.Errorf("%s: took %d bytes for %d", name, cap(got), len(c.want))
		}
	}
	if _, err := patch([]byte("abc"), []byte{3, 1, 1, 'x'}, 2); !errors.Is(err, errDelta) {
		t.Errorf("another size than was bounded: %v", err)
	}
}

// announced is what a delta says about its result, or something small.
func announced(delta []byte) int64 {
	head := &deltaHead{}
	_, _ = head.Write(delta) // It takes everything.
	size, err := head.resultSize()
	if err != nil || size > 1<<20 {
		return 1
	}
	return size
}

// FuzzPatch compares with another implementation of the format.
func FuzzPatch(f *testing.F) {
	f.Add([]byte("abcdef"), []byte{6, 4, 0x90, 3, 1, 'x'})
	f.Add([]byte("abc"), []byte{3, 2, 0x91, 2, 2})
	f.Add([]byte("abc"), []byte{3, 1, 0, 0})
	f.Fuzz(func(t *testing.T, base, delta []byte) {
		got, err := patch(base, delta, announced(delta))
		if len(base) == 0 || len(delta) < 4 || announced(delta) > 1<<16 {
			return // The other one takes no empty base and no short delta.
		}
		want, otherwise := packfile.PatchDelta(base, delta)
		if (err != nil) != (otherwise != nil) || err == nil && !bytes.Equal(got, want) {
			t.Errorf("%x on %x: %x, %v; want %x, %v", delta, base, got, err, want, otherwise)
		}
	})
}

// same is a delta that gives its base, but for the first byte.
func same(size int, first byte) []byte {
	delta := binary.AppendUvarint(nil, uint64(size))
	delta = binary.AppendUvarint(delta, uint64(size))
	delta = append(delta, 1, first)
	for from := 1; from < size; {
		n := min(size-from, 0xffffff)
		delta = append(delta, 0xff, byte(from), byte(from>>8), byte(from>>16), byte(from>>24), byte(n), byte(n>>8), byte(n>>16))
		from += n
	}
	return delta
}

// word is a delta that forgets its base.
func word(base int, text string) []byte {
	delta := binary.AppendUvarint(nil, uint64(base))
	delta = binary.AppendUvarint(delta, uint64(len(text)))
	return append(append(delta, byte(len(text))), text...)
}

// lookUp finds a blob by its content.
func lookUp(t *testing.T, p *pack, content string) int32 {
	t.Helper()
	index, err := p.find(plumbing.ComputeHash(plumbing.BlobObject, []byte(content)), plumbing.BlobObject)
	if err != nil {
		t.Fatal(err)
	}
	return index
}
