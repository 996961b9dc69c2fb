package git_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

// hows collects how commits were had.
type hows struct {
	mu   sync.Mutex
	list []git.How
}

func (h *hows) add(how git.How) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, how)
}

// take returns what was collected since the last time.
func (h *hows) take() []git.How {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer func() { h.list = nil }()
	return h.list
}

// keeping makes a client keep what it fetches in the folder.
func keeping(dir string, seen *hows) func(*git.Options) {
	return func(o *git.Options) {
		o.CacheDir, o.MaxCacheBytes = dir, 64<<20
		o.Fetched = seen.add
	}
}

// fleet is a repository whose commits change one of many files.
type fleet struct {
	*upstream.Edited
	t *testing.T
}

func newFleet(t *testing.T, f *upstream.Fixture, files int) (fleet, string) {
	t.Helper()
	r := fleet{f.Repository("app"), t}
	return r, r.Bulk("main", files, int64(files)*4000)
}

// touch makes a commit that changes a file.
func (r fleet) touch(n int, text string) string {
	r.t.Helper()
	return r.Commit("main", text, upstream.Text(map[string]string{upstream.BulkPath(n): text + "\n"}))
}

// shallow is a copy that begins with a commit on top of the repository's, whose parent nobody has there.
func (r fleet) shallow(f *upstream.Fixture) (fleet, string) {
	r.t.Helper()
	tip := r.touch(3, "last")
	copied := fleet{f.Repository("shallow"), r.t}
	copied.Raw("fetch", "--quiet", "--depth=1", "file://"+r.Dir(), "main:main")
	if of := copied.Raw("rev-parse", "--is-shallow-repository"); of != "true" {
		r.t.Fatalf("the copy is shallow: %s", of)
	}
	return copied, tip
}

// TestACommitCostsWhatItChanges over each transport, with each version, whatever the server allows, and where it has no
// history itself.
func TestACommitCostsWhatItChanges(t *testing.T) {
	t.Parallel()
	const filter, anyID, shallow = "uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant", "shallow"
	for _, configured := range []string{"", filter, anyID, filter + " " + anyID, shallow} {
		for _, over := range []string{"http", "ssh"} {
			for _, version2 := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s %s v2=%t", configured, over, version2), func(t *testing.T) {
					t.Parallel()
					f := upstream.ForTest(t)
					repository, first := newFleet(t, f, 200)
					for setting := range strings.FieldsSeq(configured) {
						if setting == shallow {
							repository, first = repository.shallow(f)
							continue
						}
						repository.Raw("config", setting, "true")
					}
					costsWhatItChanges(t, f, repository, first, over, version2)
				})
			}
		}
	}
}

func costsWhatItChanges(t *testing.T, f *upstream.Fixture, repository fleet, first, over string, version2 bool) {
	t.Helper()
	var remote git.Remote
	if over == "ssh" {
		server, as := serveSSH(t, f, upstream.SSHOptions{WithoutV2: !version2})
		remote = git.Remote{URL: server.URL(repository.Name())}
		remote.Credential.SSH = &as
	} else {
		remote.URL = f.HTTP(upstream.HTTPOptions{WithoutV2: !version2}).URL(repository.Name())
	}
	seen := &hows{}
	client := newClient(t, keeping(t.TempDir(), seen))
	look := func(what, hash string, most int64, want git.How) {
		t.Helper()
		commit := fetch(t, client, remote, git.Want{Hash: hash, Ref: "refs/heads/main"})
		if diff := cmp.Diff(expected(repository.Tree(hash)), files(t, commit.Tree())); diff != "" {
			t.Fatalf("%s: tree (-git +ours):\n%s", what, diff)
		}
		if got := seen.take(); !slices.Equal(got, []git.How{want}) {
			t.Errorf("%s: had by %v, want %s", what, got, want)
		}
		if commit.BytesReceived > most {
			t.Errorf("%s: %d bytes came, want %d at most", what, commit.BytesReceived, most)
		}
	}
	const advert = 2000 // of version 0, with its refs
	look("first", first, 1<<20, git.Whole)
	look("first again", first, 0, git.FromCache)
	second := repository.touch(5, "second")
	look("one line", second, 1500+advert, git.Incremental)
	var last string
	for i := range 30 {
		last = repository.touch(i%7, fmt.Sprint("commit ", i))
	}
	look("30 behind", last, 4000+advert, git.Incremental)
	look("one before", second, 0, git.FromCache)
	unrelated := repository.Rewrite("main", "unrelated", upstream.Text(map[string]string{"other": "history"}))
	look("force-pushed", unrelated, 1500+advert, git.Incremental)
	empty := repository.Rewrite("main", "empty", nil)
	look("empty", empty, 1500+advert, git.Incremental)
}

