package git_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/tests/upstream"
)

// TestTreesThatAreEditedAreDrawn, as long as they are: a small pack may have large trees, one in the other.
func TestTreesThatAreEditedAreDrawn(t *testing.T) {
	t.Parallel()
	const files, depth = 3000, 8
	w := newWriter(t, "http")
	blob := w.Object("blob", []byte("x"))
	below := ""
	for range depth {
		var entries []upstream.Entry
		if below != "" {
			entries = append(entries, upstream.Entry{Mode: "40000", Name: "d", Hash: below})
		}
		for i := range files {
			entries = append(entries, upstream.Entry{Mode: "100644", Name: fmt.Sprintf("f%05d", i), Hash: blob})
		}
		below = w.RawTree(entries...)
	}
	head := w.CommitTree(below, "first")
	w.SetRef("refs/heads/main", head)
	base := fetch(t, w.client, w.remote, git.Want{Hash: head})
	path := func(depth int) string { return strings.Repeat("d/", depth-1) + "new" }
	for name, c := range map[string]struct {
		reason  string
		depth   int
		commits int
		want    error
	}{
		"deep":    {"Each folder on the way is in memory.", depth, 1, memory.ErrBudget},
		"shallow": {"Two of them fit.", 2, 1, nil},
		"many":    {"What was edited is given back with the commit.", 2, 20, nil},
	} {
		err := memory.New(4<<20, "--memory=4Mi").Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
			objects := w.client.Compose(ctx, base)
			for i := range c.commits {
				edit := folder(path(c.depth), map[string]string{"file": fmt.Sprint(i)})
				if _, err := objects.Commit(ctx, commitOn(head, edit)); err != nil {
					return errors.Join(err, objects.Close())
				}
				if _, err := objects.TreeAt(ctx, head, strings.Repeat("d/", c.depth-2)+"d"); err != nil {
					return errors.Join(err, objects.Close())
				}
			}
			return objects.Close()
		})
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %s %v, want %v", name, c.reason, err, c.want)
		}
	}
}
