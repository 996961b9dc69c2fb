package git_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/tests/upstream"
)

// TestACommitThatIsNotMadeHarmsNoOther: what it was refused for is not in the way of those that are made after it.
func TestACommitThatIsNotMadeHarmsNoOther(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason string
		change func(*git.Options)
		bad    map[string]string
	}{
		"files":    {"Temporary files of 24 MiB are all that there are.", func(*git.Options) {}, map[string]string{"n": noise(30 << 20)}},
		"pack":     {"It is more than a push may send.", func(o *git.Options) { o.MaxPackBytes = 90_000 }, map[string]string{"n": noise(100_000), "o": "o"}},
		"unpacked": {"It is more than may be unpacked.", func(o *git.Options) { o.MaxUnpackedBytes = 1 << 20 }, map[string]string{"n": noise(1 << 20)}},
		"objects":  {"It has more objects than may be.", func(o *git.Options) { o.MaxObjects = 5 }, map[string]string{"a/b": "1", "a/c": "2", "a/d": "3", "e/f": "4"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWriter(t, "http", c.change)
			good := map[string]string{"a/x": noise(1000), "y": "y"}
			var id string
			work := func(ctx context.Context) error {
				objects := w.client.Compose(ctx)
				if _, err := objects.Commit(ctx, commitOn("", folder("", c.bad))); err == nil {
					t.Error("it is made: " + c.reason)
				}
				var err error
				if id, err = objects.Commit(ctx, commitOn("", folder("", good))); err != nil {
					return errors.Join(err, objects.Close())
				}
				results, err := w.client.Push(ctx, w.remote, git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: "refs/heads/main", New: id}}})
				if err == nil {
					err = results[0].Err
				}
				return errors.Join(err, objects.Close())
			}
			files := memory.NewFiles(24<<20, "--files=24Mi")
			if err := files.Do(t.Context(), fair.Wish{}, nil, work); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(upstream.Text(good), w.Tree("main")); diff != "" {
				t.Errorf("(-want +git):\n%s", diff)
			}
			w.sound()
		})
	}
}

// TestAFolderThatCouldNotBeReadAgainIsNotMade: its names alone are more than is read of a folder.
func TestAFolderThatCouldNotBeReadAgainIsNotMade(t *testing.T) {
	t.Parallel()
	objects := newClient(t).Compose(t.Context())
	contents := map[string]string{}
	for i := range 65_000 {
		contents[fmt.Sprintf("%s%05d", strings.Repeat("n", 240), i)] = "same"
	}
	_, err := objects.Commit(t.Context(), commitOn("", folder("pkg", contents)))
	checkError(t, "folder", err, git.ErrLimit)
	if err := objects.Close(); err != nil {
		t.Error(err)
	}
}
