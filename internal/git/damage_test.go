package git_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

// worn is a cache of a repository's first two commits, and what else is needed to damage it.
type worn struct {
	url    string
	dir    string // with the cache of the first two
	first  string // with the cache of the first alone
	other  string // with that of another repository
	hashes []string
	want   []upstream.Files
}

func newWorn(t *testing.T) worn {
	t.Helper()
	f := upstream.ForTest(t)
	app, other := f.Repository("app"), f.Repository("other")
	server := f.HTTP(upstream.HTTPOptions{})
	w := worn{url: server.URL("app"), dir: t.TempDir(), first: t.TempDir(), other: t.TempDir()}
	for i := range 3 {
		text := ""
		for line := range 200 {
			text += strconv.Itoa(line*line) + "\n"
		}
		hash := app.Commit("main", "m", upstream.Text(map[string]string{
			"file": text + strconv.Itoa(i), "noise": noise(3000), "dir/same": "same", "dir/deep/" + strconv.Itoa(i): "new",
		}))
		w.hashes, w.want = append(w.hashes, hash), append(w.want, expected(app.Tree(hash)))
	}
	keep := func(dir, url string, hashes ...string) {
		client := newClient(t, keeping(dir, &hows{}))
		for _, hash := range hashes {
			fetch(t, client, git.Remote{URL: url}, git.Want{Hash: hash, Ref: "refs/heads/main"})
		}
	}
	keep(w.dir, w.url, w.hashes[:2]...)
	keep(w.first, w.url, w.hashes[0])
	keep(w.other, server.URL("other"), other.Commit("main", "m", upstream.Text(map[string]string{"file": noise(9000)})))
	return w
}

// file finds the file of a cache; there is one repository in it.
func file(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	return found[0]
}

// wantRight damages a copy of the cache and fetches: each commit is right at once or after one fetch that failed.
func (w worn) wantRight(t *testing.T, damage func(dir string)) {
	t.Helper()
	w.wantRightIn(t, copied(t, w.dir), damage)
}

func (w worn) wantRightIn(t *testing.T, dir string, damage func(dir string)) {
	t.Helper()
	damage(dir)
	seen := &hows{}
	client := newClient(t, keeping(dir, seen))
	failed := 0
	for i := 1; i < len(w.hashes); {
		got, err := tryFetch(t, client, w.url, w.hashes[i])
		if err == nil {
			if diff := cmp.Diff(w.want[i], got); diff != "" {
				t.Errorf("commit %d (-git +ours):\n%s", i, diff)
			}
			i++
			continue
		}
		if failed++; failed > 1 {
			t.Errorf("commit %d, failure %d: %v", i, failed, err)
			return
		}
	}
	seen.take()
	if _, err := tryFetch(t, client, w.url, w.hashes[2]); err != nil || seen.take()[0] != git.FromCache {
		t.Errorf("the cache is of no use any more: %v", err)
	}
	if found, err := os.ReadDir(filepath.Dir(file(t, dir, "index"))); len(found) != 2 {
		t.Errorf("what was damaged is still there: %v, %v", found, err)
	}
}

// tryFetch reads all of a commit.
func tryFetch(t *testing.T, client *git.Client, url, hash string) (found upstream.Files, err error) {
	t.Helper()
	commit, err := client.Fetch(t.Context(), git.Remote{URL: url}, git.Want{Hash: hash, Ref: "refs/heads/main"})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, commit.Close()) }()
	tree := commit.Tree()
	err = fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			_, err = fs.ReadFile(tree, path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return files(t, tree), nil
}

// cacheFiles are the files of a repository's cache.
var cacheFiles = []string{"index", "data-*"}

