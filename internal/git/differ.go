package git

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// maxDifferences is how many paths of a Difference are counted.
const maxDifferences = 10_000

// Difference is where two commits differ.
type Difference struct {
	// Skip tells whether a path, and everything below it, does not matter.
	Skip func(path string) bool
	// Most is how many paths are named.
	Most int
	// Paths are the first ones in order, and Count is how many there are: 10,000 at most.
	Paths []string
	Count int
}

// Differ compares the trees of two commits, each one of the bases or made here. An empty id stands for a tree with nothing in it. Folders
// that are equal on both sides are not read.
func (o *Objects) Differ(ctx context.Context, a, b string, d *Difference) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.forget(ctx)
	var roots [2]plumbing.Hash
	for i, commit := range []string{a, b} {
		if commit == "" {
			continue
		}
		var err error
		if roots[i], err = o.rootOf(ctx, commit); err != nil {
			return err
		}
	}
	return o.differ(ctx, d, "", roots)
}

// differ compares two folders of a path. The zero hash is that of a folder which is not there.
func (o *Objects) differ(ctx context.Context, d *Difference, at string, folders [2]plumbing.Hash) error {
	if strings.Count(at, "/") > o.options.MaxTreeDepth {
		return describe(at, limitErrorf("nested deeper than %d directories", o.options.MaxTreeDepth))
	}
	var sides [2]map[string]entry
	names := map[string]bool{}
	for i, hash := range folders {
		if hash.IsZero() {
			continue
		}
		folder, err := o.openTree(ctx, hash)
		if err != nil {
			return describe(at, err)
		}
		sides[i] = folder.entries
		for name := range folder.entries {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		path, left, right := strings.TrimPrefix(at+"/"+name, "/"), sides[0][name], sides[1][name]
		if left == right || d.Count >= maxDifferences || d.Skip(path) {
			continue
		}
		below, isFile := foldersOf([2]entry{left, right})
		if isFile {
			d.add(path)
		}
		if below != [2]plumbing.Hash{} {
			if err := o.differ(ctx, d, path, below); err != nil {
				return err
			}
		}
	}
	return nil
}

// foldersOf are those of two entries that are folders, and whether one of the entries is a file.
func foldersOf(entries [2]entry) (folders [2]plumbing.Hash, isFile bool) {
	for i, e := range entries {
		if e.isDir() {
			folders[i] = e.hash
		} else if e.octal != "" {
			isFile = true
		}
	}
	return folders, isFile
}

func (d *Difference) add(path string) {
	if d.Count++; len(d.Paths) < d.Most {
		d.Paths = append(d.Paths, path)
	}
}
