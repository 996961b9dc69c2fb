package tree_test

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"sluice.dev/sluice/internal/tree"
)

func TestOnlyWhatPathsLeadTo(t *testing.T) {
	t.Parallel()
	file := func(name string) *tree.Node { return &tree.Node{Name: name, Mode: 0o644} }
	folder := func(name string, children ...*tree.Node) *tree.Node {
		return &tree.Node{Name: name, Mode: fs.ModeDir | 0o755, Children: children}
	}
	all := &tree.Tree{Root: folder(tree.Root,
		file("a.yaml"), folder("deploy", folder("base", file("x"), file("y")), file("z")), folder("deploy-old", file("o")), folder("docs", file("d")))}
	everything := []string{"a.yaml", "deploy/base/x", "deploy/base/y", "deploy/z", "deploy-old/o", "docs/d"}
	for name, tc := range map[string]struct {
		paths, files []string
		missing      bool
	}{
		"None":             {nil, everything, false},
		"A folder":         {[]string{"deploy"}, []string{"deploy/base/x", "deploy/base/y", "deploy/z"}, false},
		"Spelt otherwise":  {[]string{"./deploy/base/", "/docs"}, []string{"deploy/base/x", "deploy/base/y", "docs/d"}, false},
		"A file":           {[]string{"a.yaml", "deploy/z"}, []string{"a.yaml", "deploy/z"}, false},
		"One in the other": {[]string{"deploy/base/x", "deploy", "deploy/z"}, []string{"deploy/base/x", "deploy/base/y", "deploy/z"}, false},
		"The root":         {[]string{"docs", "."}, everything, false},
		"Out of the root":  {[]string{"../../docs"}, []string{"docs/d"}, false},
		"Nowhere":          {[]string{"docs", "none"}, nil, true},
		"Nowhere and root": {[]string{".", "none"}, nil, true},
		"Part of a name":   {[]string{"dep"}, nil, true},
		"Below a file":     {[]string{"a.yaml/b"}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			only, err := all.Only(tc.paths)
			if tc.missing != errors.Is(err, fs.ErrNotExist) || tc.missing != (err != nil) {
				t.Fatal(err)
			}
			if tc.missing {
				return
			}
			var files []string
			err = fs.WalkDir(only, tree.Root, func(name string, entry fs.DirEntry, err error) error {
				if err == nil && !entry.IsDir() {
					files = append(files, name)
				}
				return err
			})
			if err != nil || !slices.Equal(files, tc.files) {
				t.Errorf("%q, %v", files, err)
			}
		})
	}
}

func TestWithoutFoldersThatHoldAFile(t *testing.T) {
	t.Parallel()
	file := func(name string) *tree.Node { return &tree.Node{Name: name, Mode: 0o644} }
	folder := func(name string, children ...*tree.Node) *tree.Node {
		return &tree.Node{Name: name, Mode: fs.ModeDir | 0o755, Children: children}
	}
	all := &tree.Tree{Root: folder(tree.Root,
		file("K"), folder("apps", folder("db", file("K"), file("a"))), folder("empty"), folder("web", file("K"), folder("x", file("K"))))}
	for name, tc := range map[string]struct{ marks, want []string }{
		"none":               {nil, []string{"K", "apps/db/K", "apps/db/a", "empty", "web/K", "web/x/K"}},
		"not there":          {[]string{"web/L", "none/K", "K/K"}, []string{"K", "apps/db/K", "apps/db/a", "empty", "web/K", "web/x/K"}},
		"one in the other":   {[]string{"web/x/K", "web/K"}, []string{"K", "apps/db/K", "apps/db/a", "empty"}},
		"the inner one":      {[]string{"web/x/K"}, []string{"K", "apps/db/K", "apps/db/a", "empty", "web/K"}},
		"all of a folder":    {[]string{"apps/db/K"}, []string{"K", "empty", "web/K", "web/x/K"}},
		"a folder as mark":   {[]string{"apps/db"}, []string{"K", "apps/db/K", "apps/db/a", "empty", "web/K", "web/x/K"}},
		"an empty one stays": {[]string{"empty/K"}, []string{"K", "apps/db/K", "apps/db/a", "empty", "web/K", "web/x/K"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left, err := all.Without(tc.marks)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			err = fs.WalkDir(left, tree.Root, func(name string, entry fs.DirEntry, err error) error {
				if err == nil && (!entry.IsDir() || name == "empty") {
					names = append(names, name)
				}
				return err
			})
			if err != nil || !slices.Equal(names, tc.want) {
				t.Errorf("%q, %v", names, err)
			}
		})
	}
}
