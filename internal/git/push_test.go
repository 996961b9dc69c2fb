package git_test

import (
	"errors"
	"io/fs"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

// ada is who makes commits here.
func ada() git.Identity {
	return git.Identity{Name: "Ada", Email: "ada@upstream.example", When: time.Date(2025, 1, 2, 3, 4, 5, 0, time.FixedZone("", 2*60*60))}
}

// commit is a new commit by ada on top of the base.
func commitOn(base string, edits ...git.Edit) git.NewCommit {
	n := git.NewCommit{Base: base, Edits: edits, Author: ada(), Committer: ada(), Message: "A change"}
	if base != "" {
		n.Parents = []string{base}
	}
	return n
}

// folder replaces a folder by plain files.
func folder(path string, contents map[string]string) git.Edit {
	e := git.Edit{Path: path}
	for name, content := range contents {
		e.Files = append(e.Files, git.File{Path: name, Mode: 0o644, Content: []byte(content)})
	}
	return e
}

// writer is a repository that takes pushes over each transport, and a client.
type writer struct {
	*upstream.Edited
	t      *testing.T
	client *git.Client
	remote git.Remote
	server *upstream.GitHTTP // nil over SSH
}

func newWriter(t *testing.T, over string, change ...func(*git.Options)) *writer {
	t.Helper()
	f := upstream.ForTest(t)
	w := &writer{Edited: f.Repository("app"), t: t, client: newClient(t, change...)}
	w.AcceptPushes()
	w.Raw("config", "receive.fsckObjects", "true")
	if over == "ssh" {
		server, as := serveSSH(t, f, upstream.SSHOptions{})
		w.remote = git.Remote{URL: server.URL("app")}
		w.remote.Credential.SSH = &as
		return w
	}
	w.server = f.HTTP(upstream.HTTPOptions{Access: upstream.Access{Username: "user", Password: canary}})
	w.remote = signed(w.server.URL("app"))
	return w
}

// address is the server's host and port.
func (w *writer) address() string {
	w.t.Helper()
	parsed, err := url.Parse(w.remote.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	return parsed.Host
}

// compose begins commits on top of those with the ids.
func (w *writer) compose(on ...string) *git.Objects {
	w.t.Helper()
	var bases []*git.Commit
	for _, id := range on {
		bases = append(bases, fetch(w.t, w.client, w.remote, git.Want{Hash: id}))
	}
	objects := w.client.Compose(w.t.Context(), bases...)
	w.t.Cleanup(func() {
		if err := objects.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return objects
}

func (w *writer) commit(objects *git.Objects, n git.NewCommit) string {
	w.t.Helper()
	id, err := objects.Commit(w.t.Context(), n)
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// push pushes, and returns the errors of the updates.
func (w *writer) push(request git.PushRequest) []error {
	w.t.Helper()
	results, err := w.client.Push(w.t.Context(), w.remote, request)
	if err != nil {
		w.t.Fatal(err)
	}
	var errs []error
	for i, r := range results {
		if r.Ref != request.Updates[i].Ref {
			w.t.Errorf("result %d is on %s, want %s", i, r.Ref, request.Updates[i].Ref)
		}
		errs = append(errs, r.Err)
	}
	return errs
}

// moves pushes what is to be moved all the way.
func (w *writer) moves(request git.PushRequest) {
	w.t.Helper()
	for i, err := range w.push(request) {
		if err != nil {
			w.t.Errorf("%s: %v", request.Updates[i].Ref, err)
		}
	}
}

// sound has Git look at everything in the repository.
func (w *writer) sound() {
	w.t.Helper()
	if said := w.Raw("fsck", "--strict", "--full", "--no-dangling"); said != "" {
		w.t.Errorf("git fsck says %s", said)
	}
}

func transports() []string { return []string{"http", "ssh"} }

func TestAPushedCommitIsGits(t *testing.T) {
	t.Parallel()
	for _, over := range transports() {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			w := newWriter(t, over)
			first := w.Commit("main", "first", various())
			objects := w.compose(first)
			edit := git.Edit{Path: "deep/a/b", Files: []git.File{
				{Path: "Kptfile", Mode: 0o644, Content: []byte("new\n")},
				{Path: "c/d/e/f", Mode: 0o644, Content: []byte("down here")},
				{Path: "c.txt", Mode: 0o644, Content: []byte("sorts between c and c/ in git\n")},
				{Path: "run", Mode: 0o755, Content: []byte("#!/bin/sh\n")},
				{Path: "link", Mode: fs.ModeSymlink | 0o777, Content: []byte("run")},
			}}
			n := commitOn(first, edit, git.Edit{Path: "foo"}, git.Edit{Path: "a/very"}, folder("run.sh/now", map[string]string{"a": "folder"}))
			n.Message = "Subject\n\nBody <b@x>\n"
			second := w.commit(objects, n)
			w.moves(git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: "refs/heads/main", Old: first, New: second}}})
			want := maps.Clone(various())
			for _, gone := range []string{"foo/bar.yaml", "a/very/" + longName(), "run.sh"} {
				delete(want, gone)
			}
			maps.Copy(want, upstream.Files{
				"deep/a/b/Kptfile": {Content: "new\n"}, "deep/a/b/c.txt": {Content: "sorts between c and c/ in git\n"},
				"deep/a/b/run": {Mode: upstream.Executable, Content: "#!/bin/sh\n"}, "deep/a/b/link": {Mode: upstream.Symlink, Content: "run"},
				"run.sh/now/a": {Content: "folder"},
			})
			for path, file := range want {
				if file.Mode == "" {
					file.Mode = upstream.Regular
				}
				want[path] = file
			}
			if diff := cmp.Diff(want, w.Tree("refs/heads/main")); diff != "" {
				t.Errorf("tree (-want +git):\n%s", diff)
			}
			got := w.Raw("log", "-1", "--format=%H %P|%an|%ae|%ai|%cn|%ce|%ci|%B", "main")
			wantLog := second + " " + first + "|Ada|ada@upstream.example|2025-01-02 03:04:05 +0200|Ada|ada@upstream.example|2025-01-02 03:04:05 +0200|Subject\n\nBody <b@x>"
			if diff := cmp.Diff(wantLog, got); diff != "" {
				t.Errorf("log (-want +git):\n%s", diff)
			}
			tree, err := objects.TreeAt(t.Context(), second, "deep/a/b")
			if want := w.Raw("rev-parse", "main:deep/a/b"); err != nil || tree != want {
				t.Errorf("tree %s, %v, want %s", tree, err, want)
			}
			if _, err := objects.TreeAt(t.Context(), second, "foo"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a folder that is gone: %v", err)
			}
			w.sound()
		})
	}
}

