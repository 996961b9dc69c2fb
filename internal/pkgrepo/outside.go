package pkgrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/printable"
)

// maxOutside is how many files outside of a package are named.
const maxOutside = 20

// maxOutsideBytes is how long their names may be together.
const maxOutsideBytes = 1 << 10

// outsideKey is an open change that was compared with the branch at a commit.
type outsideKey struct {
	remote, head string
	spot
}

// propose plans that a draft becomes a proposal.
func (p *plan) propose(ctx context.Context, t *task, pkg *Package) error {
	if draft := pkg.open(t.workspace, Draft); draft != nil && expect(t, draft) == nil {
		if err := errors.Join(p.isInside(ctx, draft), p.isOfBranch(ctx, draft)); err != nil {
			return err
		}
	}
	return p.move(t, pkg, Draft, Proposed)
}

// isInside returns ErrOutside for an open change with files outside of its package's folder: its publication would omit them. A
// change that was made here alone has none.
func (p *plan) isInside(ctx context.Context, change *Revision) error {
	if change.IsOwn {
		return nil
	}
	found, err := p.changesOutside(ctx, change)
	if err != nil || found.Count == 0 {
		return err
	}
	return fmt.Errorf("%w: folder %s is the package, and the change also has %s (%d in all); remove them from the change, or commit them to the branch separately",
		ErrOutside, shown(p.path(change.Package)), printable.Line(strings.Join(found.Paths, ", "), maxOutsideBytes), found.Count)
}

// changesOutside compares an open change with the head of the branch and the commits of it that the change stands on. A draft that was
// merged with the branch, or caught up with it, stands on several: a file that equals that of one of them is unchanged.
func (p *plan) changesOutside(ctx context.Context, change *Revision) (found git.Difference, err error) {
	key := outsideKey{p.snapshot.known.remote, p.snapshot.Head, p.spot(p.snapshot, change.Commit, change.Package)}
	if known, ok := recall[git.Difference](p.depot.memory, key); ok {
		return known, nil
	}
	wants := []git.Want{{Hash: change.Commit, Ref: change.Ref}}
	bases := []string{""} // Without any, nothing was there before.
	if p.snapshot.Head != "" {
		under, err := p.depot.client.StandsOn(ctx, p.settings.Fetch, git.Want{Hash: p.snapshot.Head, Ref: p.branch}, wants[0])
		if err != nil {
			return found, err
		}
		if len(under) > 0 {
			bases = under
		}
		if !slices.Contains(bases, p.snapshot.Head) {
			bases = append(bases, p.snapshot.Head) // It may have been merged as another commit.
		}
	}
	for _, base := range bases {
		if base != "" {
			wants = append(wants, git.Want{Hash: base, Ref: p.branch})
		}
	}
	commits, err := p.depot.client.FetchAll(ctx, p.settings.Fetch, wants)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, git.CloseAll(commits)) }()
	for _, commit := range commits {
		if commit == nil {
			return found, errBaseGone
		}
	}
	if found, err = p.leastOutside(ctx, commits, bases, p.isOutside(change.Package, commits[0])); err == nil {
		weight := len(key.head) + len(key.commit) + len(key.path)
		for _, file := range found.Paths {
			weight += len(file)
		}
		p.depot.memory.put(key, found, int64(weight))
	}
	return found, err
}

// isOutside tells of a path that it is outside of a package's folder, or in a package below it, or leads to one. The branch has that package,
// or had it when the change with the tip was begun: a publication leaves out the files of both.
func (p *plan) isOutside(pkg string, tip *git.Commit) func(path string) bool {
	folder := p.path(pkg)
	var inner []string
	for _, below := range p.snapshot.within(pkg) {
		isThere := p.snapshot.Package(below).isOnBranch()
		if !isThere && p.snapshot.Package(below).Newest() != nil {
			_, err := tip.Tree().Lstat(p.path(below) + "/" + kpt.KptfileName)
			isThere = !errors.Is(err, fs.ErrNotExist)
		}
		if isThere {
			inner = append(inner, p.path(below))
		}
	}
	isBelow := func(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }
	return func(path string) bool {
		return !isBelow(path, folder) || slices.ContainsFunc(inner, func(at string) bool { return isBelow(path, at) || isBelow(at, path) })
	}
}

// leastOutside compares the first of the commits with each of the bases, and returns the smallest difference.
func (p *plan) leastOutside(ctx context.Context, commits []*git.Commit, bases []string, isOutside func(string) bool) (found git.Difference, err error) {
	objects := p.depot.client.Compose(ctx, commits...)
	defer func() { err = errors.Join(err, objects.Close()) }()
	for i, base := range bases {
		d := git.Difference{Skip: func(path string) bool { return !isOutside(path) }, Most: maxOutside}
		if err := objects.Differ(ctx, base, commits[0].Hash, &d); err != nil {
			return found, err
		}
		if i == 0 || d.Count < found.Count {
			found = git.Difference{Paths: d.Paths, Count: d.Count}
		}
	}
	return found, nil
}
