package pkgrepo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/tests/upstream"
)

const writers = 20

// TestForeignWritersLoseNothing: while packages are written and published, others push to the same branch and to the same drafts
// with git itself.
func TestForeignWritersLoseNothing(t *testing.T) {
	t.Parallel()
	for _, over := range []string{overHTTP, overSSH} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, over)
			var round []pkgrepo.Change
			for i := range 5 {
				s.publish(fmt.Sprintf("p%d", i), "one")
				round = append(round, write(fmt.Sprintf("p%d", i), "shared", "start"))
			}
			s.apply(round...)
			var group sync.WaitGroup
			for i := range writers {
				group.Go(func() { pushByHand(t, s, i) })
			}
			published := 0
			for i := range 5 {
				published += publishAmong(t, s, fmt.Sprintf("p%d", i))
			}
			group.Wait()
			final := s.sync()
			for i := range writers {
				if s.Tree("main")[fmt.Sprintf("theirs/%d.yaml", i)].Content != "theirs" {
					t.Errorf("the commit of writer %d was lost", i)
				}
				if i%4 == 0 {
					continue
				}
				pkg := fmt.Sprintf("p%d", i%5)
				file := fmt.Sprintf("%s/theirs%d.yaml", pkg, i)
				if s.Tree("drafts/" + pkg + "/shared")[file].Content != "theirs" {
					t.Errorf("%s was lost from the draft", file)
				}
			}
			for path, pkg := range final.Packages {
				if strings.HasPrefix(path, "p") && (len(pkg.Open) != 1 || len(pkg.Published) != 2) {
					t.Errorf("%s: %d open, %d published", path, len(pkg.Open), len(pkg.Published))
				}
			}
			if published != 5 {
				t.Errorf("%d were published", published)
			}
			s.sound()
		})
	}
}

// publishAmong writes to the draft that others write to, and publishes another one, however often it loses.
func publishAmong(t *testing.T, s *shop, pkg string) int {
	t.Helper()
	deadline, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	keep := write(pkg, "shared", "")
	keep.Make = func(_ context.Context, now pkgrepo.Current) (pkgrepo.Made, error) {
		made := content(now, map[string]string{"a.yaml": "ours"})
		for name, file := range now.Local {
			if strings.HasPrefix(name, "theirs") {
				made[name] = file
			}
		}
		return pkgrepo.Made{Package: made}, nil
	}
	again := func(change pkgrepo.Change) pkgrepo.Result {
		for {
			r := s.Apply(deadline, []pkgrepo.Change{change})[0]
			if r.Err == nil || deadline.Err() != nil || !errors.Is(r.Err, git.ErrRefMoved) {
				if r.Err != nil {
					t.Error(r.Err)
				}
				return r
			}
		}
	}
	again(keep)
	own := again(write(pkg, "own", "two"))
	return again(pkgrepo.Change{Kind: pkgrepo.Publish, Package: pkg, Workspace: "own", Expect: own.Commit}).Number / 2
}

// pushByHand is another writer: with the git program, and again when it was too late.
func pushByHand(t *testing.T, s *shop, i int) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	run := func(args ...string) error {
		_, err := upstream.Git(t.Context(), dir, nil, args...)
		return err
	}
	if _, err := upstream.Git(t.Context(), t.TempDir(), nil, "clone", "-q", s.Dir(), dir); err != nil {
		t.Error(err)
		return
	}
	edits := []string{"main", fmt.Sprintf("theirs/%d.yaml", i)}
	if i%4 != 0 {
		edits = append(edits, fmt.Sprintf("drafts/p%d/shared", i%5), fmt.Sprintf("p%d/theirs%d.yaml", i%5, i))
	}
	for at := 0; at < len(edits); at += 2 {
		branch, file := edits[at], edits[at+1]
		for tries := 0; ; tries++ {
			err := errors.Join(run("fetch", "-q", "origin"), run("checkout", "-q", "-B", "work", "origin/"+branch))
			err = errors.Join(err, os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o700), os.WriteFile(filepath.Join(dir, file), []byte("theirs"), 0o600))
			if err = errors.Join(err, run("add", file), run("commit", "-q", "-m", "by hand")); err != nil {
				t.Error(err)
				return
			}
			if run("push", "-q", "origin", "work:"+branch) == nil {
				break
			}
			if tries > 200 {
				t.Errorf("writer %d never got through", i)
				return
			}
		}
	}
}
