// Package merge puts together what upstream and people made of a config package: object by object and field by field, so that
// what only one of them changed comes out changed, and what both did is a conflict that is told.
// It does not know where packages come from or what is done about conflicts.
package merge

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/kpt"
)

// Policy says whose change counts where both sides changed the same.
type Policy string

// The policies.
const (
	// Upstream takes what upstream made of it.
	Upstream Policy = "Upstream"
	// Local keeps what people made of it.
	Local Policy = "Local"
	// Fail keeps what people made of it as well: who asks for it looks at the conflicts and goes no further.
	Fail Policy = "Fail"
)

// ErrTooComplex is for documents that are too deep, or that aliases make too large.
var ErrTooComplex = errors.New("the document is too complex to be merged")

// Merge is the local package with upstream's changes: those from base to theirs. Objects are matched by what they are, wherever
// they stand; see the rules of each part. Whatever nobody changed keeps its bytes as local has them, and what only upstream
// changed stands in local's text. Every conflict is listed, whatever the policy, in the order of the files; no more than 10,000 are.
// The same input has the same output. An error is a *kpt.SyntaxError or an ErrTooComplex; none of the packages is changed.
func Merge(base, theirs, local kpt.Package, policy Policy) (kpt.Package, []Conflict, error) {
	switch {
	case base.Equal(theirs) || theirs.Equal(local):
		return local, nil, nil
	case base.Equal(local):
		return theirs, nil, nil
	}
	w, err := newWork(base, theirs, local, policy)
	if err != nil {
		return nil, nil, err
	}
	w.subpackages()
	if err := w.objects(); err != nil {
		return nil, nil, err
	}
	w.files()
	w.collisions()
	slices.SortStableFunc(w.conflicts, func(a, b Conflict) int { return strings.Compare(a.File, b.File) })
	return w.result, w.conflicts, nil
}

// work is one merge.
type work struct {
	// packages are the three sides, and opened what objects are in them.
	packages [sides]kpt.Package
	opened   [sides]*kpt.Resources
	// paths are those of all files, in order, and kptfiles the objects of that kind by the files they are in.
	paths    [sides][]string
	kptfiles [sides]map[string]*kpt.Resource
	shapes   *shapes
	// takesUpstream is that of two changes upstream's counts.
	takesUpstream bool
	// kept are folders in which local stays as it is, and dropped those in which nothing of upstream's is added.
	kept, dropped folderSet
	// sameTexts are files that were compared: those that upstream left alone are true.
	sameTexts map[string]bool
	result    kpt.Package
	conflicts []Conflict
}

func newWork(base, theirs, local kpt.Package, policy Policy) (*work, error) {
	w := &work{
		packages: [sides]kpt.Package{base, theirs, local}, takesUpstream: policy == Upstream,
		kept: folderSet{}, dropped: folderSet{}, sameTexts: map[string]bool{},
	}
	for of, name := range [sides]string{"what was there before", "what upstream makes", "the local package"} {
		var err error
		if w.opened[of], err = kpt.OpenDocuments(w.packages[of]); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		w.paths[of], w.kptfiles[of] = w.packages[of].Paths(), map[string]*kpt.Resource{}
		for _, item := range w.opened[of].Items {
			if item.IsKptfile() {
				w.kptfiles[of][item.File] = item
			}
		}
	}
	w.shapes = newShapes(w.opened[inTheirs].Items, w.opened[inLocal].Items, w.opened[inBase].Items)
	return w, nil
}

// maxConflicts bounds how many conflicts are listed.
const maxConflicts = 10_000

// report keeps a conflict.
func (w *work) report(conflict Conflict) {
	if len(w.conflicts) < maxConflicts {
		w.conflicts = append(w.conflicts, conflict)
	}
}

// folderSet are folders, with all that is beneath them.
type folderSet map[string]bool

// has tells whether the file is in one of the folders.
func (f folderSet) has(file string) bool {
	for at := strings.LastIndexByte(file, '/'); at >= 0; at = strings.LastIndexByte(file[:at], '/') {
		if f[file[:at]] {
			return true
		}
	}
	return false
}
