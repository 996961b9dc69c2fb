package git_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

// TestWhatWasPushedIsNotFetched, not even by those who read with another credential than the one that pushes.
func TestWhatWasPushedIsNotFetched(t *testing.T) {
	t.Parallel()
	for _, over := range transports() {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			seen := &hows{}
			w := newWriter(t, over, keeping(t.TempDir(), seen))
			first := w.Commit("main", "first", various())
			reader := w.remote
			reader.Credential.Principal = "a reader"
			base := fetch(t, w.client, reader, git.Want{Hash: first, Ref: "refs/heads/main"})
			objects := w.client.Compose(t.Context(), base)
			var updates []git.Update
			var wants []git.Want
			for i := range 30 {
				id := w.commit(objects, commitOn(first, folder(fmt.Sprintf("pkg/%d", i), map[string]string{"Kptfile": strings.Repeat(fmt.Sprint(i), 1000)})))
				update := git.Update{Ref: fmt.Sprintf("refs/heads/drafts/pkg/%d", i), New: id}
				updates, wants = append(updates, update), append(wants, git.Want{Ref: update.Ref, Hash: id})
			}
			second := w.commit(objects, commitOn(first, folder("foo", map[string]string{"x": "y"})))
			updates = append(updates, git.Update{Ref: "refs/heads/main", Old: first, New: second}, git.Update{Ref: "refs/tags/v1", New: first})
			w.moves(git.PushRequest{Objects: objects, Updates: updates, For: reader})
			if err := objects.Close(); err != nil {
				t.Error(err)
			}
			seen.take()

			commits, err := w.client.FetchAll(t.Context(), reader, wants)
			if err != nil {
				t.Fatal(err)
			}
			for i, commit := range commits {
				if commit.BytesReceived > 0 {
					t.Fatalf("%d bytes came", commit.BytesReceived)
				}
				if diff := cmp.Diff(expected(w.Tree(wants[i].Hash)), files(t, commit.Tree())); diff != "" {
					t.Errorf("tree (-git +ours):\n%s", diff)
				}
			}
			if err := git.CloseAll(commits); err != nil {
				t.Error(err)
			}
			commit := fetch(t, w.client, reader, git.Want{Hash: second, Ref: "refs/heads/main"})
			if diff := cmp.Diff(expected(w.Tree(second)), files(t, commit.Tree())); diff != "" || commit.BytesReceived > 0 {
				t.Errorf("%d bytes came; tree (-git +ours):\n%s", commit.BytesReceived, diff)
			}
			if got := seen.take(); slices.Contains(got, git.Whole) || slices.Contains(got, git.Incremental) {
				t.Errorf("had by %v", got)
			}

			// Somebody builds upon what was pushed: that is a fetch of the difference.
			third := w.Commit("main", "third", upstream.Text(map[string]string{"foo/x": "z"}))
			if commit := fetch(t, w.client, reader, git.Want{Hash: third, Ref: "refs/heads/main"}); commit.BytesReceived > 5000 {
				t.Errorf("%d bytes came for one line", commit.BytesReceived)
			}
			if got := seen.take(); !slices.Equal(got, []git.How{git.Incremental}) {
				t.Errorf("the next one was had by %v", got)
			}
		})
	}
}

// TestOnlyWhatTheServerTookIsKept for those who may see it.
func TestOnlyWhatTheServerTookIsKept(t *testing.T) {
	t.Parallel()
	seen := &hows{}
	w := newWriter(t, "http", keeping(t.TempDir(), seen))
	first := w.commit(w.compose(), commitOn("", folder("a", map[string]string{"b": "c"})))
	again := w.compose()
	if id := w.commit(again, commitOn("", folder("a", map[string]string{"b": "c"}))); id != first {
		t.Errorf("the same commit has another id: %s and %s", id, first)
	}
	request := git.PushRequest{Objects: again, Updates: []git.Update{{Ref: "refs/heads/main", New: first}}}
	w.Hook("pre-receive", "exit 1")
	for _, err := range w.push(request) {
		checkError(t, "refused", err, git.ErrRejected)
	}
	want := git.Want{Hash: first, Ref: "refs/heads/main"}
	_, err := w.client.Fetch(t.Context(), w.remote, want)
	checkError(t, "what was refused", err, git.ErrRefNotFound)

	w.Hook("pre-receive", "exit 0")
	w.moves(request)
	seen.take()
	stranger := git.Remote{URL: w.remote.URL, Credential: credential.Git{Username: "other", Password: credential.NewSecret("other")}}
	_, err = w.client.Fetch(t.Context(), stranger, want)
	checkError(t, "a stranger", err, git.ErrAuthentication)
	if commit := fetch(t, w.client, w.remote, want); commit.BytesReceived > 0 {
		t.Errorf("%d bytes came", commit.BytesReceived)
	}
	if got := seen.take(); !slices.Equal(got, []git.How{git.FromCache}) {
		t.Errorf("had by %v", got)
	}
}

// TestWhatIsBuiltOnPartOfACommitIsFetched when all of it is asked for.
func TestWhatIsBuiltOnPartOfACommitIsFetched(t *testing.T) {
	t.Parallel()
	seen := &hows{}
	w := newWriter(t, "http", keeping(t.TempDir(), seen), func(o *git.Options) {
		o.CacheFailed = func(err error) { t.Errorf("cache: %v", err) }
	})
	w.Raw("config", "uploadpack.allowFilter", "true")
	w.Raw("config", "uploadpack.allowAnySHA1InWant", "true")
	first := w.Commit("main", "first", various())
	base := fetch(t, w.client, w.remote, git.Want{Hash: first, Ref: "refs/heads/main", Paths: []string{"foo"}})
	objects := w.client.Compose(t.Context(), base)
	second := w.commit(objects, commitOn(first, folder("foo", map[string]string{"bar.yaml": "a: 1\n", "new": "n"}), git.Edit{Path: "deep/a/b/c/d"}))
	w.moves(git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: "refs/heads/main", Old: first, New: second}}})
	if err := objects.Close(); err != nil {
		t.Error(err)
	}
	commit := fetch(t, w.client, w.remote, git.Want{Hash: second, Ref: "refs/heads/main"})
	if diff := cmp.Diff(expected(w.Tree(second)), files(t, commit.Tree())); diff != "" {
		t.Errorf("tree (-git +ours):\n%s", diff)
	}
	w.sound()
}

// TestACacheThatFailsCostsNoPush.
func TestACacheThatFailsCostsNoPush(t *testing.T) {
	t.Parallel()
	var failed []error
	w := newWriter(t, "http", func(o *git.Options) {
		o.CacheDir, o.MaxCacheBytes = "/dev/null/none", 1<<20
		o.CacheFailed = func(err error) { failed = append(failed, err) }
	})
	objects := w.compose()
	id := w.commit(objects, commitOn(""))
	w.moves(git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: "refs/heads/main", New: id}}})
	if len(failed) == 0 || errors.Is(failed[0], git.ErrProtocol) {
		t.Errorf("told of %v", failed)
	}
}
