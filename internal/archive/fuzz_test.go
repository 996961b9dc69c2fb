package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"sluice.dev/sluice/internal/archive"
)

func FuzzExcluded(f *testing.F) {
	f.Add("*.md\n!keep.md\n", "/only/\n", "**/a/b\n", "sub/only/x")
	f.Add("", "", "", ".github/x.png")
	f.Add("a/**\n!a/**/b\n", "[a-z]*\n", "\\!x\n", "a/c/b")
	f.Add("!\n/\n//\n**\n/**\n", "a//b\n", "a\\ \nb \n", "sub/a/b")
	f.Fuzz(func(t *testing.T, top, sub, spec, name string) {
		longest := bufioToken - 1
		for line := range strings.SplitSeq(strings.Join([]string{top, sub, spec}, "\n"), "\n") {
			if len(line) >= longest {
				return // Refused here, cut there.
			}
		}
		if name == "" || strings.HasPrefix(name, "/") || path.Clean(name) != name || name == "." {
			return // No tree holds such a path.
		}
		compareRules(t, top, sub, spec, name)
	})
}

// bufioToken is where Flux stops reading rules.
const bufioToken = 64 << 10

func FuzzWriteOpen(f *testing.F) {
	f.Add("a/b\nc\n", "body", "", true)
	f.Add("x/.sourceignore\nx/y.png\nx/z", "*.png\n", "!z\n", false)
	f.Add(".git/config\né/ü\n"+strings.Repeat("n", 120)+"/"+strings.Repeat("m", 120), "", "*", true)
	f.Add("a\xff/b\n", "", "", false)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, names, body, spec string, executable bool) {
		tree := plant(t, dir, names, body, executable)
		if tree == nil {
			return
		}
		limits := archive.Limits{MaxBytes: 1 << 20, MaxFiles: 1000, MaxDepth: 20, MaxPath: 500}
		rules, err := archive.ReadRules(t.Context(), tree, &spec, limits)
		if errors.Is(err, archive.ErrLimit) {
			return
		}
		check(t, err)
		var packed bytes.Buffer
		err = archive.Write(t.Context(), &packed, tree, rules, limits)
		if errors.Is(err, archive.ErrLimit) {
			return
		}
		check(t, err)
		opened, err := archive.Open(t.Context(), bytes.NewReader(packed.Bytes()), dir, limits)
		check(t, err)
		defer func() { check(t, opened.Close()) }()
		var again bytes.Buffer
		check(t, archive.Write(t.Context(), &again, opened, rules, limits))
		if !bytes.Equal(packed.Bytes(), again.Bytes()) {
			t.Fatalf("the archive of an opened archive differs: %q, then %q", packed.Bytes(), again.Bytes())
		}
	})
}

// plant makes a tree of the names, one a line, as the archive reader would. It gives nil if they make none.
func plant(t *testing.T, dir, names, body string, executable bool) fs.FS {
	t.Helper()
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	w := tar.NewWriter(packed)
	mode := int64(0o644)
	if executable {
		mode = 0o755
	}
	for name := range strings.SplitSeq(names, "\n") {
		if w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(body)), Mode: mode}) != nil {
			return nil
		}
		_, err := io.WriteString(w, body)
		check(t, err)
	}
	check(t, w.Close())
	check(t, packed.Close())
	tree, err := archive.Open(t.Context(), &out, dir, archive.Limits{MaxBytes: 1 << 20, MaxFiles: 1000})
	if err != nil {
		return nil
	}
	t.Cleanup(func() { check(t, tree.Close()) })
	return tree
}

func FuzzOpen(f *testing.F) {
	sampled := mustPack(f, sample(), nil)
	f.Add(sampled, true)
	f.Add(expand(f, sampled), false)
	f.Add(oldSparse(f), false)
	f.Add(paxSparse(f), false)
	f.Add(expand(f, craft(f, typed("l", tar.TypeSymlink), file("../x"))), false)
	dir, stored := f.TempDir(), gzip.NewWriter(io.Discard)
	f.Fuzz(func(t *testing.T, data []byte, whole bool) {
		// Most bytes are no gzip; half of the runs get past it. A compressor takes longer to make than to use.
		if !whole {
			var out bytes.Buffer
			stored.Reset(&out)
			_, err := stored.Write(data)
			check(t, err)
			check(t, stored.Close())
			data = out.Bytes()
		}
		openHostile(t, archive.Open, dir, data)
	})
}

func FuzzOpenLayer(f *testing.F) {
	plain := expand(f, mustPack(f, sample(), nil))
	for _, raw := range [][]byte{plain, expand(f, craft(f, folder("./"), folder("a"), folder("a"), file("./a/.wh.x")))} {
		for _, pack := range formats() {
			f.Add(pack(f, raw), byte(0))
		}
	}
	for _, tc := range hostile(f) {
		f.Add(tc.raw, byte(0))
		f.Add(tc.raw, byte(1))
		f.Add(tc.raw, byte(2))
	}
	f.Add(windowed(32<<20), byte(0))
	dir, stored := f.TempDir(), gzip.NewWriter(io.Discard)
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	check(f, err)
	f.Fuzz(func(t *testing.T, data []byte, pack byte) {
		// Most bytes are no checksummed stream; two runs of three get past that.
		switch pack % 3 {
		case 1:
			var out bytes.Buffer
			stored.Reset(&out)
			_, err := stored.Write(data)
			check(t, err)
			check(t, stored.Close())
			data = out.Bytes()
		case 2:
			data = encoder.EncodeAll(data, nil)
		}
		openHostile(t, archive.OpenLayer, dir, data)
	})
}

// openHostile checks that any bytes give a tree within the limits, or an error that says what is wrong with them.
func openHostile(t *testing.T, open opener, dir string, data []byte) {
	t.Helper()
	limits := archive.Limits{MaxBytes: 1 << 16, MaxFiles: 50, MaxDepth: 10, MaxPath: 200}
	tree, err := open(t.Context(), bytes.NewReader(data), dir, limits)
	if err != nil {
		if !errors.Is(err, archive.ErrLimit) && !errors.Is(err, archive.ErrUnsafe) && !errors.Is(err, archive.ErrCorrupt) {
			t.Fatalf("the error says nothing about the archive: %v", err)
		}
		return
	}
	defer func() { check(t, tree.Close()) }()
	var size int64
	files := 0
	check(t, fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		files++
		if strings.Count(name, "/") >= 10 || len(name) > 200 || strings.HasPrefix(name, "/") || strings.Contains("/"+name+"/", "/../") {
			t.Fatalf("path %q", name)
		}
		if !entry.IsDir() {
			body, err := fs.ReadFile(tree, name)
			size += int64(len(body))
			return err
		}
		return nil
	}))
	if size > 1<<16 || files > 51 {
		t.Fatalf("%d bytes in %d entries", size, files)
	}
}
