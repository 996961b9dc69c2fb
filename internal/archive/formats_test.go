package archive_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// formats are the ways in which a layer comes: each packs a tar stream.
func formats() map[string]func(testing.TB, []byte) []byte {
	return map[string]func(testing.TB, []byte) []byte{
		"Tar":         func(_ testing.TB, raw []byte) []byte { return raw },
		"Gzip":        compress,
		"GzipMembers": members,
		"Zstd":        squeeze,
		"ZstdFrames":  frames,
	}
}

// members packs each block apart, as tools do whose layers are pulled in parts, and ends in their footer: an empty member
// with an extra field.
func members(tb testing.TB, raw []byte) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	for part := range slices.Chunk(raw, 512) {
		_, err := w.Write(part)
		check(tb, err)
		check(tb, w.Close())
		w.Reset(&out)
	}
	w.Extra = []byte("SG\x16\x000000000000000000STARGZ")
	check(tb, w.Close())
	return out.Bytes()
}

func squeeze(tb testing.TB, raw []byte) []byte {
	tb.Helper()
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<17))
	check(tb, err)
	_, err = w.Write(raw)
	check(tb, err)
	check(tb, w.Close())
	return out.Bytes()
}

// frames packs each half apart, and puts frames to skip first, between and last, where such layers have their index.
func frames(tb testing.TB, raw []byte) []byte {
	tb.Helper()
	half := len(raw) / 1024 * 512
	out := skippable("first")
	out = append(out, squeeze(tb, raw[:half])...)
	out = append(out, skippable("")...)
	out = append(out, squeeze(tb, raw[half:])...)
	return append(out, skippable("an index")...)
}

func skippable(content string) []byte {
	out := binary.LittleEndian.AppendUint32([]byte("\x5a\x2a\x4d\x18"), uint32(len(content)))
	return append(out, content...)
}

// windowed is a frame that asks for a window of a power of two, and holds nothing.
func windowed(size uint32) []byte {
	log := byte(0)
	for size > 1<<10 {
		size, log = size>>1, log+1
	}
	return []byte{0x28, 0xb5, 0x2f, 0xfd, 0, log << 3, 1, 0, 0}
}
