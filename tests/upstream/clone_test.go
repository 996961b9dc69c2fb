package upstream_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/tests/upstream"
)

// TestAnEditThatComesTooLateLeavesNothing: another clone was first, or the branch is gone by now.
func TestAnEditThatComesTooLateLeavesNothing(t *testing.T) {
	t.Parallel()
	fixture := upstream.ForTest(t)
	repository, first := sample(t, fixture)
	repository.AcceptPushes()
	repository.SetRef("refs/heads/draft", first)
	server := fixture.HTTP(upstream.HTTPOptions{})
	clone, err := upstream.NewClone(t.Context(), filepath.Join(t.TempDir(), "clone"), server.URL(repository.Name()))
	if err != nil {
		t.Fatal(err)
	}
	write := func(root *os.Root) error { return root.WriteFile("theirs.txt", []byte("theirs\n"), 0o600) }

	other := ""
	late := func(root *os.Root) error {
		other = repository.Commit("main", "Other", upstream.Text(map[string]string{"other.txt": "first\n"}))
		return write(root)
	}
	if _, err := clone.Edit("main", "Late", late); !errors.Is(err, upstream.ErrTaken) {
		t.Errorf("the branch has moved: %v", err)
	}
	if tip, _ := repository.Resolve("main"); tip != other {
		t.Errorf("main is at %s, not at %s", tip, other)
	}
	gone := func(root *os.Root) error {
		repository.DeleteRef("refs/heads/draft")
		return write(root)
	}
	if _, err := clone.Edit("draft", "Late", gone); !errors.Is(err, upstream.ErrTaken) {
		t.Errorf("the branch is gone: %v", err)
	}
	if _, err := repository.Resolve("draft"); err == nil {
		t.Error("a branch that was deleted is back")
	}
	commit, err := clone.Edit("main", "In time", write)
	if err != nil {
		t.Fatal(err)
	}
	if tip, _ := repository.Resolve("main"); tip != commit || repository.Tree(tip)["theirs.txt"].Content != "theirs\n" {
		t.Errorf("main is at %s, not at %s", tip, commit)
	}
	if branches, err := clone.Branches("dr"); err != nil || len(branches) != 0 {
		t.Errorf("branches %q, %v", branches, err)
	}
}
