package engine_test

import (
	"testing"
	"time"
)

// rendered is how often something was rendered so far.
func (r *rig) rendered() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.renders
}

// An artifact that cannot be built fails again, and takes its time to do so.
func TestAFailedRenderIsNotMadeAgainAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	r.settle("installed", settled)
	r.in.Current = r.in.Target
	r.in.Target = r.target("2.0.0", map[string]string{"kustomization.yaml": "resources: [missing.yaml]\n"})

	fails := func(rounds int) (renders int) {
		before := r.rendered()
		for range rounds {
			if _, err := r.engine.Reconcile(t.Context(), r.in); err == nil {
				t.Fatal("no error, though there is nothing that could be installed")
			}
		}
		return r.rendered() - before
	}
	if made := fails(5); made != 1 {
		t.Errorf("five rounds made %d renders", made)
	}
	r.clock.SetTime(r.clock.Now().Add(11 * time.Second))
	if made := fails(3); made != 1 {
		t.Errorf("once its time had come, %d renders were made", made)
	}
	r.clock.SetTime(r.clock.Now().Add(11 * time.Second))
	if made := fails(3); made != 0 {
		t.Errorf("the second time it was tried again as soon as the first: %d renders", made)
	}
	r.in.Verify = true
	// What is installed is rendered too, to be verified.
	if made := fails(1); made != 2 {
		t.Errorf("whoever asks is told what was before: %d renders", made)
	}
	r.in.Verify = false
	r.in.Target = r.target("2.0.1", configMapFiles("a", "2"))
	r.settle("another release is installed", settled)
}
