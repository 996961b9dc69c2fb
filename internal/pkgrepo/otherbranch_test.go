package pkgrepo_test

import (
	"errors"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/pkgrepo"
)

// TestAChangeOfAnotherBranchIsNotMerged: its history would make revisions of the other branch belong to this one.
func TestAChangeOfAnotherBranchIsNotMerged(t *testing.T) {
	t.Parallel()
	for _, annotated := range []bool{false, true} {
		main := newShop(t, overHTTP)
		main.Commit("main", "begin", packaged("other"))
		main.SetRef("refs/heads/prod", main.at("main"))
		main.sync()
		main.publish("app", "one")
		main.Tag("other/v1.0.0", main.at("main"), annotated)
		if annotated {
			main.Raw("tag", "-d", "app/v1")
		}
		tip := main.person(main.at("main"), "app/b.yaml", "b\n")
		main.SetRef("refs/heads/drafts/app/mine", tip)
		main.SetRef("refs/heads/proposed/app/theirs", tip)
		changes := []pkgrepo.Change{
			{Kind: pkgrepo.Propose, Package: "app", Workspace: "mine", Expect: tip},
			{Kind: pkgrepo.Publish, Package: "app", Workspace: "theirs", Expect: tip},
		}
		prod := main.onProd()
		prod.sync()
		for i, r := range prod.Apply(t.Context(), changes) {
			if !errors.Is(r.Err, pkgrepo.ErrOtherBranch) || !strings.Contains(r.Err.Error(), "is not on branch prod") {
				t.Errorf("prod, change %d: %v", i, r.Err)
			}
		}
		main.sync()
		for i, r := range main.Apply(t.Context(), changes) {
			if r.Err != nil {
				t.Errorf("main, change %d: %v", i, r.Err)
			}
		}
	}
}
