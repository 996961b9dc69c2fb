package git_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/upstream"
)

// head is the commit that a branch is at.
func (w *writer) head(client *git.Client, ref string) string {
	w.t.Helper()
	refs, err := client.ListRefs(w.t.Context(), w.remote, ref)
	if err != nil || len(refs) != 1 {
		w.t.Error(refs, err)
		return ""
	}
	return refs[0].Hash
}

// TestNoCommitIsLostAmongPushers who all add a file to the same branch at the same time.
func TestNoCommitIsLostAmongPushers(t *testing.T) {
	t.Parallel()
	for _, over := range transports() {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			w := newWriter(t, over)
			w.Commit("main", "first", upstream.Text(map[string]string{"a": "1"}))
			pushers := map[string]int{"http": 20, "ssh": 8}[over] // Each session of sshd takes long to begin.
			var all sync.WaitGroup
			for i := range pushers {
				all.Go(func() {
					for range 200 {
						err := w.tryToAdd(fmt.Sprintf("pkg-%d", i))
						if err == nil {
							return
						}
						if !errors.Is(err, git.ErrRefMoved) {
							t.Error(i, err)
							return
						}
					}
					t.Errorf("%d is never first", i)
				})
			}
			all.Wait()
			if got := len(w.Tree("main")); got != pushers+1 {
				t.Errorf("%d files, want %d", got, pushers+1)
			}
			if got := w.Raw("rev-list", "--count", "main"); got != strconv.Itoa(pushers+1) {
				t.Errorf("%s commits, want %d", got, pushers+1)
			}
			w.sound()
		})
	}
}

// tryToAdd makes one attempt to add a folder to main.
func (w *writer) tryToAdd(name string) error {
	head := w.head(w.client, "refs/heads/main")
	base, err := w.client.Fetch(w.t.Context(), w.remote, git.Want{Hash: head})
	if err != nil {
		return err
	}
	objects := w.client.Compose(w.t.Context(), base)
	defer func() {
		if err := errors.Join(objects.Close(), base.Close()); err != nil {
			w.t.Error(err)
		}
	}()
	id, err := objects.Commit(w.t.Context(), commitOn(head, folder(name, map[string]string{"Kptfile": name})))
	if err != nil {
		return err
	}
	results, err := w.client.Push(w.t.Context(), w.remote, git.PushRequest{
		Objects: objects, Updates: []git.Update{{Ref: "refs/heads/main", Old: head, New: id}},
	})
	if err != nil {
		return err
	}
	return results[0].Err
}

// TestALostRaceIsToldFromARefusal whenever the ref moves while the push is on its way.
func TestALostRaceIsToldFromARefusal(t *testing.T) {
	t.Parallel()
	for _, over := range transports() {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			for _, atomic := range []bool{true, false} {
				w := newWriter(t, over)
				first := w.Commit("main", "first", upstream.Text(map[string]string{"a": "1"}))
				foreign := w.Commit("other", "foreign", upstream.Text(map[string]string{"a": "2"}))
				objects := w.compose(first)
				mine := w.commit(objects, commitOn(first))
				// The hook stands for somebody who is faster; git lets no other push through while it runs one.
				w.Hook("pre-receive", "unset GIT_QUARANTINE_PATH; git update-ref refs/heads/main "+foreign+" || exit 1; rm -f hooks/pre-receive")
				results, err := w.client.Push(t.Context(), w.remote, git.PushRequest{Objects: objects, Atomic: atomic, Updates: []git.Update{
					{Ref: "refs/heads/main", Old: first, New: mine}, {Ref: "refs/tags/v1", New: mine},
				}})
				if err != nil {
					t.Fatal(err)
				}
				if !errors.Is(results[0].Err, git.ErrRefMoved) || results[0].Found != foreign {
					t.Errorf("atomic %t: %v, at %q", atomic, results[0].Err, results[0].Found)
				}
				if want := map[bool]error{true: git.ErrNotMoved, false: nil}[atomic]; !errors.Is(results[1].Err, want) {
					t.Errorf("atomic %t: the tag: %v", atomic, results[1].Err)
				}
				if got := w.Raw("rev-parse", "main"); got != foreign {
					t.Errorf("main is at %s", got)
				}
			}
		})
	}
}

// TestAServerThatDies leaves each ref where it was or where it should be, and the same push again does the rest.
func TestAServerThatDies(t *testing.T) {
	t.Parallel()
	for _, over := range transports() {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			for hook, script := range map[string]string{
				"pre-receive": "kill -9 $PPID", "update": "kill -9 $PPID", "reference-transaction": `[ "$1" != committed ] || kill -9 $PPID`,
				"post-receive": "kill -9 $PPID", "post-update": "kill -9 $PPID",
			} {
				w := newWriter(t, over)
				first := w.Commit("main", "first", upstream.Text(map[string]string{"a": "1"}))
				objects := w.compose(first)
				mine := w.commit(objects, commitOn(first))
				w.Hook(hook, script)
				request := git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: "refs/heads/main", Old: first, New: mine}, {Ref: "refs/tags/v1", New: mine}}}
				results, err := w.client.Push(t.Context(), w.remote, request)
				refs := w.Raw("for-each-ref", "--format=%(refname) %(objectname)")
				for i, r := range results {
					if at := r.Ref + " " + mine; (r.Err == nil) != strings.Contains(refs, at) {
						t.Errorf("%s: ref %d: %v, and git has\n%s", hook, i, r.Err, refs)
					}
				}
				if results == nil && (err == nil || strings.Contains(refs, mine)) {
					t.Errorf("%s: %v, and git has\n%s", hook, err, refs)
				}
				w.Hook(hook, "exit 0")
				w.moves(request)
				w.sound()
			}
		})
	}
}

