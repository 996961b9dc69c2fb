package pkgrepo

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/git"
)

// The file in which a repository lists its packages on request. Packages are never in a hidden folder, and what deploys a branch
// takes a file without an extension for none of its own.
const (
	indexFolder = ".sluice"
	indexFile   = "index"
)

// index is the edit that brings the file with the packages up to date, as they are once all is done that is planned: a line for each
// that is on the branch, with its path, its newest revision, and all its tags, the newest first. Tabs are between them.
func (p *plan) index() git.Edit {
	var text bytes.Buffer
	for _, path := range p.listed() {
		tags := slices.Clone(p.tags[path])
		slices.Reverse(tags)
		if pkg := p.snapshot.Package(path); pkg != nil {
			for i := range pkg.Published {
				tags = append(tags, pkg.Published[i].Name)
			}
		}
		if len(tags) > 0 {
			fmt.Fprintf(&text, "%s\t%s\t%s\n", path, tags[0], strings.Join(tags, " "))
		}
	}
	edit := git.Edit{Path: p.path(indexFolder)}
	if text.Len() > 0 {
		edit.Files = []git.File{{Path: indexFile, Mode: 0o644, Content: text.Bytes()}}
	}
	return edit
}

// listed are the paths of the packages that will be on the branch, in order.
func (p *plan) listed() (paths []string) {
	for _, path := range p.snapshot.paths() {
		if p.snapshot.Packages[path].Branch != nil && len(p.tags[path]) == 0 && !p.gone[path] {
			paths = append(paths, path)
		}
	}
	for path, tags := range p.tags {
		if len(tags) > 0 && !p.gone[path] {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}
