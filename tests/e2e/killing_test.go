package e2e

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

// killing is a scene whose program is killed, round after round, while it takes up one commit after the other.
type killing struct {
	*scene
	api        *apiProxy
	repository *upstream.Edited
	server     *upstream.GitHTTP
	rounds     int
	struck     int
	digests    map[string]digest.Digest // of every path that was ever seen
}

func newKilling(t *testing.T) *killing {
	t.Helper()
	api := newAPIProxy(t) // It has to outlive the program.
	k := &killing{scene: newScene(t), api: api, digests: map[string]digest.Digest{}}
	k.kubeconfig = k.api.kubeconfig
	k.repository = k.upstream.Repository("app")
	k.server = k.upstream.HTTP(upstream.HTTPOptions{})
	k.start()
	commit := k.commit()
	k.create("app", k.server.URL("app"))
	k.ready("app", mainAt(commit))
	return k
}

// commit puts the round's commit on main: a few files, and some that make the pack travel in several pieces.
func (k *killing) commit() string {
	k.t.Helper()
	k.rounds++
	number := uint64(k.rounds)
	return k.repository.Commit("main", fmt.Sprintf("Round %d", k.rounds), upstream.Text(map[string]string{
		"app.yaml": fmt.Sprintf("round: %d\n", number), "deploy/large.txt": noise(48<<10, number), "deploy/small.txt": noise(100, number),
	}))
}

// strike is the kill itself; it does not wait, so that it may be called from anywhere.
func (k *killing) strike() func() {
	pid := k.manager.Pid()
	return func() { _ = syscall.Kill(pid, syscall.SIGKILL) }
}

// round lets the program take up a commit, kills it where arm says, and checks what it left and what becomes of it.
func (k *killing) round(point string, arm func(strike func()) (disarm func())) {
	k.t.Helper()
	commit := k.commit()
	disarm := arm(k.strike())
	token := k.request("app")
	died := k.diesOrFinishes(token, commit)
	disarm()
	if !died {
		k.t.Logf("%s: not reached", point)
		return
	}
	k.manager = nil
	k.struck++
	k.api.settle()
	k.intact(point)
	told := k.get("app").Status.Artifact.Revision == mainAt(commit)
	k.start()
	obj := k.ready("app", mainAt(commit))
	k.holds(obj.Status.Artifact, k.repository.Tree(commit))
	if !told {
		// Once status has been written, a crash may swallow the event; before that, the next process must send it.
		k.toldNewArtifact("app", mainAt(commit))
	}
	k.clean(point)
}

// diesOrFinishes tells whether the process died. One that has done all its work gets a moment more for its events.
func (k *killing) diesOrFinishes(token, commit string) bool {
	k.t.Helper()
	finished := time.NewTimer(patience)
	defer finished.Stop()
	poll := time.NewTicker(150 * time.Millisecond)
	defer poll.Stop()
	seen := false
	for {
		select {
		case <-k.manager.Done():
			return true
		case <-finished.C:
			if !seen {
				k.t.Fatalf("neither died nor finished; status %s", asJSON(k.get("app").Status))
			}
			return false
		case <-poll.C:
			obj := k.get("app")
			if !seen && obj.Status.LastHandledReconcileAt == token && obj.Status.Artifact.Revision == mainAt(commit) {
				seen = true
				finished.Reset(time.Second)
			}
		}
	}
}

// diesBefore tells whether the process died before all was done.
func (s *scene) diesBefore(what string, done func(context.Context) (bool, string)) bool {
	s.t.Helper()
	poll := time.NewTicker(300 * time.Millisecond) // Each look asks for all objects; a death is told at once.
	defer poll.Stop()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		select {
		case <-s.manager.Done():
			return true
		case <-limit.C:
			_, seen := done(s.t.Context())
			s.t.Fatalf("%s: neither died nor came to its end: %s", what, seen)
		case <-poll.C:
			if ok, _ := done(s.t.Context()); ok {
				return false
			}
		}
	}
}

// intact checks the storage as the kill left it: whatever is served is whole and named by the digest it has, whatever
// status names is there, and no path ever has other bytes than before.
func (k *killing) intact(point string) {
	k.t.Helper()
	found, wrong := readDisk(k.storage)
	artifact := k.get("app").Status.Artifact
	if got := found.files[artifact.Path]; got.String() != artifact.Digest {
		wrong = append(wrong, fmt.Sprintf("status names %s with the digest %s, its bytes have %q", artifact.Path, artifact.Digest, got))
	}
	for name, is := range found.files {
		if was, known := k.digests[name]; known && was != is {
			wrong = append(wrong, fmt.Sprintf("%s had the digest %s and has %s", name, was, is))
		}
		k.digests[name] = is
	}
	if len(wrong) > 0 {
		k.t.Errorf("killed %s: %s", point, strings.Join(wrong, "\n"))
	}
}

// clean waits until nothing is left behind by the process that was killed.
func (s *scene) clean(point string) {
	s.t.Helper()
	s.eventually("no strays after "+point, func(context.Context) (bool, string) {
		found, wrong := readDisk(s.storage)
		left := append(found.strays(), wrong...)
		return len(left) == 0, strings.Join(left, "\n")
	})
}

// begin makes the second artifact: from the third one on, each change also removes one.
func (k *killing) begin() {
	k.t.Helper()
	commit := k.commit()
	k.reconcile("app")
	k.toldNewArtifact("app", mainAt(commit))
}

// once is a round without a kill, up to the event that ends it.
func (k *killing) once() {
	k.t.Helper()
	commit := k.commit()
	k.reconcile("app")
	k.toldNewArtifact("app", mainAt(commit))
	k.told("app", "Normal", sourcev1.GarbageCollectionSucceededReason, "garbage collected 1 artifacts")
}
