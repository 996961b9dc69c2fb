package packages

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/pkgrepo"
)

func TestOrdersAreGatheredWhileMoreAreExpected(t *testing.T) {
	t.Parallel()
	first := types.NamespacedName{Namespace: "default", Name: "first"}
	second := types.NamespacedName{Namespace: "default", Name: "second"}
	observed := func(generation int64) packagesv1.PackageVariant {
		v := packagesv1.PackageVariant{}
		v.Namespace, v.Name, v.Generation = second.Namespace, second.Name, 2
		v.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, ObservedGeneration: generation}}
		return v
	}
	for _, test := range []struct {
		reason string
		other  func() packagesv1.PackageVariant
		woken  bool
		// looked is when somebody looks at the other variant.
		looked, want time.Duration
	}{
		{reason: "nobody else", want: gatherDelay},
		{reason: "another that was looked at", other: func() packagesv1.PackageVariant { return observed(2) }, want: gatherDelay},
		{reason: "another that is new", other: func() packagesv1.PackageVariant { return packagesv1.PackageVariant{} }, want: gatherMost},
		{reason: "another that was edited", other: func() packagesv1.PackageVariant { return observed(1) }, want: gatherMost},
		{reason: "another that is suspended", other: func() packagesv1.PackageVariant {
			v := observed(1)
			v.Spec.Suspend = true
			return v
		}, want: gatherDelay},
		{reason: "another that is deleted", other: func() packagesv1.PackageVariant {
			v := observed(1)
			v.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			return v
		}, woken: true, want: gatherDelay},
		{reason: "another that is woken", other: func() packagesv1.PackageVariant { return observed(2) }, woken: true, want: gatherMost},
		{reason: "another that is looked at after a while", other: func() packagesv1.PackageVariant { return observed(2) }, woken: true, looked: time.Second, want: 4 * gatherDelay},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				repository := types.NamespacedName{Namespace: "default", Name: "cluster"}
				d := newDesk(newWaker(), nil)
				if test.other != nil {
					d.keptIn = func(types.NamespacedName) []packagesv1.PackageVariant {
						return []packagesv1.PackageVariant{test.other()}
					}
				}
				if test.woken {
					d.wakes(second)
				}
				if test.looked > 0 {
					time.AfterFunc(test.looked, func() { d.looks(second) })
				}
				began := time.Now()
				d.ask(repository, order{from: orderer{ofVariant, first}, key: "write"})
				for len(d.take(repository, false)) == 0 {
					time.Sleep(gatherDelay / 10)
				}
				if took := time.Since(began); took < test.want || took > test.want+gatherDelay/10 {
					t.Errorf("the order was taken after %s, want %s", took, test.want)
				}
			})
		})
	}
}

// TestARefusalSharesNothingWithTheOrder: the order waits on, and what it makes is written down while its object reads why it waits.
func TestARefusalSharesNothingWithTheOrder(t *testing.T) {
	t.Parallel()
	repository := types.NamespacedName{Namespace: "default", Name: "cluster"}
	from := orderer{ofVariant, types.NamespacedName{Namespace: "default", Name: "first"}}
	d := newDesk(newWaker(), map[string]*waker{ofVariant: newWaker()})
	ordered := order{from: from, key: "write", made: &made{isPreview: true}}
	d.ask(repository, ordered)
	d.refuse(repository, errors.New("away"))
	told := d.ask(repository, ordered)
	ordered.made.content = "made meanwhile"
	if told == nil || told.result.Err == nil || !told.made.isPreview || told.made.content != "" {
		t.Errorf("of an order that waits on, its object is told %+v", told)
	}
}

// TestAnOrderIsCarriedOutAgainAfterItsObjectWasDone: the object counts as having seen the first outcome, also if it did not ask.
func TestAnOrderIsCarriedOutAgainAfterItsObjectWasDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		repository := types.NamespacedName{Namespace: "default", Name: "cluster"}
		from := orderer{ofVariant, types.NamespacedName{Namespace: "default", Name: "first"}}
		d := newDesk(newWaker(), map[string]*waker{ofVariant: newWaker()})
		for _, round := range []string{"first", "second"} {
			d.ask(repository, order{from: from, key: "write"})
			time.Sleep(2 * gatherDelay)
			taken := d.take(repository, false)
			if len(taken) != 1 {
				t.Fatalf("the repository has %d orders in the %s round, want 1", len(taken), round)
			}
			d.settle(taken[0], pkgrepo.Result{Commit: "1"})
			d.withdraw(from)
		}
	})
}
