package kernel_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/kernel"
)

// keptKind is a kind whose objects have to stay only at times.
type keptKind struct {
	*fakeKind
	keep bool
	err  error
}

var _ kernel.Keeper[*sourcev1.GitRepository] = (*keptKind)(nil)

func (k *keptKind) Keep(context.Context, *sourcev1.GitRepository) (bool, error) { return k.keep, k.err }

func TestAFinalizerComesAndGoesWithItsReason(t *testing.T) {
	t.Parallel()
	b := newBench(t, makes("v2"))
	kind := &keptKind{fakeKind: b.kind}
	b.kernel.Kind = kind
	for _, step := range []struct {
		keep bool
		want []string
	}{{false, nil}, {true, []string{finalizer}}, {true, []string{finalizer}}, {false, nil}} {
		kind.keep = step.keep
		if _, err := b.reconcile(t); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, b.get(t).Finalizers); diff != "" {
			t.Errorf("keep %t: -want +got:\n%s", step.keep, diff)
		}
	}

	kind.keep = true
	if _, err := b.reconcile(t); err != nil {
		t.Fatal(err)
	}
	kind.keep, kind.err = false, errors.New("nobody knows")
	if _, err := b.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{finalizer}, b.get(t).Finalizers); diff != "" {
		t.Errorf("an object of which nobody knows whether it is needed was let go:\n%s", diff)
	}
}

func TestAKindMayDoWithoutAFinalizer(t *testing.T) {
	t.Parallel()
	b := newBench(t, makes("v1"))
	b.kernel.Finalizer = ""
	if _, err := b.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if got := b.get(t); len(got.Finalizers) != 0 || summary(got)["Ready"] != "True Succeeded: made v1" {
		t.Errorf("finalizers %v, %v", got.Finalizers, summary(got))
	}
}
