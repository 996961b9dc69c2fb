package git_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

// TestAHistoryIsReadFromItsTip along the first parents, as far as is wanted, over each transport and with each version.
func TestAHistoryIsReadFromItsTip(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	var hashes, messages []string
	for i := range 40 {
		message := fmt.Sprintf("commit %d\n\nKey: value %d", i, i)
		hashes = append(hashes, repository.Commit("main", message, upstream.Text(map[string]string{"a.yaml": fmt.Sprint(i)})))
		messages = append(messages, message)
	}
	side := repository.Commit("side", "aside", upstream.Text(map[string]string{"b.yaml": "x"}))
	merged := repository.CommitTree(repository.Raw("rev-parse", hashes[39]+"^{tree}"), "a merge "+strings.Repeat("x", 100_000), hashes[39], side)
	repository.SetRef("refs/heads/main", merged)
	slices.Reverse(hashes)
	slices.Reverse(messages)
	server, as := serveSSH(t, f, upstream.SSHOptions{})
	for name, remote := range map[string]git.Remote{
		"HTTP":            {URL: f.HTTP(upstream.HTTPOptions{}).URL("app")},
		"HTTP, version 0": {URL: f.HTTP(upstream.HTTPOptions{WithoutV2: true}).URL("app")},
		"SSH":             over(server.URL("app"), as),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := newClient(t, keeping(t.TempDir(), &hows{}))
			for most, want := range map[int]int{1: 1, 2: 2, 17: 17, 1000: 41} {
				var read []git.Logged
				err := client.Log(t.Context(), remote, git.Want{Hash: merged, Ref: "refs/heads/main"}, most, func(c git.Logged) bool {
					read = append(read, c)
					return true
				})
				if err != nil || len(read) != want {
					t.Fatalf("%d of %d commits, %v", len(read), want, err)
				}
				if read[0].Hash != merged || len(read[0].Message) != 64<<10 {
					t.Errorf("%s with a message of %d bytes", read[0].Hash, len(read[0].Message))
				}
				for i, c := range read[1:] {
					if c.Hash != hashes[i] || strings.TrimSpace(c.Message) != messages[i] {
						t.Errorf("%d: %s %q", i, c.Hash, c.Message)
					}
				}
			}
			visited := 0
			err := client.Log(t.Context(), remote, git.Want{Hash: merged, Ref: "refs/heads/main"}, 1000, func(git.Logged) bool {
				visited++
				return visited < 20
			})
			if err != nil || visited != 20 {
				t.Errorf("%d visited, %v", visited, err)
			}
			err = client.Log(t.Context(), remote, git.Want{Hash: strings.Repeat("ab", 20)}, 10, func(git.Logged) bool { return true })
			if !errors.Is(err, git.ErrRefNotFound) {
				t.Error(err)
			}
		})
	}
	commit := fetchAll(t, newClient(t), git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}, []git.Want{{Hash: hashes[0]}})[0]
	if strings.TrimSpace(commit.Message) != messages[0] {
		t.Errorf("%q", commit.Message)
	}
}

// TestAFolderIsPlantedWhereItIsWanted: a tree that is there already takes the place of another.
func TestAFolderIsPlantedWhereItIsWanted(t *testing.T) {
	t.Parallel()
	w := newWriter(t, "http")
	base := w.Commit("main", "first", upstream.Text(map[string]string{"a/x": "a", "b/c/y": "b", "b/z": "z", "file": "f"}))
	aside := w.Commit("side", "aside", upstream.Text(map[string]string{"new/deep/n": "n"}))
	objects := w.compose(base, aside)
	planted := w.Raw("rev-parse", aside+":new")
	for path, want := range map[string][]string{
		"a":       {"a/deep/n", "b/c/y", "b/z", "file"},
		"b/c":     {"a/x", "b/c/deep/n", "b/z", "file"},
		"b/new/e": {"a/x", "b/c/y", "b/new/e/deep/n", "b/z", "file"},
		"q/r/s":   {"a/x", "b/c/y", "b/z", "file", "q/r/s/deep/n"},
	} {
		id := w.commit(objects, commitOn(base, git.Edit{Path: path, Tree: planted}))
		w.moves(git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: "refs/heads/" + strings.ReplaceAll(path, "/", "-"), New: id}}})
		got := strings.Fields(w.Raw("ls-tree", "-r", "--name-only", id))
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v", path, got)
		}
	}
	for name, e := range map[string]git.Edit{
		"in the place of the root": {Path: "", Tree: planted}, "one that is nowhere": {Path: "a", Tree: strings.Repeat("ab", 20)},
		"a file": {Path: "a", Tree: w.Raw("rev-parse", base+":file")}, "no id": {Path: "a", Tree: "main"},
		"with files": {Path: "a", Tree: planted, Files: []git.File{{Path: "x", Mode: 0o644}}},
	} {
		if _, err := objects.Commit(t.Context(), commitOn(base, e)); err == nil {
			t.Errorf("%s is planted", name)
		}
	}
	w.sound()
}
