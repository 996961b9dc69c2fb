package pkgrepo_test

import (
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/pkgrepo"
)

// TestTwoTenantsLeaveMemoryForOthers: they have as many large repositories as they like. Those are known in part, and who comes next, and
// who was there before, are known in full.
func TestTwoTenantsLeaveMemoryForOthers(t *testing.T) {
	t.Parallel()
	s, large := newShop(t, overHTTP, func(s *shop) { s.options.MaxSnapshotBytes = 8_000_000 }), newShop(t, overHTTP)
	head := s.Commit("main", "app", packaged("app"))
	for i := range 20 {
		s.Tag(fmt.Sprintf("app/v%d", i+1), head, false)
	}
	first := large.Commit("main", "app", packaged("app"))
	large.manyRefs(func(yield func(string, string)) {
		for i := range 8_000 {
			yield(fmt.Sprintf("refs/tags/app/v%d", i+1), first)
		}
	})
	of := func(tenant string, settings pkgrepo.Settings) *pkgrepo.Repository {
		settings.Tenant = tenant
		return s.depot.Repository(settings)
	}
	sync := func(r *pkgrepo.Repository) *pkgrepo.Snapshot {
		found, _, err := r.Sync(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	isWhole := func(what string, got *pkgrepo.Snapshot, tags int) {
		if found := len(got.Package("app").Published); got.RefsLeftOut != 0 || found != tags {
			t.Errorf("%s: %d tags, %d refs are left out: %+v", what, found, got.RefsLeftOut, got.Problems)
		}
	}
	victim := of("victim", s.settings)
	isWhole("the victim", sync(victim), 20)
	var greedy []*pkgrepo.Repository
	for _, tenant := range []string{"mallory-1", "mallory-2"} {
		for range 6 {
			r := of(tenant, large.settings)
			if newest := sync(r).Package("app").Newest(); newest.Number != 8_000 {
				t.Errorf("the newest is not known: %+v", newest)
			}
			greedy = append(greedy, r)
		}
	}
	last := greedy[len(greedy)-1]
	before := last.Snapshot().RefsLeftOut
	if err := last.Snapshot().CheckKnown("app"); before == 0 || err == nil || !strings.Contains(err.Error(), "memory") {
		t.Errorf("%d refs are left out, %v", before, err)
	}
	s.Tag("app/v21", head, false)
	isWhole("the victim, with one tag more", sync(victim), 21)
	isWhole("a newcomer", sync(of("newcomer", s.settings)), 21)
	for _, r := range greedy[:len(greedy)-1] {
		r.Forget()
	}
	if now := sync(last).RefsLeftOut; now >= before {
		t.Errorf("%d refs are left out, and %d when there was less room", now, before)
	}
}

// TestLookingAgainCountsOnce: a repository that grows takes the place of what it was.
func TestLookingAgainCountsOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP, func(s *shop) { s.options.MaxSnapshotBytes = 40_000 })
	head := s.Commit("main", "app", packaged("app"))
	for i := range 20 {
		s.Tag(fmt.Sprintf("app/v%d", i+1), head, false)
		if got := s.sync(); got.RefsLeftOut != 0 {
			t.Fatalf("%d: %+v", i, got.Problems)
		}
	}
}

// TestTheWordsOfCommitsCount: the trailers of messages, which people write, stay in memory.
func TestTheWordsOfCommitsCount(t *testing.T) {
	t.Parallel()
	const drafts = 200
	keys := []string{"Sluice-Variant", "Sluice-Variant-UID", "Sluice-Change", "Sluice-Pristine"}
	message := "change %d\n\nSluice-Package: app\n"
	for _, key := range keys {
		message += key + ": " + strings.Repeat("x", 500) + "\n"
	}
	of := func(most int64, message string) *pkgrepo.Snapshot {
		s := newShop(t, overHTTP, func(s *shop) { s.options.MaxSnapshotBytes = most })
		head := s.Commit("main", "app", packaged("app"))
		tree := s.at(head + "^{tree}")
		s.manyRefs(func(yield func(string, string)) {
			for i := range drafts {
				yield(fmt.Sprintf("refs/heads/drafts/app/w%03d", i), s.CommitTree(tree, fmt.Sprintf(message, i), head))
			}
		})
		return s.sync()
	}
	if got := of(800_000, "change %d"); got.RefsLeftOut != 0 {
		t.Errorf("of short messages, %d are left out", got.RefsLeftOut)
	}
	got := of(800_000, message)
	if kept := (drafts - got.RefsLeftOut) * 500 * len(keys); kept > 200_000 || got.RefsLeftOut == drafts {
		t.Errorf("%d refs are left out, and the others have %d bytes in their messages", got.RefsLeftOut, kept)
	}
}
