package upstream_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/tests/upstream"
)

func TestCommitIDsAreTheSameOnEveryRun(t *testing.T) {
	t.Parallel()
	repository := upstream.ForTest(t).Repository("team/app")
	first := repository.Commit("main", "first", upstream.Text(map[string]string{"a.yaml": "a: 1\n", "b/c.yaml": "c: 1\n"}))
	second := repository.Commit("main", "second", upstream.Files{
		"run.sh": {Mode: upstream.Executable, Content: "#!/bin/sh\n"},
		"link":   {Mode: upstream.Symlink, Content: "a.yaml"},
		"module": {Mode: upstream.Submodule, Content: first},
		"b":      {Mode: upstream.Removed},
		"\"ü\n":  {Content: "odd name"},
	})
	tag := repository.Tag("v1.0.0", second, true)

	want := []string{
		"d0bed6afd68a3ddabaf2666866751b1460c335e2",
		"cee9b200093b974307fedbfa005545e14712ede9",
		"4eb6ce643cc2349375c6cc2b219e1b228a1c932b",
	}
	if diff := cmp.Diff(want, []string{first, second, tag}); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}

	wantTree := upstream.Files{
		"a.yaml": {Mode: upstream.Regular, Content: "a: 1\n"},
		"run.sh": {Mode: upstream.Executable, Content: "#!/bin/sh\n"},
		"link":   {Mode: upstream.Symlink, Content: "a.yaml"},
		"module": {Mode: upstream.Submodule, Content: first},
		"\"ü\n":  {Mode: upstream.Regular, Content: "odd name"},
	}
	if diff := cmp.Diff(wantTree, repository.Tree(second)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	repository.Raw("fsck", "--strict")
}

func TestRewriteForgetsTheBranch(t *testing.T) {
	t.Parallel()
	repository := upstream.ForTest(t).Repository("app")
	repository.Commit("main", "first", upstream.Text(map[string]string{"a": "1"}))
	rewritten := repository.Rewrite("main", "again", upstream.Text(map[string]string{"b": "2"}))

	if got := repository.Raw("rev-list", "--count", "main"); got != "1" {
		t.Errorf("commits on main: %s, want 1", got)
	}
	want := upstream.Files{"b": {Mode: upstream.Regular, Content: "2"}}
	if diff := cmp.Diff(want, repository.Tree(rewritten)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func TestRefsAreSetAndDeleted(t *testing.T) {
	t.Parallel()
	repository := upstream.ForTest(t).Repository("app")
	commit := repository.Commit("main", "first", upstream.Text(map[string]string{"a": "1"}))
	repository.Tag("light", commit, false)
	repository.SetRef("refs/pull/1/head", commit)
	repository.SetRef("refs/heads/gone", commit)
	repository.DeleteRef("refs/heads/gone")
	repository.DeleteRef("refs/heads/never")

	want := "refs/heads/main\nrefs/pull/1/head\nrefs/tags/light"
	if diff := cmp.Diff(want, repository.Raw("for-each-ref", "--format=%(refname)")); diff != "" {
		t.Errorf("refs (-want +got):\n%s", diff)
	}
}

func TestHostileTreesAreStoredAsGiven(t *testing.T) {
	t.Parallel()
	repository := upstream.ForTest(t).Repository("hostile")
	blob := repository.Object("blob", []byte("x"))
	tree := repository.RawTree(
		upstream.Entry{Mode: "100644", Name: "..", Hash: blob},
		upstream.Entry{Mode: "100644", Name: ".git", Hash: blob},
		upstream.Entry{Mode: "100644", Name: "a/b", Hash: blob},
		upstream.Entry{Mode: "100644", Name: "a/b", Hash: blob},
	)
	commit := repository.CommitTree(tree, "hostile")
	repository.SetRef("refs/heads/main", commit)

	want := strings.Join([]string{"..", ".git", "a/b", "a/b"}, "\n")
	if diff := cmp.Diff(want, repository.Raw("ls-tree", "--name-only", "main")); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestBulkIsDeterministicAndOfTheSizeAskedFor(t *testing.T) {
	t.Parallel()
	fixture := upstream.ForTest(t)
	repository := fixture.Repository("bulk")
	commit := repository.Bulk("main", 500, 4<<20)
	again := fixture.Repository("again").Bulk("main", 500, 4<<20)
	if commit != again {
		t.Errorf("commits %s and %s, want the same", commit, again)
	}

	archive, err := repository.Archive(commit)
	if err != nil {
		t.Fatal(err)
	}
	files, size := 0, int64(0)
	for reader := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			files++
			size += header.Size
		}
	}
	if files != 500 || size < 4<<20*98/100 || size > 4<<20*102/100 {
		t.Errorf("%d files of %d bytes, want 500 of about %d", files, size, 4<<20)
	}
}
