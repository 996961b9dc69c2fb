package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/tests/upstream"
)

// TestPackagesKilledAnywhereEndAsIfUndisturbed kills the program while packages go from drafts to their end, lap after lap: at
// writes to the API server, and at what Git servers are asked for. Then everything is made anew and goes the same way in peace.
// Each branch, tag and mark has to have had the same states in the same order: nothing was written half, twice or not at all.
func TestPackagesKilledAnywhereEndAsIfUndisturbed(t *testing.T) {
	t.Parallel()
	fewest := fewestPoints(10, 100)
	k := newPackageKilling(t)
	k.begin()
	laps := 0
	for k.struck < fewest {
		if laps++; laps > fewest {
			t.Fatalf("killed at %d points in %d laps", k.struck, laps)
		}
		k.run(laps)
	}
	t.Logf("killed at %d points in %d laps", k.struck, laps)
	k.comesTo("all repositories are looked at", k.rested())
	disturbed := k.chronicle()

	k.reset()
	k.points = nil
	k.begin()
	for lap := range laps {
		k.run(lap + 1)
	}
	k.comesTo("all repositories are looked at", k.rested())
	if diff := cmp.Diff(k.chronicle(), disturbed); diff != "" {
		t.Errorf("what happened when it was killed is not what happens undisturbed (-undisturbed +killed):\n%s", diff)
	}
}

// packageKilling is a scene of laps on which the program may be killed.
type packageKilling struct {
	*packageLaps

	api    *apiProxy
	struck int
	// points are where the program is killed, one after the other and then again; without any it is left in peace.
	points []strikePoint
	tried  int
	// most is how often a step is struck before it may come to its end.
	most int
}

// strikePoint has a strike come at a moment of what the program does, and takes that back.
type strikePoint struct {
	name string
	arm  func(strike func()) (disarm func())
}

func newPackageKilling(t *testing.T) *packageKilling {
	t.Helper()
	api := newAPIProxy(t) // It has to outlive the program.
	k := &packageKilling{packageLaps: newPackageLaps(t), api: api, most: mostKills()}
	k.kubeconfig = api.kubeconfig
	for n := 1; n <= 14; n++ {
		for _, when := range []moment{beforeForwarding, beforeAnswering, afterAnswering} {
			k.points = append(k.points, k.atWrite(n, when))
		}
	}
	for _, kind := range []upstream.Kind{upstream.LsRefs, upstream.Fetch, upstream.PushRefs, upstream.Push} {
		for n := 1; n <= 3; n++ {
			k.points = append(k.points, k.beforeGit(kind, n))
		}
	}
	for _, stage := range []string{"pre-receive", "prepared", "committed", "post-receive"} {
		for _, repository := range []string{"north", "south"} {
			k.points = append(k.points, k.insideGit(repository, stage))
		}
	}
	// The seed is the same each time, and so are the points.
	rand.New(rand.NewPCG(11, 100)).Shuffle(len(k.points), func(i, j int) { k.points[i], k.points[j] = k.points[j], k.points[i] })
	return k
}

// atWrite is the nth write to the API server.
func (k *packageKilling) atWrite(n int, when moment) strikePoint {
	return strikePoint{fmt.Sprintf("at write %02d to the API server, %s", n, when), func(strike func()) func() {
		k.api.onWrite(n, when, strike)
		return func() { k.api.onWrite(0, "", nil) }
	}}
}

// beforeGit is the nth request of a kind: git has not seen it yet, and answers nobody.
func (k *packageKilling) beforeGit(kind upstream.Kind, n int) strikePoint {
	return strikePoint{fmt.Sprintf("at request %d for %s", n, kind), func(strike func()) func() {
		var count atomic.Int64
		k.server.Before(kind, func() {
			if count.Add(1) == int64(n) {
				strike()
			}
		})
		return func() { k.server.Before(kind, nil) }
	}}
}

// insideGit is a stage of what git does with a push, see recordHook.
func (k *packageKilling) insideGit(repository, stage string) strikePoint {
	return strikePoint{"in " + repository + " at the stage " + stage, func(func()) func() {
		mark := filepath.Join(k.repos[repository].Dir(), "strike-"+stage)
		if err := os.WriteFile(mark, []byte(strconv.Itoa(k.manager.Pid())), 0o600); err != nil {
			k.t.Fatal(err)
		}
		return func() { _ = os.Remove(mark) }
	}}
}

// run goes one lap, and strikes on each of its steps as long as it is not done.
func (k *packageKilling) run(lap int) {
	k.t.Helper()
	for _, step := range k.steps(lap) {
		k.strikeOn(fmt.Sprintf("lap %d: %s", lap, step.name), step)
	}
}

// strikeOn has a step done, and the program killed as long as it is not.
func (k *packageKilling) strikeOn(what string, step lapStep) {
	k.t.Helper()
	disarm := k.arm()
	step.begin()
	for range k.most {
		died := k.diesBefore(what, step.done)
		disarm()
		if !died {
			break
		}
		k.revive(what)
		disarm = k.arm()
	}
	disarm()
	k.comesTo(what, step.done)
}

// comesTo waits until all is done. A strike that was under way when it was taken back still comes.
func (k *packageKilling) comesTo(what string, done func(context.Context) (bool, string)) {
	k.t.Helper()
	for k.diesBefore(what, done) {
		k.revive(what)
	}
}

// revive starts the program that was killed.
func (k *packageKilling) revive(what string) {
	k.t.Helper()
	k.t.Logf("%s: killed %s", what, k.points[k.tried%len(k.points)].name)
	k.manager = nil
	k.struck++
	k.api.settle()
	k.start()
}

// arm has the process killed at the next point.
func (k *packageKilling) arm() (disarm func()) {
	if len(k.points) == 0 {
		return func() {}
	}
	k.tried++
	pid := k.manager.Pid()
	return k.points[k.tried%len(k.points)].arm(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
}

// reset stops the program and removes all that there is.
func (k *packageKilling) reset() {
	k.t.Helper()
	k.stop()
	k.loseCluster()
	for name, repo := range k.repos {
		if err := os.RemoveAll(repo.Dir()); err != nil {
			k.t.Fatal(err)
		}
		delete(k.repos, name)
	}
	k.storage = k.t.TempDir()
}
