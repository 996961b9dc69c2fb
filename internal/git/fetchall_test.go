package git_test

import (
	"crypto/sha1"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

// shelf is a repository of packages: a branch with all of them, tags of their revisions, and drafts of the next ones.
type shelf struct {
	*upstream.Edited
	t testing.TB
}

// newShelf makes packages in the folder pkgs, all of whose revisions are commits on the branch and have a tag, and for each of
// the first ones a draft on the branch's tip.
func newShelf(tb testing.TB, f *upstream.Fixture, packages, revisions, drafts int) shelf {
	tb.Helper()
	s := shelf{f.Repository("app"), tb}
	var stream strings.Builder
	mark := 0
	commit := func(ref string, from int, files map[string]string) {
		mark++
		fmt.Fprintf(&stream, "commit %s\nmark :%d\ncommitter A <a@x> %d +0000\ndata 1\nm\n", ref, mark, 1704067200+mark)
		if from > 0 {
			fmt.Fprintf(&stream, "from :%d\n", from)
		}
		for path, content := range files {
			fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", path, len(content), content)
		}
	}
	for revision := range revisions {
		for i := range packages {
			commit("refs/heads/main", mark, packageOf(i, fmt.Sprint("v", revision+1)))
			fmt.Fprintf(&stream, "reset refs/tags/%s/v%d\nfrom :%d\n\n", packagePath(i), revision+1, mark)
		}
	}
	tip := mark
	for i := range drafts {
		commit(fmt.Sprintf("refs/heads/drafts/%s/next", packagePath(i)), tip, packageOf(i, "next"))
	}
	if _, err := s.RawInput([]byte(stream.String()), "fast-import", "--quiet", "--date-format=raw"); err != nil {
		tb.Fatal(err)
	}
	s.Raw("repack", "-a", "-d", "-q")
	return s
}

func packagePath(i int) string { return fmt.Sprintf("pkgs/app-%04d", i) }

func packageOf(i int, revision string) map[string]string {
	path := packagePath(i)
	return map[string]string{
		path + "/Kptfile":         fmt.Sprintf("apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app-%d\n  annotations:\n    revision: %s\n", i, revision),
		path + "/deployment.yaml": fmt.Sprintf("kind: Deployment\nmetadata:\n  name: app-%d\nspec:\n  replicas: %d\n", i, i%7),
		path + "/service.yaml":    fmt.Sprintf("kind: Service\nmetadata:\n  name: app-%d\nspec:\n  revision: %s\n", i, revision),
	}
}

// wants are all refs of a server, the branch first.
func (s shelf) wants(client *git.Client, remote git.Remote, prefixes ...string) (wants []git.Want) {
	s.t.Helper()
	refs, err := client.ListRefs(s.t.Context(), remote, append([]string{"refs/heads/main"}, prefixes...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, ref := range refs {
		want := git.Want{Hash: ref.Target(), Ref: ref.Name}
		if ref.Name == "refs/heads/main" {
			wants = slices.Insert(wants, 0, want)
		} else {
			wants = append(wants, want)
		}
	}
	return wants
}

// fetchAll fetches commits and closes them with the test.
func fetchAll(t *testing.T, client *git.Client, remote git.Remote, wants []git.Want) []*git.Commit {
	t.Helper()
	commits, err := client.FetchAll(t.Context(), remote, wants)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := git.CloseAll(commits); err != nil {
			t.Error(err)
		}
	})
	return commits
}

// checkAll compares commits with what Git has.
func (s shelf) checkAll(commits []*git.Commit, wants []git.Want) {
	s.t.Helper()
	var asked strings.Builder
	var got []string
	for i, commit := range commits {
		if commit == nil || commit.Hash != wants[i].Hash {
			s.t.Fatalf("%s: %v", wants[i].Ref, commit)
		}
		path := packageAt(wants[i].Ref)
		fmt.Fprintf(&asked, "%s:%s\n%s:%s/Kptfile\n", commit.Hash, path, commit.Hash, path)
		tree, err := commit.TreeID(path)
		if err != nil {
			s.t.Error(err)
		}
		content, err := commit.ReadFile(path+"/Kptfile", 1<<10)
		if err != nil {
			s.t.Error(err)
		}
		file := fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content)))
		got = append(got, tree, file)
	}
	out, err := s.RawInput([]byte(asked.String()), "cat-file", "--batch-check=%(objectname)")
	if diff := cmp.Diff(strings.Fields(out), got); diff != "" || err != nil {
		s.t.Errorf("trees and files (-git +ours): %v\n%s", err, diff)
	}
}

