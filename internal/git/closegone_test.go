package git_test

import (
	"os"
	"testing"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

// TestACommitIsClosedWithoutItsCache: the folder may be removed at any time, and makes room for others, while a pack lies there
// that is too large to be kept.
func TestACommitIsClosedWithoutItsCache(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	hash := repository.Commit("main", "m", upstream.Text(map[string]string{"noise": noise(10 << 20)}))
	server := f.HTTP(upstream.HTTPOptions{})
	dir := t.TempDir()
	client := newClient(t, keeping(dir, &hows{}), func(o *git.Options) { o.MaxCacheBytes = 16 << 20 })
	commit := fetch(t, client, git.Remote{URL: server.URL("app")}, git.Want{Hash: hash, Ref: "refs/heads/main"})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if len(read(t, commit.Tree(), "noise")) != 10<<20 {
		t.Error("the file is another one")
	}
}
