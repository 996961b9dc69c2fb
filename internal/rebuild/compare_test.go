package rebuild_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/rebuild"
)

// packed is a tar.gz of files, each a name and its content.
func packed(t *testing.T, files ...string) []byte {
	t.Helper()
	return compressed(t, gzip.DefaultCompression, archived(t, files...))
}

// archived is a tar of them. A content that begins with "-> " is the target of a symbolic link.
func archived(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for i := 0; i < len(files); i += 2 {
		header, content := &tar.Header{Name: files[i], Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[i+1]))}, files[i+1]
		if target, isLink := strings.CutPrefix(content, "-> "); isLink {
			header.Typeflag, header.Linkname, header.Size, content = tar.TypeSymlink, target, 0, ""
		}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func compressed(t *testing.T, level int, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	to, err := gzip.NewWriterLevel(&out, level)
	if err == nil {
		_, err = to.Write(content)
	}
	if err = errors.Join(err, to.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestDifference: the first file in which archives differ, whatever they are compressed with.
func TestDifference(t *testing.T) {
	t.Parallel()
	plain := archived(t, "a", "one", "b", "two", "c", "-> a")
	made := compressed(t, gzip.DefaultCompression, plain)
	for name, tc := range map[string]struct {
		served []byte
		want   string
	}{
		"Same":      {made, ""},
		"Packed":    {compressed(t, gzip.BestSpeed, plain), ""},
		"Content":   {packed(t, "a", "one", "b", "tw0", "c", "-> a"), "b"},
		"Missing":   {packed(t, "a", "one"), "b, which is missing"},
		"More":      {packed(t, "a", "one", "b", "two", "c", "-> a", "d", "x"), "d, which upstream does not have"},
		"Link":      {packed(t, "a", "one", "b", "two", "c", "-> b"), "c"},
		"Behind":    {compressed(t, gzip.DefaultCompression, append(slices.Clone(plain), archived(t, "d", "x")...)), "behind the last one"},
		"Other":     {packed(t, "a", "one", "c", "two"), "b, in whose place is c"},
		"Truncated": {made[:len(made)-4], "read the end of the archive: unexpected EOF"},
		"Cut":       {made[:len(made)/2], "or before it: "},
		"Nothing":   {nil, "the archive itself: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := rebuild.Difference(bytes.NewReader(tc.served), bytes.NewReader(made))
			if err != nil || tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
	if _, err := rebuild.Difference(bytes.NewReader(made), strings.NewReader("no archive")); err == nil {
		t.Error("what was rebuilt is no archive, and that is not said")
	}
}

// TestDifferenceEnds: also where a small archive has more in it than anybody has time for.
func TestDifferenceEnds(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	to := gzip.NewWriter(&bomb)
	inside := tar.NewWriter(to)
	const size = 2 << 30
	if err := inside.WriteHeader(&tar.Header{Name: "a", Typeflag: tar.TypeReg, Mode: 0o644, Size: size}); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	// Members of a gzip stand one behind the other: one piece is compressed once, and put there as often as it takes.
	piece := compressed(t, gzip.BestSpeed, make([]byte, 64<<20))
	for range size / (64 << 20) {
		bomb.Write(piece)
	}
	got, err := rebuild.Difference(&bomb, bytes.NewReader(packed(t, "a", "one")))
	if want := "or before it: read a: it has more than 1024 MiB in it"; err != nil || !strings.Contains(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}
