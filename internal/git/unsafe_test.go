package git_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

func TestUnsafeTreesAreRefused(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	blob := repository.Object("blob", []byte("x"))
	file := func(name string) upstream.Entry { return upstream.Entry{Mode: "100644", Name: name, Hash: blob} }
	inner := repository.RawTree(file("config"))
	dir := func(name string) upstream.Entry { return upstream.Entry{Mode: "40000", Name: name, Hash: inner} }
	link := repository.Object("blob", []byte(strings.Repeat("x", 5000)))
	cases := map[string]struct {
		entries []upstream.Entry
		path    string
	}{
		"dot":            {[]upstream.Entry{dir(".")}, "."},
		"parent":         {[]upstream.Entry{dir("..")}, ".."},
		"slash":          {[]upstream.Entry{file("a/b")}, "a/b"},
		"absolute":       {[]upstream.Entry{file("/etc/passwd")}, "etc/passwd"},
		"git dir":        {[]upstream.Entry{dir(".git")}, ".git"},
		"git file":       {[]upstream.Entry{file(".git")}, ".git"},
		"git case":       {[]upstream.Entry{dir(".GiT")}, ".GiT"},
		"ntfs short":     {[]upstream.Entry{dir("GIT~1")}, "GIT~1"},
		"ntfs space":     {[]upstream.Entry{dir(".git ")}, ".git "},
		"ntfs dots":      {[]upstream.Entry{dir(".git. .")}, ".git"},
		"ntfs stream":    {[]upstream.Entry{dir(".git::$INDEX_ALLOCATION")}, ".git"},
		"ntfs separator": {[]upstream.Entry{file(`.git\config`)}, "config"},
		"windows parent": {[]upstream.Entry{file(`..\..\x`)}, "x"},
		"hfs ignorable":  {[]upstream.Entry{dir(".g\u200cit")}, "means .git"},
		"hfs last":       {[]upstream.Entry{dir(".git\ufeff")}, "means .git"},
		"twice":          {[]upstream.Entry{file("a"), file("a")}, "a"},
		"file and dir":   {[]upstream.Entry{file("a"), file("b"), dir("a")}, "a"},
		"strange mode":   {[]upstream.Entry{{Mode: "60644", Name: "device", Hash: blob}}, "."},
		"long link":      {[]upstream.Entry{{Mode: "120000", Name: "l", Hash: link}}, "l"},
	}
	server := f.HTTP(upstream.HTTPOptions{})
	client := newClient(t)
	for name, c := range cases {
		tree := repository.RawTree(c.entries...)
		outer := repository.RawTree(upstream.Entry{Mode: "40000", Name: "sub", Hash: tree})
		for where, root := range map[string]string{"at the root": tree, "below": outer} {
			hash := repository.CommitTree(root, "m")
			repository.SetRef("refs/heads/main", hash)
			_, err := client.Fetch(t.Context(), git.Remote{URL: server.URL("app")}, git.Want{Hash: hash})
			checkError(t, name+" "+where, err, git.ErrUnsafeTree)
			if err != nil && (!strings.Contains(err.Error(), c.path) || where == "below" && !strings.Contains(err.Error(), "sub")) {
				t.Errorf("%s %s: the error does not name the path: %v", name, where, err)
			}
		}
	}
}

func TestTreeBombIsRefused(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	mode, hash := "100644", repository.Object("blob", []byte("x"))
	for range 10 { // Ten entries on each of ten levels are 10^10 files in eleven objects.
		var entries []upstream.Entry
		for i := range 10 {
			entries = append(entries, upstream.Entry{Mode: mode, Name: "f" + strconv.Itoa(i), Hash: hash})
		}
		mode, hash = "40000", repository.RawTree(entries...)
	}
	bomb := repository.CommitTree(hash, "bomb")
	repository.SetRef("refs/heads/main", bomb)
	_, err := newClient(t).Fetch(t.Context(), git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}, git.Want{Hash: bomb})
	checkError(t, "bomb", err, git.ErrLimit)
}

func TestLongNamesAreRefused(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	for length, want := range map[int]error{255: nil, 256: git.ErrLimit} {
		hash := repository.Rewrite("main", "m", upstream.Text(map[string]string{strings.Repeat("n", length): "x"}))
		commit, err := newClient(t).Fetch(t.Context(), git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}, git.Want{Hash: hash})
		if !errors.Is(err, want) {
			t.Errorf("name of %d bytes: want %v, got %v", length, want, err)
		}
		if err == nil {
			if err := commit.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
