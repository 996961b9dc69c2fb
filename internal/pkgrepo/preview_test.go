package pkgrepo_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/pkgrepo"
)

// TestAPreviewWritesNothing, and sees what a write would see, also where nobody writes: in a proposal.
func TestAPreviewWritesNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	s.publish("web", "one")
	draft := s.one(write("web", "", "two"))
	for _, test := range []struct {
		reason, workspace, local string
		kind                     pkgrepo.Kind
	}{
		{reason: "Without an open change, it begins with the branch.", local: "one"},
		{reason: "A draft is gone on with.", workspace: draft.Workspace, local: "two"},
		{reason: "A proposal as well.", workspace: draft.Workspace, local: "two", kind: pkgrepo.Propose},
	} {
		if test.kind != "" {
			s.one(pkgrepo.Change{Kind: test.kind, Package: "web", Workspace: test.workspace, Expect: draft.Commit})
		}
		before := s.refs()
		var seen pkgrepo.Current
		preview := write("web", test.workspace, "three")
		preview.Kind = pkgrepo.Preview
		inner := preview.Make
		preview.Make = func(ctx context.Context, now pkgrepo.Current) (pkgrepo.Made, error) {
			seen = now
			return inner(ctx, now)
		}
		result := s.one(preview)
		if diff := cmp.Diff(before, s.refs()); diff != "" || result.Changed {
			t.Errorf("%s It wrote %+v:\n%s", test.reason, result, diff)
		}
		if got := string(seen.Local["a.yaml"].Content); got != test.local || seen.Branch == nil || (seen.Open == nil) != (test.workspace == "") {
			t.Errorf("%s It saw %q and %+v", test.reason, got, seen)
		}
	}
	s.one(pkgrepo.Change{Kind: pkgrepo.Reject, Package: "web", Workspace: draft.Workspace, Expect: draft.Commit})
	together := write("web", draft.Workspace, "three")
	together.Kind = pkgrepo.Preview
	s.apply(together, pkgrepo.Change{Kind: pkgrepo.Propose, Package: "web", Workspace: draft.Workspace, Expect: draft.Commit})
	failing := pkgrepo.Change{Kind: pkgrepo.Preview, Package: "web", Make: func(context.Context, pkgrepo.Current) (pkgrepo.Made, error) {
		return pkgrepo.Made{}, errMine
	}}
	if r := s.Apply(t.Context(), []pkgrepo.Change{failing}); !errors.Is(r[0].Err, errMine) {
		t.Errorf("the error is %v", r[0].Err)
	}
}

var errMine = errors.New("mine")
