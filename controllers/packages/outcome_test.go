package packages

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/pkgrepo"
)

// asked is a desk at which a variant has ordered something of a repository.
func asked() (d *desk, repository types.NamespacedName, o order) {
	d = newDesk(newWaker(), map[string]*waker{ofVariant: newWaker(), ofRevision: newWaker()})
	repository = types.NamespacedName{Namespace: "default", Name: "cluster"}
	o = order{from: orderer{ofVariant, types.NamespacedName{Namespace: "default", Name: "app"}}, key: "Write"}
	d.ask(repository, o)
	return d, repository, o
}

// TestNobodyIsToldWhoHasGone: what becomes of an order that was being carried out when its object went is not kept.
func TestNobodyIsToldWhoHasGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, repository, o := asked()
		time.Sleep(time.Minute)
		synctest.Wait()
		if taken := d.take(repository, false); len(taken) != 1 {
			t.Fatalf("%d orders are taken", len(taken))
		}
		d.forget(o.from)
		d.settle(o, pkgrepo.Result{Commit: "1"})
		if len(d.outcomes)+len(d.written)+len(d.inHand)+len(d.waiting) > 0 {
			t.Errorf("the desk keeps %v, %v, %v", d.outcomes, d.inHand, d.waiting)
		}
	})
}

// TestRefusedOrdersWaitOn: that nobody orders them again leaves the repository its own pace.
func TestRefusedOrdersWaitOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, repository, o := asked()
		time.Sleep(time.Minute)
		synctest.Wait()
		d.repositories.early = map[types.NamespacedName]struct{}{}
		away := errors.New("it is away")
		d.refuse(repository, away)
		for range 3 {
			if found := d.ask(repository, o); found == nil || !errors.Is(found.result.Err, away) {
				t.Fatalf("the order's outcome is %v", found)
			}
			time.Sleep(time.Minute)
		}
		if len(d.repositories.early) > 0 {
			t.Error("the repository is woken for what it refused")
		}
		if taken := d.take(repository, false); len(taken) != 1 {
			t.Errorf("%d orders are left", len(taken))
		}
	})
}

// TestWhatWasWrittenStaysKnown: an order of what had been seen before finds nothing left to do, and takes back nothing that is
// said of the draft.
func TestWhatWasWrittenStaysKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, repository, o := asked()
		first := &made{listed: conflictList{conflicts: []packagesv1.Conflict{{Path: "data.key"}}}}
		for _, later := range []struct {
			reason, key string
			kind        pkgrepo.Kind
			made        *made
			result      pkgrepo.Result
			want        *made
		}{
			{reason: "the draft is written", key: "Write 1", kind: pkgrepo.Write, made: first, result: pkgrepo.Result{Commit: "1"}, want: first},
			{reason: "it is there already", key: "Write 2", kind: pkgrepo.Write, made: &made{}, result: pkgrepo.Result{Err: pkgrepo.ErrExists}, want: first},
			{reason: "it is as it should be", key: "Write 3", kind: pkgrepo.Write, made: &made{isUnchanged: true}, result: pkgrepo.Result{Commit: "1"}, want: first},
			{reason: "it is proposed", key: "Propose", kind: pkgrepo.Propose, made: &made{}, result: pkgrepo.Result{Commit: "1"}, want: first},
		} {
			o.key, o.change.Kind, o.made = later.key, later.kind, later.made
			d.ask(repository, o)
			time.Sleep(time.Minute)
			synctest.Wait()
			for _, taken := range d.take(repository, false) {
				d.settle(taken, later.result)
			}
			last, wrote := d.last(o.from)
			if last.key != later.key || wrote == nil || wrote.made != later.want {
				t.Errorf("%s: the outcomes are %v and %v", later.reason, last, wrote)
			}
		}
	})
}
