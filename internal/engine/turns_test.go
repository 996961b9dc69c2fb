package engine_test

import (
	"sync"
	"testing"
	"time"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/build"
	"sluice.dev/sluice/internal/failure"
)

// While the memory for renders is taken, no worker waits for it: what is not there yet says so, what is installed is
// kept as it is.
func TestRendersWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.renderBytes, r.patience = 1, time.Millisecond
	r.start(nil)
	installed := r.in
	installed.Name, installed.UID = "installed", "uid-of-installed-in-"+r.namespace
	fresh := installed
	fresh.Name, fresh.UID = "fresh", "uid-of-fresh-in-"+r.namespace
	installed.Target, fresh.Target = r.target("1.0.0", configMapFiles("b", "1")), r.target("1.0.0", configMapFiles("c", "1"))
	if out, err := r.engine.Reconcile(t.Context(), installed); err != nil || !settled(out) {
		t.Fatalf("%+v, %v", out, err)
	}

	// The first one keeps its objects until the API server answers.
	begun, answer := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.mu.Lock()
	r.onCall = func(verb string) {
		if verb == "apply" {
			once.Do(func() { close(begun); <-answer })
		}
	}
	r.mu.Unlock()
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := r.engine.Reconcile(t.Context(), r.in); err != nil {
			t.Errorf("the one that had its turn: %v", err)
		}
	})
	<-begun

	before := r.rendered()
	_, err := r.engine.Reconcile(t.Context(), fresh)
	if found := failure.Of(err); err == nil || found.Disposition != failure.Waits || found.Reason != modulesv1.ProgressingReason || found.After == 0 {
		t.Errorf("what cannot be rendered now does not wait: %v", err)
	}
	installed.Target = r.target("2.0.0", configMapFiles("b", "2"))
	out, err := r.engine.Reconcile(t.Context(), installed)
	if err != nil || !out.Settled || out.Again == 0 {
		t.Errorf("what is installed is not kept: %+v, %v", out, err)
	}
	if made := r.rendered() - before; made != 0 {
		t.Errorf("%d renders while the memory was taken", made)
	}
	close(answer)
	group.Wait()
	if out, err := r.engine.Reconcile(t.Context(), installed); err != nil || out.Inventory.Data.Current.Version != "2.0.0" {
		t.Errorf("its turn does not come: %+v, %v", out, err)
	}
}

// A bug that one release brings to light keeps no other from being rendered.
func TestARenderThatPanicsGivesItsRoomBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.renderBytes, r.patience, r.builder = 1, time.Millisecond, &build.Builder{} // It has no program to run.
	r.start(nil)
	r.in.Target = r.target("1.0.0", map[string]string{"kustomization.yaml": "resources: [missing.yaml]\n"})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a builder without a program has built")
			}
		}()
		_, _ = r.engine.Reconcile(t.Context(), r.in)
	}()
	r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
	if out, err := r.engine.Reconcile(t.Context(), r.in); err != nil || !settled(out) {
		t.Errorf("%+v, %v", out, err)
	}
}
