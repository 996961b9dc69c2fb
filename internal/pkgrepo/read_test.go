package pkgrepo_test

import (
	"errors"
	"fmt"
	"testing"

	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/tests/upstream"
)

// TestWhatTheBranchOnceHadIsRead, by the name of its folder: what was published, and what people committed in between. What
// only a draft ever had is not the branch's.
func TestWhatTheBranchOnceHadIsRead(t *testing.T) {
	t.Parallel()
	for _, over := range []string{overHTTP, overSSH} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, over)
			s.publish("web", "published")
			trees := map[string]string{s.Raw("rev-parse", "main:web"): "published"}
			for i := range 20 {
				text := fmt.Sprintf("edited %d", i)
				commit := s.Commit("main", text, upstream.Text(map[string]string{"web/a.yaml": text}))
				trees[s.Raw("rev-parse", commit+":web")] = text
			}
			draft := s.one(write("web", "", "drafted"))
			s.sync()
			for tree, want := range trees {
				got, err := s.ReadTree(t.Context(), "web", tree)
				if err != nil || string(got["a.yaml"].Content) != want {
					t.Errorf("tree %s: %q, %v, want %q", tree, got["a.yaml"].Content, err, want)
				}
			}
			if got, err := s.ReadTree(t.Context(), "web", draft.Tree); !errors.Is(err, pkgrepo.ErrNotFound) {
				t.Errorf("the draft's tree: %v, %v", got.Paths(), err)
			}
		})
	}
}