// TestChainsOfDeltasEnd: a file that changes with each commit is not put together from all of them.
func TestChainsOfDeltasEnd(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository, hash := newFleet(t, f, 40)
	seen, dir := &hows{}, t.TempDir()
	client := newClient(t, keeping(dir, seen))
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	base := read(t, fetch(t, client, remote, git.Want{Hash: hash}).Tree(), upstream.BulkPath(0))
	var before int64
	for i := range 56 {
		hash = repository.Commit("main", "m", upstream.Text(map[string]string{upstream.BulkPath(0): fmt.Sprint(base, "line ", i, "\n")}))
		commit := fetch(t, client, remote, git.Want{Hash: hash})
		if got := read(t, commit.Tree(), upstream.BulkPath(0)); got != fmt.Sprint(base, "line ", i, "\n") {
			t.Fatalf("commit %d: %d bytes", i, len(got))
		}
		if i == 20 {
			before = diskUsage(t, dir)
		}
	}
	if got := seen.take(); slices.Contains(got[1:], git.Whole) {
		t.Errorf("commits were had by %v", got)
	}
	if after := diskUsage(t, dir); after > 2*before+(5<<20) {
		t.Errorf("the cache grew from %d to %d bytes", before, after)
	}
}

func diskUsage(t *testing.T, dir string) (size int64) {
	t.Helper()
	err := filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// TestAnIdentityHasACacheOfItsOwn: what came with one credential is not shown to another, nor to a server that refuses it.
func TestAnIdentityHasACacheOfItsOwn(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	server := h.HTTP(upstream.HTTPOptions{})
	seen := &hows{}
	client := newClient(t, keeping(t.TempDir(), seen))
	anonymous := git.Remote{URL: server.URL("app")}
	named := anonymous
	named.Credential.Username = "ada"
	fetch(t, client, anonymous, git.Want{Hash: h.tip})
	fetch(t, client, named, git.Want{Hash: h.tip})
	if got := seen.take(); !slices.Equal(got, []git.How{git.Whole, git.Whole}) {
		t.Errorf("two identities: %v", got)
	}
	server.SetAccess(upstream.Access{Username: "ada", Password: "secret"})
	if _, err := client.Fetch(t.Context(), anonymous, git.Want{Hash: h.tip}); err == nil || !strings.Contains(err.Error(), "authentication") {
		t.Errorf("a commit that the server shows nobody any more: %v", err)
	}
}

// TestPartsAreKeptBesideTheObjects: the oldest give way, and one that is too large is not read.
func TestPartsAreKeptBesideTheObjects(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	remote := git.Remote{URL: h.HTTP(upstream.HTTPOptions{}).URL("app")}
	commit := fetch(t, newClient(t, keeping(t.TempDir(), &hows{})), remote, git.Want{Hash: h.tip})
	archive := func(i int) digest.Digest { return digest.FromString(fmt.Sprint("archive ", i)) }
	for i := range 70 {
		commit.Parts().Save(archive(i), []byte(fmt.Sprint("index ", i)))
	}
	kept := 0
	for i := range 70 {
		if index := commit.Parts().Load(archive(i)); index != nil {
			kept++
			if want := fmt.Sprint("index ", i); string(index) != want {
				t.Errorf("want %q, got %q", want, index)
			}
		}
	}
	if kept != 64 || commit.Parts().Load(archive(69)) == nil {
		t.Errorf("%d indexes are kept", kept)
	}
	commit.Parts().Save(archive(70), make([]byte, 17<<20))
	if index := commit.Parts().Load(archive(70)); index != nil {
		t.Errorf("an index of %d bytes was read", len(index))
	}
	if parts := fetch(t, newClient(t), remote, git.Want{Hash: h.tip}).Parts(); parts != nil {
		t.Error("without a cache there are parts")
	}
}