func TestTheFirstCommitOfARepository(t *testing.T) {
	t.Parallel()
	for _, over := range transports() {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			w := newWriter(t, over)
			objects := w.compose()
			first := w.commit(objects, commitOn("", folder("pkg", map[string]string{"Kptfile": "x"})))
			empty := w.commit(objects, commitOn(""))
			w.moves(git.PushRequest{Objects: objects, Atomic: true, Updates: []git.Update{
				{Ref: "refs/heads/main", New: first}, {Ref: "refs/heads/nothing", New: empty},
			}})
			if diff := cmp.Diff(upstream.Text(map[string]string{"pkg/Kptfile": "x"}), w.Tree("main")); diff != "" {
				t.Error(diff)
			}
			if got := w.Tree("nothing"); len(got) > 0 {
				t.Errorf("of an empty commit: %v", got)
			}
			w.sound()
		})
	}
}

func TestRefsMoveWithTheirExpectedOldValueAlone(t *testing.T) {
	t.Parallel()
	for _, over := range transports() {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			w := newWriter(t, over)
			first := w.Commit("main", "first", upstream.Text(map[string]string{"a": "1"}))
			foreign := w.Commit("main", "foreign", upstream.Text(map[string]string{"a": "2"}))
			w.SetRef("refs/heads/drafts/x/v1", first)
			w.SetRef("refs/heads/stale", first)
			objects := w.compose(first)
			mine := w.commit(objects, commitOn(first, folder("b", map[string]string{"b": "b"})))
			updates := []git.Update{
				{Ref: "refs/heads/main", Old: first, New: mine},
				{Ref: "refs/heads/stale", New: mine},
				{Ref: "refs/heads/gone", Old: first, New: mine},
				{Ref: "refs/tags/x/v1", Old: strings.Repeat("0", 40), New: mine},
				{Ref: "refs/heads/drafts/x/v1", Old: first, New: strings.Repeat("0", 40)},
				{Ref: "refs/heads/never", New: ""},
			}
			results, err := w.client.Push(t.Context(), w.remote, git.PushRequest{Objects: objects, Updates: updates})
			if err != nil {
				t.Fatal(err)
			}
			wantFound := []string{foreign, first, "", "", "", ""}
			for i, r := range results {
				var want error
				if i < 3 {
					want = git.ErrRefMoved
				}
				if !errors.Is(r.Err, want) || r.Found != wantFound[i] {
					t.Errorf("%s: %v, at %q", r.Ref, r.Err, r.Found)
				}
			}
			want := "refs/heads/main " + foreign + "\nrefs/heads/stale " + first + "\nrefs/tags/x/v1 " + mine
			if diff := cmp.Diff(want, w.Raw("for-each-ref", "--format=%(refname) %(objectname)")); diff != "" {
				t.Errorf("refs (-want +git):\n%s", diff)
			}
			w.sound()
		})
	}
}

