package pkgrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/revision"
)

// Selector chooses a state of a package. Exactly one of the fields behind Package is set.
type Selector struct {
	// Package is the path below the repository's directory.
	Package string
	// Revision is the number of a published one, v3 or 3, or the name of one with a semantic version, v1.2.0. What other branches
	// have published is none, also for a Range.
	Revision string
	// Tag is the last part of one of the package's tags, <path>/<tag>, or else a tag of the repository, whatever branch has it.
	Tag string
	// Branch is a short name. It need not be the one that packages are published on.
	Branch string
	// Range selects the highest semantic version among the package's tags and those of the repository, as
	// revision.Range says; prereleases are selected only by a range that names one. Of versions that differ in build metadata
	// alone, the one with the higher metadata is taken, and the package's own tag before the repository's.
	Range string
	// Commit is taken in the place of what the revision, tag or branch leads to, which need not be there any more; a tag that is
	// not is taken for one of the repository.
	Commit string
}

// Found is what a Selector chose.
type Found struct {
	// Ref is the full name of the branch or tag.
	Ref string
	// Revision is the last part of a tag, empty for a branch.
	Revision string
	// Commit is what the ref leads to, and Tree the package's folder in it.
	Commit, Tree string
}

// Resolve chooses from the last snapshot. Where the tree is not known, the commit is fetched. The error is ErrNotFound, also for
// a package that is not in the chosen commit, ErrSelector, or one of package git.
func (r *Repository) Resolve(ctx context.Context, s Selector) (Found, error) {
	w, err := r.work()
	if err != nil {
		return Found{}, err
	}
	snapshot := r.Snapshot()
	if snapshot == nil {
		return Found{}, fmt.Errorf("%w: nobody has looked into the repository yet", ErrNotFound)
	}
	if err := CheckPath(s.Package); err != nil {
		return Found{}, err
	}
	if s.Commit != "" {
		return w.hold(ctx, snapshot, s)
	}
	found, err := w.choose(snapshot, s)
	if err != nil {
		return Found{}, snapshot.missing(err)
	}
	found.Commit = snapshot.Refs[found.Ref].Target()
	found.Tree, err = w.treeOf(ctx, snapshot, found, s.Package)
	return found, err
}

// hold is what is known by a ref, at a commit.
func (w work) hold(ctx context.Context, snapshot *Snapshot, s Selector) (found Found, err error) {
	switch own := tagsPrefix + w.path(s.Package) + "/"; {
	case s.Range != "" || countSet(s) != 1:
		return Found{}, fmt.Errorf("%w: a commit needs exactly one of a revision, a tag and a branch", ErrSelector)
	case s.Revision != "":
		found.Ref = own + s.Revision
	case s.Tag != "":
		found.Ref = tagsPrefix + strings.TrimPrefix(s.Tag, tagsPrefix)
		if chosen, err := chooseTag(snapshot, own, s.Tag); err == nil {
			found.Ref = chosen.Ref
		}
	default:
		found.Ref = headsPrefix + strings.TrimPrefix(s.Branch, headsPrefix)
	}
	if s.Branch == "" {
		found.Revision = found.Ref[strings.LastIndexByte(found.Ref, '/')+1:]
	}
	found.Commit = s.Commit
	known := found
	if snapshot.Refs[found.Ref].Target() != s.Commit {
		known.Ref = w.refOf(s.Commit, s.Package) // What has moved away does not lead there.
	}
	found.Tree, err = w.treeOf(ctx, snapshot, known, s.Package)
	if errors.Is(err, git.ErrRefNotFound) {
		err = fmt.Errorf("commit %s: %w", shown(s.Commit), ErrNotFound)
	}
	return found, err
}

// countSet is how many of the fields that choose a ref are set.
func countSet(s Selector) (set int) {
	for _, value := range []string{s.Revision, s.Tag, s.Branch, s.Range} {
		if value != "" {
			set++
		}
	}
	return set
}

// choose finds the ref.
func (w work) choose(snapshot *Snapshot, s Selector) (Found, error) {
	own := tagsPrefix + w.path(s.Package) + "/"
	switch {
	case countSet(s) != 1:
		return Found{}, fmt.Errorf("%w: it needs exactly one of a revision, a tag, a branch and a range", ErrSelector)
	case s.Revision != "":
		return w.chooseRevision(snapshot, s.Package, s.Revision)
	case s.Tag != "":
		return chooseTag(snapshot, own, s.Tag)
	case s.Range != "":
		if snapshot.RefsLeftOut > 0 { // One that is left out may be the highest.
			if err := cmp.Or(snapshot.CheckKnown(s.Package), snapshot.CheckKnown("")); err != nil {
				return Found{}, err
			}
		}
		return w.chooseRange(snapshot, s.Package, s.Range)
	}
	ref := headsPrefix + strings.TrimPrefix(s.Branch, headsPrefix)
	if _, ok := snapshot.Refs[ref]; !ok {
		return Found{}, fmt.Errorf("branch %s: %w", shown(s.Branch), ErrNotFound)
	}
	return Found{Ref: ref}, nil
}

