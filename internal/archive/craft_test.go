package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"
)

// item is an entry of a crafted archive.
type item struct {
	tar.Header
	body string
}

func craft(tb testing.TB, items ...item) []byte {
	tb.Helper()
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	w := tar.NewWriter(packed)
	for _, i := range items {
		if i.Typeflag == 0 {
			i.Typeflag = tar.TypeReg
		}
		if i.Size == 0 {
			i.Size = int64(len(i.body))
		}
		check(tb, w.WriteHeader(&i.Header))
		_, err := io.WriteString(w, i.body)
		check(tb, err)
	}
	check(tb, w.Close())
	check(tb, packed.Close())
	return out.Bytes()
}

func file(name string) item   { return item{Header: tar.Header{Name: name}, body: name} }
func folder(name string) item { return item{Header: tar.Header{Name: name, Typeflag: tar.TypeDir}} }

func typed(name string, flag byte) item {
	return item{Header: tar.Header{Name: name, Typeflag: flag, Linkname: "target"}}
}

func compress(tb testing.TB, raw []byte) []byte {
	tb.Helper()
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	_, err := packed.Write(raw)
	check(tb, err)
	check(tb, packed.Close())
	return out.Bytes()
}

func expand(tb testing.TB, packed []byte) []byte {
	tb.Helper()
	r, err := gzip.NewReader(bytes.NewReader(packed))
	check(tb, err)
	raw, err := io.ReadAll(r)
	check(tb, err)
	return raw
}

// patch changes bytes of the first header of a stream and sets its checksum right.
func patch(raw []byte, change func(header []byte)) []byte {
	raw = bytes.Clone(raw)
	header := raw[:512]
	change(header)
	copy(header[148:156], "        ")
	sum := 0
	for _, b := range header {
		sum += int(b)
	}
	copy(header[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return raw
}

func nameless(tb testing.TB) []byte {
	tb.Helper()
	return patch(expand(tb, craft(tb, file("n"))), func(h []byte) { h[0] = 0 })
}

// oldSparse says that a file of one block is huge.
func oldSparse(tb testing.TB) []byte {
	tb.Helper()
	return patch(expand(tb, craft(tb, item{Header: tar.Header{Name: "s", Format: tar.FormatGNU}})), func(h []byte) {
		h[156] = tar.TypeGNUSparse
		copy(h[483:495], "77777777777\x00") // real size
	})
}

// paxSparse does the same by way of an extended header.
func paxSparse(tb testing.TB) []byte {
	tb.Helper()
	var records string
	for _, record := range []string{"major=0", "minor=1", "size=99999999", "numblocks=1", "map=0,1"} {
		// A record begins with its length, which here has two digits.
		records += fmt.Sprintf("%d GNU.sparse.%s\n", len(record)+15, record)
	}
	head := patch(expand(tb, craft(tb, item{Header: tar.Header{Name: "PaxHeaders/s"}, body: records}))[:1024], func(h []byte) {
		h[156] = tar.TypeXHeader
	})
	return append(head, expand(tb, craft(tb, file("s")))...)
}

// craftClaim is a header of a file of 8 GiB, and nothing else.
func craftClaim(tb testing.TB) []byte {
	tb.Helper()
	return compress(tb, patch(expand(tb, craft(tb, file("f"))), func(h []byte) { copy(h[124:136], "77777777777\x00") }))
}

// headers are extended headers of 64 KiB each that no file follows.
func headers(tb testing.TB, count int) []byte {
	tb.Helper()
	const size = 64 << 10
	record := fmt.Sprintf("%d comment=", size)
	record += strings.Repeat("x", size-len(record)-1) + "\n"
	one := patch(expand(tb, craft(tb, item{Header: tar.Header{Name: "h"}, body: record}))[:512+size], func(h []byte) {
		h[156] = tar.TypeXHeader
	})
	return bytes.Repeat(one, count)
}
