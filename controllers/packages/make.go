package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/merge"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/variant"
)

// maker makes a variant's package of what the repository has.
type maker struct {
	*brief

	shared Shared
	policy packagesv1.ConflictPolicy
	// timeout bounds the merging and rendering.
	timeout time.Duration
	// workspace is that of the draft that is written to; empty for a new one.
	workspace string
	// computes says that what is in the draft does not count: the package is made of what is on the branch, for an approval by the
	// spec.
	computes bool
	// previews is how many changes the preview of a set names; zero for what is made for the variant itself.
	previews int
	// before are the conflicts of the open change until now.
	before conflictList
	// kept is filled in with what was made last.
	kept *made
}

// make makes the package, in a slot, as often as the repository has moved meanwhile. Memory is that of the repository's round:
// who has some waits for no more.
func (m *maker) make(ctx context.Context, cur pkgrepo.Current) (done pkgrepo.Made, err error) {
	slot, err := m.shared.Slots.Take(ctx, fair.Wish{Namespace: m.downRepo.Namespace})
	if err != nil {
		return done, fmt.Errorf("wait for a slot to make the package: %w", err)
	}
	defer slot.Release()
	ctx, cancel := context.WithTimeoutCause(ctx, m.timeout, errMakeTimeout)
	defer cancel()
	err = memory.Part(ctx, func(ctx context.Context) error {
		done, err = m.update(ctx, cur)
		return err
	})
	if err != nil && errors.Is(context.Cause(ctx), errMakeTimeout) {
		err = fmt.Errorf("%w: spec.timeout of %s is over: %w", pkgrepo.ErrTimeout, m.timeout, err)
	}
	return done, err
}

// errMakeTimeout is why making a package ends that takes longer than its variant allows.
var errMakeTimeout = errors.New("spec.timeout is over")

// stands tells why the order does not stand any more. It may have waited, and the repository have moved on since: a draft that was
// begun meanwhile is not begun twice, and one that has gone is not begun again.
func (m *maker) stands(ctx context.Context, cur pkgrepo.Current) error {
	open, err := m.shared.claim(ctx, m.brief, m.down.Snapshot().Package(m.downstream))
	switch {
	case err != nil:
		return err
	case cur.Open == nil && m.workspace != "":
		return pkgrepo.ErrGone
	case open != nil && (cur.Open == nil || cur.Open.Workspace != open.Workspace),
		cur.Open == nil && cur.Branch != nil && m.makes(cur.Branch):
		return pkgrepo.ErrExists
	}
	return nil
}

// read reads the upstream package. The order may have waited, and other keys be trusted since: it is verified again.
func (m *maker) read(ctx context.Context) (kpt.Package, error) {
	up := m.shared.mirrors.get(m.up.key)
	if up == nil {
		return nil, notRead(m.up.key.Name)
	}
	if err := up.verify(ctx, m.ref, m.blueprint.Commit); err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	return m.shared.blueprints.read(ctx, m.brief)
}

// ignoresDraft tells whether the draft is computed anew. A person may have committed to it since that was ordered.
func (m *maker) ignoresDraft(cur pkgrepo.Current) bool {
	return m.computes && (cur.Open == nil || cur.Open.IsOwn)
}

// withoutDraft is what a Write would find without an open change.
func withoutDraft(cur pkgrepo.Current, onBranch kpt.Package) pkgrepo.Current {
	if cur.Open != nil {
		cur.Open, cur.Local = nil, nil
	}
	if cur.Branch != nil {
		cur.Local = onBranch
	}
	return cur
}

