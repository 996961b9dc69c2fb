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

// Both tests together kill the program at more points than this. Points that a round happens not to reach do not count.
const (
	fewestFilePoints = 30
	fewestWirePoints = 30
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
	k := &killing{scene: newScene(t), api: newAPIProxy(t), digests: map[string]digest.Digest{}}
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
	k.ended()
	k.struck++
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
	finished := time.NewTimer(time.Minute)
	defer finished.Stop()
	poll := time.NewTicker(50 * time.Millisecond)
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
func (k *killing) clean(point string) {
	k.t.Helper()
	k.eventually("no strays after "+point, func(context.Context) (bool, string) {
		found, wrong := readDisk(k.storage)
		left := append(found.strays(), wrong...)
		return len(left) == 0, strings.Join(left, "\n")
	})
}

// once measures a round without a kill.
func (k *killing) once() {
	k.t.Helper()
	commit := k.commit()
	k.reconcile("app")
	k.ready("app", mainAt(commit))
}

func TestKilledAtAnyStepInTheStorageItConverges(t *testing.T) {
	t.Parallel()
	k := newKilling(t)
	k.once() // The first change makes folders; all later ones do the same to the same folders.
	counting := watch(t, k.storage, 0, nil)
	k.once()
	k.toldNewArtifact("app", k.get("app").Status.Artifact.Revision)
	all := counting.close()
	t.Logf("a change makes %d file system events", all)

	step := max(1, float64(all)/(fewestFilePoints+8))
	for at := 1.0; at <= float64(all); at += step {
		k.round(fmt.Sprintf("at file system event %d", int64(at)), func(strike func()) func() {
			w := watch(t, k.storage, int64(at), strike)
			return func() { w.close() }
		})
	}
	if k.struck < fewestFilePoints {
		t.Errorf("killed at %d points, want at least %d", k.struck, fewestFilePoints)
	}
}

func TestKilledAtAnyStepOnTheWireItConverges(t *testing.T) {
	t.Parallel()
	k := newKilling(t)
	k.once()
	k.api.onWrite(0, "", nil)
	k.once()
	k.toldNewArtifact("app", k.get("app").Status.Artifact.Revision)
	writes := k.api.seen()
	t.Logf("a change makes %d writes: %q", len(writes), writes)

	for n := 1; n <= len(writes); n++ {
		for _, when := range []moment{beforeForwarding, beforeAnswering, afterAnswering} {
			k.round(fmt.Sprintf("at write %d to the API server, %s", n, when), func(strike func()) func() {
				k.api.onWrite(n, when, strike)
				return func() { k.api.onWrite(0, "", nil) }
			})
		}
	}
	for _, kind := range []upstream.Kind{upstream.LsRefs, upstream.Fetch} {
		k.round(fmt.Sprintf("before git answers %s", kind), func(strike func()) func() {
			k.server.Before(kind, strike)
			return func() { k.server.Before(kind, nil) }
		})
	}
	const piece = 2 << 10
	for n := range 20 {
		k.round(fmt.Sprintf("after %d bytes of a fetch", n*piece), func(strike func()) func() {
			ticks, done := make(chan time.Time), make(chan struct{})
			go func() {
				defer strike()
				for range n + 1 { // The tick after a piece is taken when the piece has been sent.
					select {
					case ticks <- time.Time{}:
					case <-done:
						return
					}
				}
			}()
			k.server.Always(upstream.Slow(piece, ticks).On(upstream.Fetch))
			return func() {
				close(done)
				k.server.Heal()
			}
		})
	}
	if k.struck < fewestWirePoints {
		t.Errorf("killed at %d points, want at least %d", k.struck, fewestWirePoints)
	}
}

func TestKilledWhileAnObjectComesAndGoesItConverges(t *testing.T) {
	t.Parallel()
	k := newKilling(t)
	head, err := k.repository.Resolve("refs/heads/main")
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 4; n++ {
		for _, when := range []moment{beforeForwarding, beforeAnswering} {
			name := fmt.Sprintf("new-%d-%d", n, len(when))
			k.api.onWrite(n, when, k.strike())
			k.create(name, k.server.URL("app"))
			k.within(fmt.Sprintf("killed at write %d for a new object, %s", n, when), k.manager.Done())
			k.ended()
			k.intact(name)
			k.start()
			k.ready(name, mainAt(head))

			k.api.onWrite(1, when, k.strike())
			if err := env.Client.Delete(t.Context(), k.get(name)); err != nil {
				t.Fatal(err)
			}
			k.within("killed while an object goes away, "+string(when), k.manager.Done())
			k.ended()
			k.api.onWrite(0, "", nil)
			k.start()
			k.gone(name)
			k.clean(name)
		}
	}
}

// gone waits until the object and all its files are gone.
func (s *scene) gone(name string) {
	s.t.Helper()
	s.eventually(name+" is gone", func(ctx context.Context) (bool, string) {
		err := env.Client.Get(ctx, s.key(name), &sourcev1.GitRepository{})
		found, _ := readDisk(s.storage)
		for file := range found.files {
			if strings.HasPrefix(file, "gitrepository/"+s.namespace+"/"+name+"/") {
				return false, file
			}
		}
		return err != nil, fmt.Sprint(err)
	})
}
