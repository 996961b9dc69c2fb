package storage_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/storage"
)

func TestParsePathAcceptsOnlyPlainFiles(t *testing.T) {
	t.Parallel()
	type want struct {
		object storage.Object
		file   string
		err    error
	}
	podinfo := storage.Object{Kind: "gitrepository", Namespace: "default", Name: "podinfo"}
	longest := strings.Repeat("n", 253)
	cases := map[string]struct {
		reason string
		path   string
		want   want
	}{
		"Plain": {
			reason: "A kind, a namespace, a name and a file make a path.",
			path:   "gitrepository/default/podinfo/abc.tar.gz",
			want:   want{object: podinfo, file: "abc.tar.gz"},
		},
		"LongestName": {
			reason: "The longest name an API object may have fits.",
			path:   "gitrepository/default/" + longest + "/abc.tar.gz",
			want:   want{object: storage.Object{Kind: "gitrepository", Namespace: "default", Name: longest}, file: "abc.tar.gz"},
		},
		"DotsInside": {
			reason: "Dots inside a segment mean nothing special.",
			path:   "gitrepository/default/podinfo/a..b.tgz",
			want:   want{object: podinfo, file: "a..b.tgz"},
		},
		"BuildMetadata": {
			reason: "Chart versions carry a plus sign.",
			path:   "gitrepository/default/podinfo/podinfo-1.0.0+build.tgz",
			want:   want{object: podinfo, file: "podinfo-1.0.0+build.tgz"},
		},
		"Empty":        {reason: "No path at all.", path: "", want: want{err: storage.ErrInvalidPath}},
		"Folder":       {reason: "A folder is not a file.", path: "gitrepository/default/podinfo", want: want{err: storage.ErrInvalidPath}},
		"Slash":        {reason: "A trailing slash is an empty file name.", path: "gitrepository/default/podinfo/", want: want{err: storage.ErrInvalidPath}},
		"Absolute":     {reason: "A leading slash is an empty kind.", path: "/gitrepository/default/podinfo/a", want: want{err: storage.ErrInvalidPath}},
		"DoubleSlash":  {reason: "A double slash is an empty name.", path: "gitrepository/default//a", want: want{err: storage.ErrInvalidPath}},
		"Parent":       {reason: "A path never climbs.", path: "gitrepository/../podinfo/a", want: want{err: storage.ErrInvalidPath}},
		"Here":         {reason: "A path never stands still.", path: "gitrepository/./podinfo/a", want: want{err: storage.ErrInvalidPath}},
		"Hidden":       {reason: "The storage's own files are hidden.", path: ".sluice/blobs/sha256/abc", want: want{err: storage.ErrInvalidPath}},
		"HiddenFile":   {reason: "A hidden file is never published.", path: "gitrepository/default/podinfo/.a", want: want{err: storage.ErrInvalidPath}},
		"Backslash":    {reason: "A backslash separates on some systems.", path: `gitrepository/default/podinfo/..\a`, want: want{err: storage.ErrInvalidPath}},
		"NUL":          {reason: "NUL ends a name in the kernel.", path: "gitrepository/default/podinfo/a\x00b", want: want{err: storage.ErrInvalidPath}},
		"Newline":      {reason: "A control character forges log lines.", path: "gitrepository/default/podinfo/a\nb", want: want{err: storage.ErrInvalidPath}},
		"NotUTF8":      {reason: "A broken name cannot be written into a status.", path: "gitrepository/default/podinfo/\xff", want: want{err: storage.ErrInvalidPath}},
		"TooDeep":      {reason: "There are no subfolders.", path: "gitrepository/default/podinfo/a/b", want: want{err: storage.ErrInvalidPath}},
		"OverlongFile": {reason: "File systems refuse such a name.", path: "gitrepository/default/podinfo/" + strings.Repeat("a", 256), want: want{err: storage.ErrInvalidPath}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object, file, err := storage.ParsePath(tc.path)
			if !errors.Is(err, tc.want.err) {
				t.Fatalf("%s\nParsePath(%q): want error %v, got %v", tc.reason, tc.path, tc.want.err, err)
			}
			if diff := cmp.Diff(tc.want.object, object); diff != "" {
				t.Errorf("%s\nParsePath(%q): -want, +got:\n%s", tc.reason, tc.path, diff)
			}
			if file != tc.want.file {
				t.Errorf("%s\nParsePath(%q): want file %q, got %q", tc.reason, tc.path, tc.want.file, file)
			}
		})
	}
}

func TestObjectOwnsOnlyItsFolder(t *testing.T) {
	t.Parallel()
	object := storage.Object{Kind: "gitrepository", Namespace: "default", Name: "podinfo"}
	if err := object.CheckPath(object.File("a.tar.gz")); err != nil {
		t.Errorf("A file in the folder: %v", err)
	}
	if err := object.CheckPath("gitrepository/default/other/a.tar.gz"); !errors.Is(err, storage.ErrInvalidPath) {
		t.Errorf("A file in another folder: want %v, got %v", storage.ErrInvalidPath, err)
	}
	if err := object.Validate(); err != nil {
		t.Errorf("Validate: %v", err)
	}
	for _, hostile := range []storage.Object{{}, {Kind: "a", Namespace: "..", Name: "b"}, {Kind: "a/b", Namespace: "c", Name: "d"}} {
		if err := hostile.Validate(); !errors.Is(err, storage.ErrInvalidPath) {
			t.Errorf("%q: want %v, got %v", hostile, storage.ErrInvalidPath, err)
		}
	}
}

func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{
		"gitrepository/default/podinfo/abc.tar.gz", "a/b/c/d", "../../../etc/passwd", "a/b/c/..", "a/../b/c", "/a/b/c/d",
		"a//b/c", ".sluice/tmp/a/b", "a/b/c/d/", `a/b/c/..\..\d`, "a/b/c/\x00", "a/b/c/%2e%2e", "a/b/c/\u2025", "a/b/c/\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, p string) {
		object, file, err := storage.ParsePath(p)
		if err != nil {
			if !errors.Is(err, storage.ErrInvalidPath) {
				t.Fatalf("ParsePath(%q): the error is not ErrInvalidPath: %v", p, err)
			}
			return
		}
		if object.File(file) != p {
			t.Fatalf("ParsePath(%q) names %q: a path has one spelling", p, object.File(file))
		}
		if !fs.ValidPath(p) || strings.Contains("/"+p, "/.") || strings.ContainsAny(p, "\\\x00") {
			t.Fatalf("ParsePath(%q) let a hostile path through", p)
		}
		if err := object.CheckPath(p); err != nil {
			t.Fatalf("ParsePath(%q): its own object refuses it: %v", p, err)
		}
	})
}
