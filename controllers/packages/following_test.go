package packages_test

import (
	"io"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

// TestTheSpecFollowsGit to whatever others make of a change, and is never taken for a wish then.
func TestTheSpecFollowsGit(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	v, cluster := p.changed()
	p.revision(v.Status.Published.PackageRevision, packagesv1.LifecyclePublished)
	draft := p.revision(v.Status.Change.PackageRevision, packagesv1.LifecycleDraft)
	branch := "app/" + draft.Spec.Workspace
	cluster.RenameBranch("drafts/"+branch, "proposed/"+branch)
	p.revision(draft.Name, packagesv1.LifecycleProposed)
	cluster.RenameBranch("proposed/"+branch, "drafts/"+branch)
	p.revision(draft.Name, packagesv1.LifecycleDraft)
	cluster.SetRef("refs/heads/deletionProposed/app/v1", v.Status.Published.Commit)
	p.revision(v.Status.Published.PackageRevision, packagesv1.LifecycleDeletionProposed)
	cluster.DeleteRef("refs/heads/deletionProposed/app/v1")
	p.revision(v.Status.Published.PackageRevision, packagesv1.LifecyclePublished)
}

// TestWhatHasMovedIsToldAlsoWhereNotAllCanBeShown: nobody tells it later.
func TestWhatHasMovedIsToldAlsoWhereNotAllCanBeShown(t *testing.T) {
	t.Parallel()
	var fails atomic.Int32
	p := newPlane(t, func(p *plane) {
		p.meet = func(r *http.Request) *http.Response {
			if r.Method != http.MethodPost || path.Base(r.URL.Path) != "packagerevisions" || fails.Add(-1) < 0 {
				return nil
			}
			return &http.Response{
				StatusCode: http.StatusInternalServerError, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"etcd is away","code":500}`)),
			}
		}
	})
	v, cluster := p.changed()
	published := p.revision(v.Status.Published.PackageRevision, packagesv1.LifecyclePublished)
	draft := strings.TrimSpace(cluster.Raw("rev-parse", "drafts/app/"+p.revision(v.Status.Change.PackageRevision, packagesv1.LifecycleDraft).Spec.Workspace))
	fails.Store(1)
	if err := cluster.Repository.SetRef("refs/heads/drafts/app/another", draft); err != nil {
		t.Fatal(err)
	}
	cluster.SetRef("refs/heads/deletionProposed/app/v1", v.Status.Published.Commit)
	p.revision(published.Name, packagesv1.LifecycleDeletionProposed)
	if fails.Load() > 0 {
		t.Error("nothing failed")
	}
}

// TestADraftIsWrittenAnewAtOnce when a person has renamed it: the new name is the person's, and the variant's order is one of before.
func TestADraftIsWrittenAnewAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlane(t, func(p *plane) { p.interval = time.Hour })
	v, cluster := p.changed()
	for _, name := range []string{"one", "two"} {
		p.revision(v.Status.Change.PackageRevision, packagesv1.LifecycleDraft)
		cluster.RenameBranch("drafts/app/"+v.Status.Change.Workspace, "drafts/app/"+name)
		until(p, v, "the variant has a draft again", func(v *packagesv1.PackageVariant) (bool, string) {
			now := v.Status.Change
			return now != nil && strings.Contains(refs(cluster), "refs/heads/drafts/app/"+now.Workspace+"\n") && conditions.IsReady(v), said(v)
		})
	}
}
