package packages

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/fanout"
	"sluice.dev/sluice/internal/forge"
	"sluice.dev/sluice/internal/kernel"
)

// Spread is what came of one spreading of variants.
type Spread struct{ Made, Changed, Gone, Unwanted, Problems int }

// SpreadOnce makes the variants of a set what is wanted, given those that are there. The record of the guard is in the set's status.
func SpreadOnce(
	ctx context.Context, c client.Client, now clock.PassiveClock, obj *packagesv1.PackageVariantSet, there map[string]*packagesv1.PackageVariant, wanted fanout.Wanted,
) (Spread, error) {
	k := &sets{shared: Shared{Shell: kernel.Shell{Client: c, Reader: c, FieldOwner: "sluice-test", Clock: now}}, written: newWritten()}
	s := &spread{there: there, wanted: wanted}
	err := k.spread(ctx, obj, s)
	late := 0
	if err == nil {
		obj.Status.DeletionGuard = &s.guard.record
		if late, err = k.letGo(ctx, s); s.guard.acknowledged == "" {
			obj.Status.DeletionGuard.Gone -= capped(late)
		}
	}
	return Spread{s.made, s.changed, s.gone, s.guard.kept(), len(s.wanted.Problems)}, err
}

// Reviewing asks forges for the reviews of changes in repositories that nobody reads.
type Reviewing struct{ *reviewer }

// NewReviewing asks for nothing yet.
func NewReviewing(shared Shared) Reviewing {
	shared.Plane = NewPlane()
	return Reviewing{newReviewer(shared)}
}

// Want has changes reviewed on the GitLab at the URL of the repository.
func (r Reviewing) Want(repository types.NamespacedName, url string, changes ...string) {
	r.shared.mirrors.put(&mirror{key: repository, url: url})
	for _, name := range changes {
		r.shared.reviews.ask(types.NamespacedName{Namespace: repository.Namespace, Name: name}, boardKey{repository, packagesv1.ReviewGitLab, "forge"}, &want{
			mark: forge.Mark{Owner: repository.Namespace + "/" + name, Package: name}, head: "drafts/" + name + "/1", title: name, words: name,
		})
	}
}

// Start has the queue take those that are to be looked at.
func (r Reviewing) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	return r.shared.reviews.waker.Start(ctx, queue)
}

// Moved says that something has moved in the repository, and Asked that somebody asks for it.
func (r Reviewing) Moved(repository types.NamespacedName) {
	r.shared.reviews.look(repository, true, false)
}

// Asked is beside Moved.
func (r Reviewing) Asked(repository types.NamespacedName) {
	r.shared.reviews.look(repository, false, true)
}

// ConflictsInMemory is how many conflicts the orders of variants keep.
func (p *Plane) ConflictsInMemory() (count int) {
	p.desk.mu.Lock()
	defer p.desk.mu.Unlock()
	for _, kept := range p.desk.written {
		count += len(kept.made.listed.conflicts)
	}
	return count
}
