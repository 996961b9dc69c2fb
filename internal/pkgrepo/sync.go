package pkgrepo

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"sluice.dev/sluice/internal/git"
)

// maxLooks is how often a repository is listed again in which something moves while it is looked at.
const maxLooks = 3

// Sync looks what the repository has now, and tells whether anything has moved since the last look. It costs one listing of
// refs, and, if something has moved, one fetch of that. Where a crash has left a publication half done, on a server
// without atomic pushes, it is completed.
//
// The error is one of package git, ErrName, or ErrLimit where there is no memory; the last snapshot stays then. What is wrong with one
// package is said in its revisions and is no error, nor are packages and refs beyond a bound: see CheckKnown and Problems.
func (r *Repository) Sync(ctx context.Context) (*Snapshot, bool, error) {
	w, end, err := r.alone(ctx)
	if err != nil {
		return nil, false, err
	}
	defer end()
	before := r.Snapshot()
	s, err := w.sync(ctx)
	if err != nil {
		return before, false, err
	}
	return s, s != before, nil
}

// sync is Sync for who is alone.
func (w work) sync(ctx context.Context) (*Snapshot, error) {
	before := w.Snapshot()
	s, err := w.look(ctx)
	if err != nil || s == before {
		return s, err
	}
	if s, err = w.finish(ctx, s); err != nil {
		return nil, err
	}
	if err := w.depot.holdings.take(w.Repository, holding{w.settings.Tenant, s.bytes()}); err != nil {
		return nil, err
	}
	w.last.Store(s)
	return s, nil
}

// look lists the refs, and makes a snapshot of them unless nothing has moved.
func (w work) look(ctx context.Context) (*Snapshot, error) {
	for tries := 1; ; tries++ {
		listed, err := w.depot.client.ListRefs(ctx, w.settings.Fetch, headsPrefix, tagsPrefix)
		if err != nil && !errors.Is(err, git.ErrEmptyRepository) {
			return nil, err
		}
		before := w.Snapshot()
		if before != nil && !before.partial && before.known.remote == w.settings.Fetch.Key() && w.isOf(before, listed) {
			return before, nil
		}
		s, err := w.describe(ctx, byName(listed), tries == maxLooks)
		if err == nil {
			s, err = w.fit(ctx, s, byName(listed), tries == maxLooks)
		}
		if errors.Is(err, errVanished) {
			continue
		}
		if err == nil && s.excess != "" {
			s.listing = w.digest(listed)
		}
		return s, err
	}
}

// errVanished says that a commit is not there any more that was there when the refs were listed.
var errVanished = errors.New("a commit has vanished")

// describe makes a snapshot of what refs lead to. Where a commit is not to be had, that is errVanished, or the revision's error
// if it is not worth another look.
func (w work) describe(ctx context.Context, refs map[string]git.Ref, last bool) (*Snapshot, error) {
	s := w.survey(refs)
	s.known = w.begin(w.Snapshot())
	e := &explorer{work: w, snapshot: s, last: last, passing: map[string]error{}, fetches: maxFetches}
	if err := e.explore(ctx); err != nil {
		return nil, err
	}
	s.known.end()
	s.reportUnreadable()
	w.reportInTheWay(s)
	s.cut()
	return s, nil
}

// absorb makes the snapshot that there is after updates of refs, without asking anybody: what was pushed is at hand.
func (w work) absorb(ctx context.Context, updates []git.Update) error {
	before := w.Snapshot()
	refs := make(map[string]git.Ref, len(before.Refs)+len(updates))
	maps.Copy(refs, before.Refs)
	for _, update := range updates {
		delete(refs, update.Ref)
		if update.New != "" {
			refs[update.Ref] = git.Ref{Name: update.Ref, Hash: update.New}
		}
	}
	s, err := w.describe(ctx, refs, true)
	if err != nil {
		return fmt.Errorf("look at what was pushed: %w", err)
	}
	s.carry(before)
	w.last.Store(s)
	return nil
}