func change(t *testing.T, path string, how func(content []byte) []byte) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, how(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestADamagedCacheIsHealed(t *testing.T) {
	t.Parallel()
	w := newWorn(t)
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]func(t *testing.T, dir, pattern string){
		"deleted": func(t *testing.T, dir, pattern string) { t.Helper(); must(os.Remove(file(t, dir, pattern))) },
		"a folder": func(t *testing.T, dir, pattern string) {
			t.Helper()
			path := file(t, dir, pattern)
			must(os.Remove(path), os.Mkdir(path, 0o700))
		},
		"a folder with something in it": func(t *testing.T, dir, pattern string) {
			t.Helper()
			path := file(t, dir, pattern)
			must(os.Remove(path), os.MkdirAll(filepath.Join(path, "in", "it"), 0o700))
		},
		"a link to nothing": func(t *testing.T, dir, pattern string) {
			t.Helper()
			path := file(t, dir, pattern)
			must(os.Remove(path), os.Symlink("nowhere", path))
		},
		"the other repository's": func(t *testing.T, dir, pattern string) {
			t.Helper()
			change(t, file(t, dir, pattern), func([]byte) []byte {
				content, err := os.ReadFile(file(t, w.other, pattern))
				must(err)
				return content
			})
		},
		"the older one": func(t *testing.T, dir, pattern string) {
			t.Helper()
			change(t, file(t, dir, pattern), func([]byte) []byte {
				content, err := os.ReadFile(file(t, w.first, pattern))
				must(err)
				return content
			})
		},
		"garbage behind it": func(t *testing.T, dir, pattern string) {
			t.Helper()
			change(t, file(t, dir, pattern), func(content []byte) []byte { return append(content, noise(5000)...) })
		},
		"zeros": func(t *testing.T, dir, pattern string) {
			t.Helper()
			change(t, file(t, dir, pattern), func(content []byte) []byte { return make([]byte, len(content)) })
		},
		"zeros at the end": func(t *testing.T, dir, pattern string) {
			t.Helper()
			change(t, file(t, dir, pattern), func(content []byte) []byte { clear(content[len(content)*2/3:]); return content })
		},
		"zeros in the middle": func(t *testing.T, dir, pattern string) {
			t.Helper()
			change(t, file(t, dir, pattern), func(content []byte) []byte { clear(content[len(content)/3 : len(content)/2]); return content })
		},
	}
	for name, damage := range cases {
		for _, pattern := range cacheFiles {
			t.Run(name+" "+pattern, func(t *testing.T) {
				t.Parallel()
				w.wantRight(t, func(dir string) { damage(t, dir, pattern) })
			})
		}
		t.Run(name+" both", func(t *testing.T) {
			t.Parallel()
			w.wantRight(t, func(dir string) {
				for _, pattern := range []string{"data-*", "index"} {
					damage(t, dir, pattern)
				}
			})
		})
	}
	t.Run("the other repository's folder", func(t *testing.T) {
		t.Parallel()
		w.wantRight(t, func(dir string) {
			mine := filepath.Dir(file(t, dir, "index"))
			must(os.RemoveAll(mine), os.CopyFS(mine, os.DirFS(filepath.Dir(file(t, w.other, "index")))))
		})
	})
}

func TestATruncatedCacheIsHealed(t *testing.T) {
	t.Parallel()
	w := newWorn(t)
	for _, pattern := range cacheFiles {
		for part := range 12 {
			w.wantRight(t, func(dir string) {
				change(t, file(t, dir, pattern), func(content []byte) []byte { return content[:min(len(content)-1, len(content)*part/11)] })
			})
		}
	}
}

func TestNoFlippedBitOfTheCacheGetsThrough(t *testing.T) {
	t.Parallel()
	w := newWorn(t)
	for _, pattern := range cacheFiles {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(1, 2))
			for range 60 {
				w.wantRight(t, func(dir string) {
					change(t, file(t, dir, pattern), func(content []byte) []byte {
						bit := random.IntN(8 * len(content))
						content[bit/8] ^= 1 << (bit % 8)
						return content
					})
				})
			}
		})
	}
}

