package upstream

import (
	"bufio"
	"testing"
)

// TestACommitLosesNoPush that comes while it is made.
func TestACommitLosesNoPush(t *testing.T) {
	t.Parallel()
	repository := ForTest(t).Repository("app").Repository
	first, err := repository.Commit("main", "first", Text(map[string]string{"a": "1\n"}))
	if err != nil {
		t.Fatal(err)
	}
	pushed, tries := "", 0
	made, err := repository.importCommit("main", "second", true, func(w *bufio.Writer) error {
		if tries++; tries == 1 {
			if pushed, err = repository.Raw("commit-tree", first+"^{tree}", "-p", first, "-m", "pushed"); err != nil {
				return err
			}
			if _, err = repository.Raw("update-ref", "refs/heads/main", pushed, first); err != nil {
				return err
			}
		}
		writeFile(w, "a", File{Content: "2\n"})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if parent, err := repository.Raw("rev-parse", made+"^"); err != nil || parent != pushed || tries != 2 {
		t.Errorf("the commit is on top of %s and not of %s after %d tries, %v", parent, pushed, tries, err)
	}
}
