package registry_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"

	"sluice.dev/sluice/tests/upstream/registry"
)

func push(t *testing.T, to *remote.Repository, d ocispec.Descriptor, raw []byte) error {
	t.Helper()
	return to.Push(t.Context(), d, bytes.NewReader(raw))
}

// names reads a tar file until its end or its first error.
func names(file io.Reader) (found []string, err error) {
	for entries := tar.NewReader(file); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return found, err
		}
		found = append(found, string(header.Typeflag)+" "+header.Name+" "+header.Linkname)
		if _, err := io.CopyN(io.Discard, entries, 1<<20); err != nil && !errors.Is(err, io.EOF) {
			return found, err
		}
	}
}

func TestCompressionsHoldTheSameFile(t *testing.T) {
	t.Parallel()
	file, err := registry.Tar(registry.Folder("d"), registry.File("d/f", "content"), registry.Symlink("l", "d/f"), registry.Hardlink("h", "d/f"))
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := registry.Gzip(file)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := registry.Zstd(file)
	if err != nil {
		t.Fatal(err)
	}
	unzip, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		t.Fatal(err)
	}
	unpack, err := zstd.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	defer unpack.Close()
	want := []string{"5 d/ ", "0 d/f ", "2 l d/f", "1 h d/f"}
	for name, reader := range map[string]io.Reader{"plain": bytes.NewReader(file), "gzip": unzip, "zstd": unpack} {
		got, err := names(reader)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name, diff)
		}
	}
}

func TestHostileLayersAreWhatTheySay(t *testing.T) {
	t.Parallel()
	layers, err := registry.Hostile()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"symlink out":       {"2 link /etc", "0 link/passwd "},
		"absolute name":     {"0 /etc/owned "},
		"pax path":          {"0 ../owned "},
		"pax path twice":    {"0 /owned "},
		"pax link":          {"2 link /etc/passwd"},
		"global pax path":   {"g ../owned ", "0 harmless "},
		"sparse":            {"S sparse "},
		"pax sparse":        {"0 ../owned "},
		"unknown type":      {"Z unknown "},
		"character device":  {"3 null "},
		"fifo":              {"6 pipe "},
		"content cut off":   {"0 cut "},
		"pax size":          {"0 large "},
		"pax negative size": {},
	}
	for name, file := range layers {
		got, err := names(bytes.NewReader(file))
		if len(got) == 0 || got[0] != "0 good.yaml " {
			t.Errorf("%s: begins with %q, %v", name, got, err)
			continue
		}
		if expected, ok := want[name]; ok {
			if diff := cmp.Diff(expected, got[1:]); diff != "" {
				t.Errorf("%s (%v): -want, +got:\n%s", name, err, diff)
			}
		}
		again, err := registry.Hostile()
		if err != nil || !bytes.Equal(file, again[name]) {
			t.Errorf("%s: other bytes the second time", name)
		}
	}
}

func TestBombIsSmall(t *testing.T) {
	t.Parallel()
	bomb, err := registry.Bomb(4 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if len(bomb) > 16<<10 {
		t.Errorf("4 MiB of zeroes take %d bytes", len(bomb))
	}
}
