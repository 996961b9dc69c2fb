package pkgrepo

import (
	"cmp"
	"fmt"
	"strings"
)

// The names of refs are those of Porch, so that repositories can be shared with it.
const (
	headsPrefix = "refs/heads/"
	tagsPrefix  = "refs/tags/"

	draftPrefix    = headsPrefix + "drafts/"
	proposedPrefix = headsPrefix + "proposed/"
	deletionPrefix = headsPrefix + "deletionProposed/"
)

// layout says where packages are: on a branch, below a directory, which is empty for the whole tree.
type layout struct{ branch, directory string }

// newLayout checks what a person wrote. The error is ErrName.
func newLayout(branch, directory string) (layout, error) {
	l := layout{branch: headsPrefix + cmp.Or(strings.TrimPrefix(branch, headsPrefix), "main"), directory: strings.Trim(directory, "/")}
	if err := CheckPath(strings.TrimPrefix(l.branch, headsPrefix)); err != nil {
		return layout{}, fmt.Errorf("branch: %w", err)
	}
	if l.directory == "" || l.directory == "." {
		l.directory = ""
		return l, nil
	}
	if err := CheckPath(l.directory); err != nil {
		return layout{}, fmt.Errorf("directory: %w", err)
	}
	return l, nil
}

// place is what a ref is to the packages: an open change, a flag, or a published revision.
type place struct {
	lifecycle Lifecycle
	pkg       string // below the directory
	name      string // the workspace of an open change, else the last part of the tag
}

// parse reads the full name of a ref; ok is false for those that are none of the packages', of other directories, or not safe.
func (l layout) parse(ref string) (p place, ok bool) {
	if ref == l.branch {
		return place{}, false
	}
	rest, isRef := "", false
	for _, known := range []struct {
		prefix    string
		lifecycle Lifecycle
	}{{draftPrefix, Draft}, {proposedPrefix, Proposed}, {deletionPrefix, DeletionProposed}, {tagsPrefix, Published}} {
		if rest, isRef = strings.CutPrefix(ref, known.prefix); isRef {
			p.lifecycle = known.lifecycle
			break
		}
	}
	last := strings.LastIndexByte(rest, '/')
	if !isRef || last < 0 {
		return place{}, false
	}
	if p.pkg, ok = l.below(rest[:last]); !ok {
		return place{}, false
	}
	p.name = rest[last+1:]
	return p, CheckPath(rest[:last]) == nil && CheckWorkspace(p.name) == nil
}

// below is the package of a path, unless that is not in the directory.
func (l layout) below(path string) (pkg string, ok bool) {
	if l.directory == "" {
		return path, path != ""
	}
	pkg, ok = strings.CutPrefix(path, l.directory+"/")
	return pkg, ok && pkg != ""
}

// path is where the package's folder is.
func (l layout) path(pkg string) string {
	if l.directory == "" {
		return pkg
	}
	return l.directory + "/" + pkg
}

// ref is the full name of what parse reads.
func (l layout) ref(p place) string {
	prefix := tagsPrefix
	switch p.lifecycle {
	case Draft:
		prefix = draftPrefix
	case Proposed:
		prefix = proposedPrefix
	case DeletionProposed:
		prefix = deletionPrefix
	case Published:
	}
	return prefix + l.path(p.pkg) + "/" + p.name
}
