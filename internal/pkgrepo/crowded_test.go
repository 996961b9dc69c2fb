package pkgrepo_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/pkgrepo"
)

// TestManyDraftsBesideManyInnerPackagesTakeNoTime: a person with the right to push drafts makes many of an outer package, and many inner packages.
func TestManyDraftsBesideManyInnerPackagesTakeNoTime(t *testing.T) {
	t.Parallel()
	const inner, drafts = 6_000, 60_000
	s := newShop(t, overHTTP)
	head := s.Commit("main", "app", packaged("app", "one"))
	s.manyRefs(func(yield func(string, string)) {
		for i := range inner {
			yield(fmt.Sprintf("refs/heads/drafts/app/in-%d/w", i), head)
		}
		for i := range drafts {
			yield(fmt.Sprintf("refs/heads/drafts/app/w%d", i), head)
		}
	})
	began := time.Now()
	got := s.sync()
	if took := time.Since(began); took > 10*time.Second || len(got.Package("app").Open) != drafts || len(got.Packages) != inner+1 {
		t.Errorf("%d packages with %d drafts took %s", len(got.Packages), len(got.Package("app").Open), took)
	}
	files := kpt.Package{kpt.KptfileName: {Content: []byte(kptfile("app")), Mode: 0o644}}
	for i := range 6_000 {
		files[fmt.Sprintf("file-%d", i)] = kpt.File{Content: []byte("x"), Mode: 0o644}
	}
	began = time.Now()
	s.one(pkgrepo.Change{Kind: pkgrepo.Write, Package: "app", Make: func(context.Context, pkgrepo.Current) (pkgrepo.Made, error) {
		return pkgrepo.Made{Package: files}, nil
	}})
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("a draft took %s", took)
	}
}

// TestManyDraftsOfWhatIsPublishedTakeNoTime: each of them is sought among the commits of the branch.
func TestManyDraftsOfWhatIsPublishedTakeNoTime(t *testing.T) {
	t.Parallel()
	const commits, drafts = 400, 90_000
	s := newShop(t, overHTTP)
	head := s.Commit("main", "app", packaged("app", "one"))
	tree := s.at(head + "^{tree}")
	for i := range commits {
		head = s.CommitTree(tree, fmt.Sprint(i), head)
	}
	s.SetRef("refs/heads/main", head)
	s.manyRefs(func(yield func(string, string)) {
		for i := range drafts {
			yield(fmt.Sprintf("refs/heads/drafts/app/w%d", i), head)
		}
	})
	began := time.Now()
	got := s.sync()
	if took := time.Since(began); took > 10*time.Second || len(got.Package("app").Open) != drafts {
		t.Errorf("%d drafts took %s", len(got.Package("app").Open), took)
	}
}