func TestAnAtomicPushMovesAllOrNothing(t *testing.T) {
	t.Parallel()
	for _, over := range transports() {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			w := newWriter(t, over)
			first := w.Commit("main", "first", upstream.Text(map[string]string{"a": "1"}))
			w.SetRef("refs/heads/draft", first)
			objects := w.compose(first)
			mine := w.commit(objects, commitOn(first, folder("b", map[string]string{"b": "b"})))
			three := func(old string) git.PushRequest {
				return git.PushRequest{Objects: objects, Atomic: true, Updates: []git.Update{
					{Ref: "refs/heads/main", Old: old, New: mine}, {Ref: "refs/tags/v1", New: mine}, {Ref: "refs/heads/draft", Old: first},
				}}
			}
			refs := w.Raw("for-each-ref")
			check := func(what string, want ...error) {
				t.Helper()
				for i, err := range w.push(three(first)) {
					if !errors.Is(err, want[i]) {
						t.Errorf("%s: %d: want %v, got %v", what, i, want[i], err)
					}
				}
			}
			w.SetRef("refs/tags/v1", first)
			check("a tag is there", git.ErrNotMoved, git.ErrRefMoved, git.ErrNotMoved)
			w.DeleteRef("refs/tags/v1")
			w.Hook("update", `case "$1" in refs/tags/*) echo "no tags, says <the> hook"; exit 1;; esac`)
			check("a hook forbids one", git.ErrNotMoved, git.ErrRejected, git.ErrNotMoved)
			w.Hook("pre-receive", "echo nothing goes; exit 1")
			check("a hook forbids all", git.ErrRejected, git.ErrRejected, git.ErrRejected)
			if diff := cmp.Diff(refs, w.Raw("for-each-ref")); diff != "" {
				t.Fatalf("refs (-before +after):\n%s", diff)
			}
			w.Hook("pre-receive", "exit 0")
			w.Hook("update", "exit 0")
			w.moves(three(first))
			if got := w.Raw("for-each-ref", "--format=%(refname) %(objectname)"); got != "refs/heads/main "+mine+"\nrefs/tags/v1 "+mine {
				t.Errorf("refs: %s", got)
			}
			w.moves(three(first))

			w.Raw("config", "receive.advertiseAtomic", "false")
			more := w.commit(objects, commitOn(mine))
			_, err := w.client.Push(t.Context(), w.remote, git.PushRequest{Objects: objects, Atomic: true, Updates: []git.Update{
				{Ref: "refs/heads/main", Old: mine, New: more}, {Ref: "refs/tags/v2", New: more},
			}})
			checkError(t, "not offered", err, git.ErrNotAtomic)
			w.moves(git.PushRequest{Objects: objects, Atomic: true, Updates: []git.Update{{Ref: "refs/heads/main", Old: mine, New: more}}})
		})
	}
}
