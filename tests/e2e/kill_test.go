package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

// fewestPoints is at how many points at least the program has to be killed: at few of them, unless SLUICE_TORTURE asks for
// all. One that a round happens not to reach does not count.
func fewestPoints(few, all int) int {
	if os.Getenv("SLUICE_TORTURE") != "" {
		return all
	}
	return few
}

// someOf are the moments of the nth write at which the program is killed: one of them by turns, unless SLUICE_TORTURE asks for all.
func someOf(n int, moments ...moment) []moment {
	if os.Getenv("SLUICE_TORTURE") != "" {
		return moments
	}
	return moments[n%len(moments):][:1]
}

// TestKilledAtAnyStepInTheStorageItConverges, and at any in the folder of what was fetched: both are at work at once.
func TestKilledAtAnyStepInTheStorageItConverges(t *testing.T) {
	t.Parallel()
	k := newKilling(t)
	k.begin()
	fetched := watch(t, 0, nil, k.cache())
	counting := watch(t, 0, nil, k.storage, k.cache())
	k.once()
	all, cached := counting.close(), fetched.close()
	t.Logf("a change makes %d file system events, %d of them in the cache", all, cached)
	if cached == 0 || cached == all {
		t.Error("one of the folders is not used")
	}

	fewest := fewestPoints(8, 50)
	step := max(1, float64(all)/float64(fewest+8))
	for at := 1.0; at <= float64(all); at += step {
		k.round(fmt.Sprintf("at file system event %d", int64(at)), func(strike func()) func() {
			w := watch(t, int64(at), strike, k.storage, k.cache())
			return func() { w.close() }
		})
	}
	if k.struck < fewest {
		t.Errorf("killed at %d points, want at least %d", k.struck, fewest)
	}
}

func TestKilledAtAnyStepOnTheWireItConverges(t *testing.T) {
	t.Parallel()
	k := newKilling(t)
	k.begin()
	k.api.onWrite(0, "", nil)
	k.once()
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
	for n := 0; n < 20; n += fewestPoints(4, 1) {
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
	if fewest := fewestPoints(16, 30); k.struck < fewest {
		t.Errorf("killed at %d points, want at least %d", k.struck, fewest)
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
			k.manager = nil
			k.api.settle()
			k.intact(name)
			told := k.get(name).Status.Artifact != nil
			k.start()
			k.ready(name, mainAt(head))
			if !told {
				k.toldNewArtifact(name, mainAt(head))
			}

			k.api.onWrite(1, when, k.strike())
			if err := env.Client.Delete(t.Context(), k.get(name)); err != nil {
				t.Fatal(err)
			}
			k.within("killed while an object goes away, "+string(when), k.manager.Done())
			k.manager = nil
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
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}