// TestACacheWithoutRightsCostsAFetch runs in a process that modes bind.
func TestACacheWithoutRightsCostsAFetch(t *testing.T) {
	t.Parallel()
	if boundElsewhere(t) {
		return
	}
	w := newWorn(t)
	for _, pattern := range cacheFiles {
		w.wantRight(t, func(dir string) {
			if err := os.Chmod(file(t, dir, pattern), 0); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestAFolderWithoutRightsCostsAFetch also where a pack does not fit into memory.
func TestAFolderWithoutRightsCostsAFetch(t *testing.T) {
	t.Parallel()
	if boundElsewhere(t) {
		return
	}
	f := upstream.ForTest(t)
	url, dir := f.HTTP(upstream.HTTPOptions{}).URL("app"), t.TempDir()
	hashes := noisy(f.Repository("app"), 2, 9<<20)
	seen, told := &hows{}, 0
	client := newClient(t, keeping(dir, seen), func(o *git.Options) { o.CacheFailed = func(error) { told++ } })
	for i, hash := range hashes {
		if _, err := tryFetch(t, client, url, hash); err != nil {
			t.Errorf("commit %d: %v", i, err)
		}
		folder, err := filepath.Glob(filepath.Join(dir, "?*[^k]"))
		if err != nil || len(folder) != 1 {
			t.Fatal(folder, err)
		}
		if err := os.Chmod(folder[0], 0); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.Chmod(folder[0], 0o700) }() // So that it can be removed.
	}
	if got := seen.take(); told != 1 || len(got) != 2 || got[1] != git.Whole {
		t.Errorf("commits were had by %v, %d failures were told", got, told)
	}
}

// TestWhatCannotBeKeptLeavesWhatWas keeps the index from being written.
func TestWhatCannotBeKeptLeavesWhatWas(t *testing.T) {
	t.Parallel()
	w := newWorn(t)
	folder := filepath.Base(filepath.Dir(file(t, w.dir, "index")))
	for name, c := range map[string]struct {
		from, begin string
		left        int
		want        git.How
	}{
		"with a cache":    {w.first, w.hashes[0], 1, git.Incremental},
		"without a cache": {t.TempDir(), w.hashes[0][1:] + "0", 0, git.Whole},
	} {
		dir, seen, told := copied(t, c.from), &hows{}, 0
		client := newClient(t, keeping(dir, seen), func(o *git.Options) { o.CacheFailed = func(error) { told++ } })
		_, _ = tryFetch(t, client, w.url, c.begin) // The cache has looked what is there.
		blocked := filepath.Join(dir, folder, "index.new")
		if err := os.MkdirAll(blocked, 0o700); err != nil {
			t.Fatal(err)
		}
		seen.take()
		for i, n := range []int{1, 2, 2, 2} {
			if got, err := tryFetch(t, client, w.url, w.hashes[n]); err != nil || !cmp.Equal(got, w.want[n]) {
				t.Errorf("%s, fetch %d: %v", name, i, err)
			}
			if i == 1 {
				if found, err := filepath.Glob(filepath.Join(dir, folder, "data-*")); err != nil || len(found) != c.left {
					t.Errorf("%s: there is %v, want %d", name, found, c.left)
				}
				if err := os.Remove(blocked); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got, want := seen.take(), []git.How{c.want, c.want, c.want, git.FromCache}; !cmp.Equal(got, want) || told != 2 {
			t.Errorf("%s: commits were had by %v, want %v; told %d times", name, got, want, told)
		}
	}
}

// boundElsewhere runs the test again in a process that modes bind, when root runs it.
func boundElsewhere(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 || os.Getenv(childMode) == "bound" {
		return false
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	command.Env = append(os.Environ(), childMode+"=bound")
	ended := make(chan error)
	var out []byte
	go func() {
		// What a thread gives up stays given up. This one stays locked, so that it ends with the goroutine.
		runtime.LockOSThread()
		for _, right := range []uintptr{unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH} {
			// Who may not give up rights has few of them, and these are hardly among them: the test tells.
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, right, 0, 0, 0); err != nil && !errors.Is(err, unix.EPERM) {
				ended <- err
				return
			}
		}
		var err error
		out, err = command.CombinedOutput()
		ended <- err
	}()
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return true
}