// TestALostAnswer is no lost push: wherever the answer breaks off, asking again tells what has become of it.
func TestALostAnswer(t *testing.T) {
	t.Parallel()
	w := newWriter(t, "http")
	head := w.Commit("main", "first", upstream.Text(map[string]string{"a": "1"}))
	objects := w.compose(head)
	for n := int64(0); n < 60; n += 3 {
		next := w.commit(objects, commitOn(head))
		w.server.FailNext(1, upstream.CutBody(n).On(upstream.Push))
		w.moves(git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: "refs/heads/main", Old: head, New: next}}})
		head = next
	}
	next := w.commit(objects, commitOn(head))
	request := git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: "refs/heads/main", Old: head, New: next}}}
	w.server.FailNext(1, upstream.CutBody(3).On(upstream.Push))
	struck := false
	w.server.Before(upstream.Push, func() {
		if !struck {
			struck = true
			w.server.FailNext(1, upstream.Drop().On(upstream.PushRefs))
		}
	})
	if _, err := w.client.Push(t.Context(), w.remote, request); err == nil {
		t.Error("nobody can know what became of it")
	}
	w.moves(request)
	if got := w.Raw("rev-parse", "main"); got != next {
		t.Errorf("main is at %s, want %s", got, next)
	}
	w.sound()
}

// TestACutConnection over SSH, wherever it is cut, leaves the ref at one of two places, and says which or that it is not known.
func TestACutConnection(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	head := repository.Commit("main", "first", upstream.Text(map[string]string{"a": "1"}))
	server, as := serveSSH(t, f, upstream.SSHOptions{})
	remote := over(server.URL("app"), as)
	w := &writer{Edited: repository, t: t, client: newClient(t), remote: remote}
	objects := w.compose(head)
	for n := int64(1500); n < 4500; n += 500 {
		next := w.commit(objects, commitOn(head))
		request := git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: "refs/heads/main", Old: head, New: next}}}
		server.FailNext(1, upstream.CutSSHAfter(n))
		client := newClient(t) // The connection of another would be reused.
		results, err := client.Push(t.Context(), remote, request)
		at := w.Raw("rev-parse", "main")
		if at != head && at != next {
			t.Fatalf("cut after %d: main is at %s", n, at)
		}
		if err == nil && (results[0].Err == nil) != (at == next) {
			t.Errorf("cut after %d: %v, and main is at %s", n, results[0].Err, at)
		}
		server.Heal()
		w.moves(request)
		head = next
	}
	w.sound()
}

// TestSilentServersOfPushes are given up.
func TestSilentServersOfPushes(t *testing.T) {
	t.Parallel()
	w := newWriter(t, "http")
	objects := w.compose()
	request := git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: "refs/heads/main", New: w.commit(objects, commitOn(""))}}}
	for _, kind := range []upstream.Kind{upstream.PushRefs, upstream.Push} {
		w.server.Always(upstream.Hang().On(kind))
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := w.client.Push(ctx, w.remote, request)
		checkError(t, string(kind)+" hangs", err, context.DeadlineExceeded)
		cancel()
		w.server.Heal()
	}
	client := newClientOver(t, transport.Options{AllowLoopback: true, StallTimeout: 3 * time.Second})
	w.server.Always(upstream.HangBody(3).On(upstream.Push))
	results, err := client.Push(t.Context(), w.remote, request)
	if err != nil || results[0].Err != nil {
		t.Errorf("the answer stalls when all is done: %v, %v", results, err)
	}
}

// TestHooksRunToTheirEnd: who pushes listens until all is said, but not for ever.
func TestHooksRunToTheirEnd(t *testing.T) {
	t.Parallel()
	for _, over := range transports() {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			w := newWriter(t, over)
			w.Hook("post-receive", "sleep 1; echo slow >&2; git update-ref refs/notes/hook $(git rev-parse main)")
			objects := w.compose()
			first := w.commit(objects, commitOn(""))
			w.moves(git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: "refs/heads/main", New: first}}})
			if got := w.Raw("for-each-ref", "--format=%(objectname)", "refs/notes/hook"); got != first {
				t.Errorf("the hook was broken off: %q", got)
			}
			w.Hook("post-receive", "while [ ! -e ended ]; do sleep 0.1; done")
			defer w.Raw("config", "--file", "ended", "hook.ended", "true")
			next := w.commit(objects, commitOn(first))
			client := newClientOver(t, transport.Options{AllowLoopback: true, StallTimeout: 4 * time.Second})
			results, err := client.Push(t.Context(), w.remote, git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: "refs/heads/main", Old: first, New: next}}})
			if err != nil || results[0].Err != nil {
				t.Errorf("a hook that does not end: %v, %v", results, err)
			}
		})
	}
}
