package tree_test

import (
	"testing"

	"sluice.dev/sluice/internal/tree"
)

// TestATreeThatIsWantedTwiceIsLookedIntoOnce: a commit may have one tree under many names.
func TestATreeThatIsWantedTwiceIsLookedIntoOnce(t *testing.T) {
	t.Parallel()
	all := tree.Select([]string{"a", "a/b", "b/c", "b/d/e", "f/g", "f"})
	looked := map[*tree.Selection]bool{all.In("a"): true, all.In("b").In("c"): true, all.At("b/d/e"): true, all.At("f/any"): true}
	if len(looked) != 1 || looked[nil] {
		t.Errorf("it is looked into %d times", len(looked))
	}
	if all.In("g") != nil || all.At("b/d/other") != nil {
		t.Error("what nobody wants is looked into")
	}
}
