package archive_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"sluice.dev/sluice/internal/archive"
)

func TestWriteLimits(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{
		"a/b/c":     {Data: []byte("123456")},
		"a/x.jpg":   {Data: bytes.Repeat([]byte("x"), 100)},
		"d":         {Data: []byte("1234")},
		"e/f/g/h/i": {Data: nil},
	}
	cases := map[string]struct {
		reason string
		tree   fs.FS
		limits archive.Limits
		want   error
	}{
		"Exact": {
			reason: "A limit that is just reached is kept; what is excluded does not count.",
			tree:   tree,
			limits: archive.Limits{MaxBytes: 10, MaxFiles: 9, MaxDepth: 5, MaxPath: 9},
		},
		"Bytes": {
			reason: "The files are one byte too many.",
			tree:   tree, limits: archive.Limits{MaxBytes: 9}, want: archive.ErrLimit,
		},
		"Files": {
			reason: "Folders count as files.",
			tree:   tree, limits: archive.Limits{MaxFiles: 8}, want: archive.ErrLimit,
		},
		"Depth": {
			reason: "The deepest file has one name too many.",
			tree:   tree, limits: archive.Limits{MaxDepth: 4}, want: archive.ErrLimit,
		},
		"Path": {
			reason: "The longest path is a byte too long.",
			tree:   tree, limits: archive.Limits{MaxPath: 8}, want: archive.ErrLimit,
		},
		"Name": {
			reason: "No file system could take the name.",
			tree:   fstest.MapFS{strings.Repeat("n", 256): {}}, want: archive.ErrLimit,
		},
		"Endless": {
			reason: "A tree that contains itself is given up, though all of it is excluded but for the folders.",
			tree:   endless{}, limits: archive.Limits{MaxFiles: 1000, MaxDepth: 1 << 20, MaxPath: 1 << 30}, want: archive.ErrLimit,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := archive.Write(t.Context(), io.Discard, tc.tree, nil, tc.limits)
			if !errors.Is(err, tc.want) {
				t.Errorf("%s\nwant %v, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// endless is a folder that holds itself twice, and a picture.
type endless struct{}

func (endless) Open(string) (fs.File, error) { return nil, fs.ErrNotExist }

func (endless) ReadDir(string) ([]fs.DirEntry, error) {
	return fs.ReadDir(fstest.MapFS{"1/x": {}, "2/x": {}, "x.jpg": {}}, ".")
}

// forged is a tree of one folder with the given entries.
type forged []fs.DirEntry

func (f forged) Open(string) (fs.File, error)          { return nil, fs.ErrNotExist }
func (f forged) ReadDir(string) ([]fs.DirEntry, error) { return f, nil }

// entry is its own FileInfo.
type entry string

func (e entry) Name() string               { return string(e) }
func (e entry) IsDir() bool                { return false }
func (e entry) Type() fs.FileMode          { return 0 }
func (e entry) Info() (fs.FileInfo, error) { return e, nil }
func (e entry) Size() int64                { return 0 }
func (e entry) Mode() fs.FileMode          { return 0o600 }
func (e entry) ModTime() time.Time         { return time.Time{} }
func (e entry) Sys() any                   { return nil }

func TestForgedTreesAreRefused(t *testing.T) {
	t.Parallel()
	for name, tree := range map[string]forged{
		"Duplicate": {entry("a"), entry("b"), entry("a")},
		"Upwards":   {entry("..")},
		"Itself":    {entry(".")},
		"Empty":     {entry("")},
		"Absolute":  {entry("/etc/passwd")},
		"Path":      {entry("a/../../b")},
		"Zero":      {entry("a\x00")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := archive.Write(t.Context(), io.Discard, tree, nil, archive.Limits{}); !errors.Is(err, archive.ErrUnsafe) {
				t.Errorf("Write: want %v, got %v", archive.ErrUnsafe, err)
			}
			ruled := append(forged{entry(".sourceignore")}, tree...)
			if _, err := archive.ReadRules(t.Context(), ruled, nil, archive.Limits{}); !errors.Is(err, archive.ErrUnsafe) {
				t.Errorf("ReadRules: want %v, got %v", archive.ErrUnsafe, err)
			}
		})
	}
}

// lying announces other sizes than its files have.
type lying struct {
	fs.FS
	by int64
}

func (l lying) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(l.FS, name)
	for i, e := range entries {
		entries[i] = lyingEntry{e, l.by}
	}
	return entries, err
}

type lyingEntry struct {
	fs.DirEntry
	by int64
}

func (e lyingEntry) Info() (fs.FileInfo, error) {
	info, err := e.DirEntry.Info()
	return lyingInfo{info, e.by}, err
}

type lyingInfo struct {
	fs.FileInfo
	by int64
}

func (i lyingInfo) Size() int64 { return i.FileInfo.Size() + i.by }

func TestFilesThatChangeAreErrors(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{"changing": {Data: []byte("body")}, "other": {Data: []byte("body")}}
	for by, want := range map[int64]string{
		-1: `"changing": it grew`, 1: `"changing": it ended`, -1000: `"changing": it is no regular file`,
	} {
		err := archive.Write(t.Context(), io.Discard, lying{tree, by}, nil, archive.Limits{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a file announced with %d bytes more: want %s, got %v", by, want, err)
		}
	}
}

func TestWriteFailsWithItsDestination(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	err := archive.Write(t.Context(), failing{full}, sample(), nil, archive.Limits{})
	if !errors.Is(err, full) {
		t.Errorf("want %v, got %v", full, err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestWriteEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := archive.Write(ctx, io.Discard, sample(), nil, archive.Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Write: %v", err)
	}
	if _, err := archive.ReadRules(ctx, sample(), nil, archive.Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("ReadRules: %v", err)
	}
}
