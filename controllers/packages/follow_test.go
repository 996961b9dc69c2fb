package packages_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// full is a store that is full at times.
type full struct {
	storage.Store

	isFull atomic.Bool
}

var errFull = errors.New("no space left on device")

func (f *full) Stage(ctx context.Context, limit int64, write func(io.Writer) error) (storage.Staged, error) {
	if f.isFull.Load() {
		return storage.Staged{}, errFull
	}
	return f.Store.Stage(ctx, limit, write)
}

func (f *full) Restage(ctx context.Context, body storage.Staged) error {
	if f.isFull.Load() {
		return errFull
	}
	return f.Store.Restage(ctx, body)
}

// TestNobodyTakesBackWhatWasProposedWhileTheDiskWasFull: that the object still asks for a draft then is no wish of anybody's.
func TestNobodyTakesBackWhatWasProposedWhileTheDiskWasFull(t *testing.T) {
	t.Parallel()
	store := &full{}
	p := newPlane(t, func(p *plane) {
		p.store = func(below storage.Store) storage.Store {
			store.Store = below
			return store
		}
	})
	cluster := p.repository("cluster")
	cluster.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	commit := cluster.Commit("drafts/app/one", "a draft", upstream.Text(map[string]string{"app/Kptfile": kptfile}))
	r := &packagesv1.PackageRevision{}
	testenv.Eventually(t, "the draft", func(context.Context) (bool, string) {
		found := p.revisions("app")
		if len(found) != 1 {
			return false, "no object"
		}
		r = &found[0]
		return r.Status.Lifecycle == packagesv1.LifecycleDraft && conditions.IsReady(r), said(r)
	})

	store.isFull.Store(true)
	cluster.SetRef("refs/heads/proposed/app/one", commit)
	cluster.DeleteRef("refs/heads/drafts/app/one")
	until(p, r, "the artifact is not made", func(r *packagesv1.PackageRevision) (bool, string) {
		return strings.Contains(said(r), errFull.Error()), said(r)
	})
	store.isFull.Store(false)
	until(p, r, "it is proposed", func(r *packagesv1.PackageRevision) (bool, string) {
		is := r.Status.Lifecycle == packagesv1.LifecycleProposed && r.Spec.Lifecycle == packagesv1.LifecycleProposed
		return is && conditions.IsReady(r), said(r) + " " + client.ObjectKeyFromObject(r).String() + string(r.Spec.Lifecycle)
	})
	if refs := cluster.Raw("for-each-ref"); !strings.Contains(refs, "refs/heads/proposed/app/one") {
		t.Errorf("the proposal was taken back:\n%s", refs)
	}
}

// TestWhatIsPublishedForSomebodyIsFollowed: the object of the draft asks for what the draft has become.
func TestWhatIsPublishedForSomebodyIsFollowed(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, cluster := p.repository("blueprints"), p.repository("cluster")
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", upstream.Text(map[string]string{"app/Kptfile": kptfile})), false)
	cluster.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	v := p.variant(func(s *packagesv1.PackageVariantSpec) { s.ConflictPolicy = packagesv1.ConflictFail })
	p.drafted(v, cluster, func(upstream.Files) bool { return true })
	r := &packagesv1.PackageRevision{ObjectMeta: p.meta(v.Status.Change.PackageRevision)}
	until(p, r, "it is drafted", func(r *packagesv1.PackageRevision) (bool, string) {
		return r.Status.Lifecycle == packagesv1.LifecycleDraft, said(r)
	})
	p.ask(v, func() { v.Spec.Approval = &packagesv1.Approval{Policy: packagesv1.ApprovalAlways} })
	until(p, r, "it is published", func(r *packagesv1.PackageRevision) (bool, string) {
		is := r.Status.Lifecycle == packagesv1.LifecyclePublished && r.Spec.Lifecycle == packagesv1.LifecyclePublished
		return is && conditions.IsReady(r), said(r)
	})
}