func (w work) chooseRevision(snapshot *Snapshot, pkg, name string) (Found, error) {
	if number := parseNumber(name); number > 0 {
		name = numbered(number)
	} else if _, _, ok := parseName(name); !ok {
		return Found{}, fmt.Errorf("%w: revision %s is neither a number such as v3 nor a version such as v1.2.0", ErrSelector, shown(name))
	}
	if err := w.notPublished(snapshot, pkg, name); err != nil {
		return Found{}, fmt.Errorf("revision %s: %w", shown(name), err)
	}
	return Found{Ref: w.ref(place{Published, pkg, name}), Revision: name}, nil
}

func chooseTag(snapshot *Snapshot, own, tag string) (Found, error) {
	tag = strings.TrimPrefix(tag, tagsPrefix)
	for _, prefix := range []string{own, tagsPrefix} {
		if _, ok := snapshot.Refs[prefix+tag]; ok {
			return Found{Ref: prefix + tag, Revision: tag[strings.LastIndexByte(tag, '/')+1:]}, nil
		}
	}
	return Found{}, fmt.Errorf("tag %s: %w", shown(tag), ErrNotFound)
}

func (w work) chooseRange(snapshot *Snapshot, pkg, text string) (Found, error) {
	wanted, err := revision.ParseRange(text)
	if err != nil {
		return Found{}, fmt.Errorf("%w: %w", ErrSelector, err)
	}
	var names []string
	own, isOwn := tagsPrefix+w.path(pkg)+"/", map[string]bool{}
	for ref := range snapshot.Refs {
		if tag, ok := strings.CutPrefix(ref, own); ok {
			if isOwn[tag] = w.notPublished(snapshot, pkg, tag) == nil; isOwn[tag] {
				names = append(names, tag)
			}
		} else if tag, ok := strings.CutPrefix(ref, tagsPrefix); ok {
			names = append(names, tag)
		}
	}
	best := ""
	for _, tag := range wanted.Latest(names) {
		if best == "" || compareTies(tag, best) > 0 {
			best = tag
		}
	}
	if best == "" {
		return Found{}, fmt.Errorf("version in the range %s: %w", shown(text), ErrNotFound)
	}
	if !isOwn[best] {
		own = tagsPrefix
	}
	return Found{Ref: own + best, Revision: best}, nil
}

// compareTies orders names of versions that are equal in precedence: by build metadata, whose numbers count as such, then by
// text. The specification gives them no order; what matters is that it is the same one each time, and the one people mean.
func compareTies(a, b string) int {
	_, first, _ := strings.Cut(a, "+")
	_, second, _ := strings.Cut(b, "+")
	left, right := strings.Split(first, "."), strings.Split(second, ".")
	for i := range min(len(left), len(right)) {
		if order := compareParts(left[i], right[i]); order != 0 {
			return order
		}
	}
	return cmp.Or(cmp.Compare(len(left), len(right)), strings.Compare(a, b))
}

func compareParts(a, b string) int {
	first, noNumber := strconv.ParseUint(a, 10, 64)
	second, noOther := strconv.ParseUint(b, 10, 64)
	if noNumber != nil || noOther != nil || first == second {
		return strings.Compare(a, b)
	}
	return cmp.Compare(first, second)
}

// treeOf is the tree of a package in a chosen commit.
func (w work) treeOf(ctx context.Context, snapshot *Snapshot, found Found, pkg string) (string, error) {
	at := w.spot(snapshot, found.Commit, pkg)
	missing := fmt.Errorf("package %s in %s: %w", shown(pkg), shown(found.Ref), ErrNotFound)
	d, ok := snapshot.known.details[at]
	if !ok {
		d, ok = recall[detail](w.depot.memory, detailKey{snapshot.known.remote, at})
	}
	if ok {
		return d.tree, d.err
	}
	commit, err := w.depot.client.Fetch(ctx, w.settings.Fetch, git.Want{Hash: found.Commit, Ref: found.Ref})
	if err != nil {
		return "", err
	}
	d.tree, err = commit.TreeID(at.path, snapshot.inner(pkg)...)
	if err != nil {
		d.err = missing
	}
	w.depot.memory.put(detailKey{snapshot.known.remote, at}, d, d.weight(at))
	return d.tree, errors.Join(d.err, commit.Close())
}