// packageAt is the package that a ref is about.
func packageAt(ref string) string {
	if ref == "refs/heads/main" {
		return packagePath(0)
	}
	path := strings.TrimPrefix(strings.TrimPrefix(ref, "refs/tags/"), "refs/heads/drafts/")
	return path[:strings.LastIndexByte(path, '/')]
}

// TestManyDraftsComeInOneRequest, and none when they are there already, over each transport and with each version.
func TestManyDraftsComeInOneRequest(t *testing.T) {
	t.Parallel()
	for _, over := range []string{"http", "ssh"} {
		for _, version2 := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s v2=%t", over, version2), func(t *testing.T) {
				t.Parallel()
				manyDrafts(t, over, version2)
			})
		}
	}
}

func manyDrafts(t *testing.T, over string, version2 bool) {
	t.Helper()
	f := upstream.ForTest(t)
	s := newShelf(t, f, 300, 1, 300)
	seen := &hows{}
	client := newClient(t, keeping(t.TempDir(), seen))
	var remote git.Remote
	var requests func() int
	if over == "ssh" {
		server, as := serveSSH(t, f, upstream.SSHOptions{WithoutV2: !version2})
		remote = git.Remote{URL: server.URL("app")}
		remote.Credential.SSH = &as
		requests = func() int {
			commands, err := server.Commands()
			if err != nil {
				t.Fatal(err)
			}
			return len(commands)
		}
	} else {
		server := f.HTTP(upstream.HTTPOptions{WithoutV2: !version2})
		remote.URL = server.URL("app")
		requests = func() int { return server.Count(upstream.Fetch) }
	}
	look := func(what string, asked int, most int64) []*git.Commit {
		t.Helper()
		wants := s.wants(client, remote, "refs/heads/drafts/")
		before := requests()
		commits := fetchAll(t, client, remote, wants)
		if got := requests() - before; got != asked {
			t.Errorf("%s: the server was asked %d times, want %d", what, got, asked)
		}
		s.checkAll(commits, wants)
		if got := commits[0].BytesReceived; got > most {
			t.Errorf("%s: %d bytes came, more than %d", what, got, most)
		}
		return commits
	}
	overhead := int64(0)
	if !version2 {
		overhead = 602 * 80 // All refs are listed each time.
	}
	if commits := look("at first", 1, 1<<20); len(commits) != 301 {
		t.Errorf("there are %d commits", len(commits))
	}
	look("again", 0, 0)
	s.Commit("drafts/pkgs/app-0299/next", "an edit", upstream.Text(map[string]string{packagePath(299) + "/more.yaml": "kind: More\n"}))
	look("an edit", 1, 1200+overhead)
	look("again after the edit", 0, 0)
	s.SetRef("refs/heads/drafts/pkgs/new/next", s.Raw("rev-parse", "main"))
	s.Commit("drafts/pkgs/new/next", "a draft", upstream.Text(map[string]string{"pkgs/new/Kptfile": "kind: Kptfile\n"}))
	look("a new draft", 1, 6000+overhead)
	seen.take()
	look("at last", 0, 0)
	if got := seen.take(); len(got) != 302 || slices.ContainsFunc(got, func(how git.How) bool { return how != git.FromCache }) {
		t.Errorf("%d were had by %v", len(got), got[:1])
	}
}