func (m *maker) update(ctx context.Context, cur pkgrepo.Current) (pkgrepo.Made, error) {
	if err := m.stands(ctx, cur); err != nil {
		return pkgrepo.Made{}, err
	}
	request := variant.Request{Next: variant.Version{Blueprint: m.blueprint, Config: m.config}, Local: cur.Local, Policy: merge.Policy(m.policy)}
	var err error
	if request.Next.Blueprint.Package, err = m.read(ctx); err != nil {
		return pkgrepo.Made{}, err
	}
	if cur.Branch != nil {
		request.Base = cur.Branch.Tree
	}
	onBranch, err := m.branch(ctx, cur)
	if err != nil {
		return pkgrepo.Made{}, err
	}
	if m.ignoresDraft(cur) {
		cur = withoutDraft(cur, onBranch)
		request.Local = cur.Local
	}
	m.kept.isComputed = cur.Open == nil
	var conflicts []merge.Conflict
	if cur.Open != nil && cur.Branch != nil && cur.Open.Facts.Base != cur.Branch.Tree {
		if request.Local, conflicts, err = m.catchUp(ctx, cur, onBranch); err != nil {
			return pkgrepo.Made{}, err
		}
	}
	if facts := factsOf(cur); facts != nil && facts.Lock != nil {
		if err := m.last(ctx, cur, facts, &request); err != nil {
			return pkgrepo.Made{}, err
		}
	}
	outcome, err := variant.Update(ctx, request, m.shared.Renderer)
	m.kept.listed, m.kept.results = m.listed(cur, append(conflicts, outcome.Conflicts...)), outcome.Results
	if err != nil {
		return pkgrepo.Made{}, err
	}
	if outcome.Stands {
		m.kept.adopted, err = m.adopt(cur)
		return pkgrepo.Made{Package: cur.Local, Unchanged: true}, err
	}
	facts, err := kpt.ReadFacts(outcome.Package[kpt.KptfileName].Content)
	if err != nil {
		return pkgrepo.Made{}, err
	}
	m.kept.conditions = facts.Conditions
	m.kept.listed.files = digests(outcome.Package, m.kept.listed.conflicts)
	m.kept.branch = baseOf(cur.Branch)
	m.kept.difference = variant.Diff(onBranch, outcome.Package, cmp.Or(m.previews, packagesv1.MaxChangedFiles))
	if m.previews > 0 {
		m.kept.content = contentDigest(outcome.Package)
	}
	message := m.message(m.subject(cur))
	message.Body, message.Conflicts = m.kept.listed.words(m.policy), m.kept.listed.record()
	message.Config, err = m.intent(m.blueprint.Commit)
	if err == nil && outcome.Pristine {
		message.Pristine = pristine(message.Config, outcome.Package)
	}
	m.kept.isUnchanged = outcome.Unchanged && cur.Open != nil
	return pkgrepo.Made{Package: outcome.Package, Message: message, Unchanged: m.kept.isUnchanged}, err
}

// listed are the conflicts that the update met, and those of the draft that it was made in.
func (m *maker) listed(cur pkgrepo.Current, met []merge.Conflict) conflictList {
	before := m.before
	if cur.Open == nil {
		before = conflictList{}
	}
	list := newConflictList(conflicted(met), before)
	if m.previews == 0 { // The preview of a set has a file with all of them.
		list.trim()
	}
	return list
}

// subject is the first line of the commit.
func (m *maker) subject(cur pkgrepo.Current) string {
	what := "Update"
	if cur.Local == nil {
		what = "Begin"
	}
	return fmt.Sprintf("%s %s from %s", what, m.downstream, m.blueprint.Ref)
}

// branch is the package as it is on the branch; empty where it is not.
func (m *maker) branch(ctx context.Context, cur pkgrepo.Current) (kpt.Package, error) {
	switch {
	case cur.Branch == nil:
		return kpt.Package{}, nil
	case cur.Open == nil:
		return cur.Local, nil
	}
	return m.down.Read(ctx, cur.Branch.Commit, m.downstream)
}

// catchUp puts into the draft what was changed on the branch since the draft was begun. In a conflict, what is on the branch is
// people's, and what is in the draft is taken for upstream's, which is what most of it was made for.
func (m *maker) catchUp(ctx context.Context, cur pkgrepo.Current, now kpt.Package) (kpt.Package, []merge.Conflict, error) {
	begun := kpt.Package{}
	if base := cur.Open.Facts.Base; base != "" && base != kpt.BaseNone {
		var err error
		if begun, err = m.down.ReadTree(ctx, m.downstream, base); err != nil && !errors.Is(err, pkgrepo.ErrNotFound) {
			return nil, nil, fmt.Errorf("read what the draft was begun on: %w", err)
		}
	}
	merged, conflicts, err := merge.Merge(begun, cur.Local, now, merge.Policy(m.policy))
	if err == nil && m.policy == packagesv1.ConflictFail && len(conflicts) > 0 {
		m.kept.listed = newConflictList(conflicted(conflicts), conflictList{})
		m.kept.listed.trim()
		err = fmt.Errorf("%w: %s", variant.ErrConflict, conflicts[0])
	}
	return merged, conflicts, err
}

