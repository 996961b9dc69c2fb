package kernel_test

import "testing"

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