// factsOf are those of the package that is there; nil where there is none.
func factsOf(cur pkgrepo.Current) *kpt.Facts {
	switch {
	case cur.Open != nil:
		return &cur.Open.Facts
	case cur.Branch != nil:
		return &cur.Branch.Facts
	}
	return nil
}

// mayRead tells whether a lock names the folder of the repository that the variant follows, or that the package on the branch was made
// from: there, or in a Repository that has another URL by now. Anybody who may push to a draft could have other content read otherwise,
// and its values shown as those of conflicts.
func (m *maker) mayRead(lock *kpt.Lock, branch *pkgrepo.Revision) (there, elsewhere bool) {
	made := []kpt.Lock{{Repo: m.blueprint.Repo, Directory: m.blueprint.Directory}}
	if branch != nil && branch.Facts.Lock != nil {
		made = append(made, *branch.Facts.Lock)
	}
	for _, from := range made {
		if path.Join("/", lock.Directory) == path.Join("/", from.Directory) {
			there, elsewhere = there || variant.SameRepository(lock.Repo, from.Repo), true
		}
	}
	return there, elsewhere
}

// moved is the upstream package that a lock names by another URL, from the Repository that the variant follows now: a server that has
// moved has the same commits.
func (m *maker) moved(ctx context.Context, lock *kpt.Lock) (kpt.Package, error) {
	pkg, ok := below(m.up.directory, lock.Directory)
	if !ok {
		return nil, errNoSource
	}
	return m.up.Read(ctx, lock.Commit, pkg)
}

// pristine names what was made with a configuration, where there are no edits of people in it. Whoever amends the commit changes what
// it has.
func pristine(config string, made kpt.Package) string { return config + " " + contentDigest(made) }

// made is the package as it was made last, before people's edits, from the history of the repository that it is in; nil where that does not
// have it.
func (m *maker) made(ctx context.Context, cur pkgrepo.Current, config string) (kpt.Package, error) {
	there := cmp.Or(cur.Open, cur.Branch)
	found, err := m.down.LastPristine(ctx, there.Commit, m.downstream, config+" ")
	if err != nil || config == "" {
		return nil, ignoreMissing(err)
	}
	read, err := m.down.Read(ctx, found.Commit, m.downstream)
	if err != nil || pristine(config, read) != found.Note {
		return nil, ignoreMissing(err)
	}
	return read, nil
}

func ignoreMissing(err error) error {
	if isGone(err) {
		return nil
	}
	return err
}

// last finds out what the package that is there was made as. Where upstream does not have that any more, its own history may. Otherwise
// all of it counts as people's edits.
func (m *maker) last(ctx context.Context, cur pkgrepo.Current, facts *kpt.Facts, request *variant.Request) error {
	locked, err := kpt.Package(nil), errNoSource
	there, elsewhere := m.mayRead(facts.Lock, cur.Branch)
	if there {
		locked, err = m.shared.locked(ctx, m.downRepo.Namespace, facts.Lock)
	}
	if elsewhere && errors.Is(err, errNoSource) {
		locked, err = m.moved(ctx, facts.Lock)
	}
	switch {
	case errors.Is(err, errNoSource), isGone(err):
		if request.Made, err = m.made(ctx, cur, facts.Config); err != nil {
			return fmt.Errorf("look for what was made last in the history of package %s: %w", m.downstream, err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("read what the package was made from last, commit %s of %s: %w", facts.Lock.Commit, facts.Lock.Repo, err)
	}
	request.Locked = locked
	if config, err := variant.DecodeApplied(facts.Applied); err == nil && facts.Variant != "" {
		blueprint := variant.Blueprint{
			Repo: facts.Lock.Repo, Directory: facts.Lock.Directory, Ref: facts.Lock.Ref, Commit: facts.Lock.Commit, Package: locked,
		}
		request.Last = &variant.Version{Blueprint: blueprint, Config: config}
	}
	return nil
}
