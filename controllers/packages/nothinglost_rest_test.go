package packages_test

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

const (
	// restPatience is how long it may take until nothing moves any more and status is true.
	restPatience = 2 * time.Minute
	// calm is how long the controllers write nothing when they are at rest: longer than they gather orders.
	calm = 700 * time.Millisecond
)

// rests waits until nothing moves and all status is true. Otherwise it returns the difference.
func (s *sandbox) rests() string {
	began, since, writes := time.Now(), time.Now(), s.writes.Load()
	for {
		time.Sleep(min(100*time.Millisecond+time.Since(began)/16, time.Second))
		if now := s.writes.Load(); now != writes {
			since, writes = time.Now(), now
		}
		isLate := time.Since(began) > restPatience
		if time.Since(since) < calm && !isLate {
			continue
		}
		// A server also calls its webhooks for pushes of the controllers.
		if s.calls() && !isLate {
			since = time.Now()
			continue
		}
		untrue := s.untrue()
		switch {
		case untrue == "" && !isLate:
			return s.rested()
		case isLate:
			return fmt.Sprintf("after %s: %s; last write %s ago", restPatience, untrue, time.Since(since).Round(time.Millisecond))
		}
	}
}

// calls has the webhook of each repository called whose refs have moved since the last time, if there is one.
func (s *sandbox) calls() (isCalled bool) {
	for name, b := range map[string]*bareRepository{"cluster": s.read, "blueprints": s.readUp} {
		refs, err := b.refs()
		s.check(err)
		if !maps.Equal(refs, s.called[name]) {
			s.look(name)
			s.called[name], isCalled = refs, true
		}
	}
	return isCalled
}

// rested forgets the approvals that were not carried out before the rest.
func (s *sandbox) rested() string {
	if s.fleet.accepted == nil && env.Client.Get(s.Context(), client.ObjectKeyFromObject(s.setObject()), s.setObject()) == nil {
		s.fleet.accepted = s.ofSet()
	}
	wrong := s.judge()
	for _, a := range s.ledger.gone {
		a.isExpired = true
	}
	clear(s.ledger.policies)
	return wrong
}

// untrue says which status does not tell the truth about Git; empty for none.
func (s *sandbox) untrue() string {
	refs := s.refs()
	var repositories packagesv1.RepositoryList
	var revisions packagesv1.PackageRevisionList
	var variants packagesv1.PackageVariantList
	for _, list := range []client.ObjectList{&repositories, &revisions, &variants} {
		s.check(env.Client.List(context.WithoutCancel(s.Context()), list, client.InNamespace(s.namespace)))
	}
	live := map[string]bool{}
	for i := range repositories.Items {
		r := &repositories.Items[i]
		if r.Spec.Suspend || branches[r.Name] == "" {
			continue
		}
		live[r.Name] = true
		if head := refs["refs/heads/"+branches[r.Name]]; r.Status.Head != head || !conditions.IsReady(r) {
			return fmt.Sprintf("Repository %s says %.8s, %s; its branch is at %.8s", r.Name, r.Status.Head, said(r), head)
		}
	}
	shown := map[string]bool{}
	for i := range revisions.Items {
		r := &revisions.Items[i]
		if !live[r.Spec.Repository] {
			continue
		}
		if untrue := s.untrueRevision(r, refs); untrue != "" {
			return fmt.Sprintf("PackageRevision %s, %s of %s/%s: %s; it says %s", r.Name, r.Spec.Workspace, r.Spec.Repository, r.Spec.Package, untrue, said(r))
		}
		shown[r.Status.Ref] = true
	}
	for _, ref := range under(refs, "refs/heads/drafts/", "refs/heads/proposed/") {
		// Of a draft and a proposal of one name, the proposal is shown.
		proposal := strings.Replace(ref, "/drafts/", "/proposed/", 1)
		isHidden := proposal != ref && refs[proposal] != ""
		if !shown[ref] && !isHidden && live["dev"] && live["prod"] {
			return ref + " has no PackageRevision"
		}
	}
	for i := range variants.Items {
		v := &variants.Items[i]
		if untrue := s.untrueVariant(v, refs, live); untrue != "" {
			return fmt.Sprintf("PackageVariant %s of %s/%s: %s; it says %s", v.Name, v.Spec.Downstream.Repo, v.Spec.Downstream.Package, untrue, said(v))
		}
	}
	return ""
}

// untrueRevision compares a PackageRevision with the refs.
func (s *sandbox) untrueRevision(r *packagesv1.PackageRevision, refs map[string]string) string {
	at := refs[r.Status.Ref]
	name := path.Join(r.Spec.Package, r.Spec.Workspace)
	is := packagesv1.Lifecycle("")
	switch {
	case r.Status.Ref == "refs/heads/drafts/"+name:
		is = packagesv1.LifecycleDraft
	case r.Status.Ref == "refs/heads/proposed/"+name:
		is = packagesv1.LifecycleProposed
	case strings.HasPrefix(r.Status.Ref, "refs/tags/"+r.Spec.Package+"/"):
		is = packagesv1.LifecyclePublished
		if refs["refs/heads/deletionProposed/"+strings.TrimPrefix(r.Status.Ref, "refs/tags/")] != "" {
			is = packagesv1.LifecycleDeletionProposed
		}
	}
	if at == "" || at != r.Status.Commit || is != r.Status.Lifecycle {
		return fmt.Sprintf("status has %s at %.8s, %s; Git has %.8s, %s", r.Status.Ref, r.Status.Commit, r.Status.Lifecycle, at, is)
	}
	return ""
}

// untrueVariant compares a PackageVariant with the refs.
func (s *sandbox) untrueVariant(v *packagesv1.PackageVariant, refs map[string]string, live map[string]bool) string {
	at := v.Spec.Downstream
	_, isDownstream := branches[v.Spec.Upstream.Repo]
	if v.Spec.Suspend || !live[at.Repo] || isDownstream && !live[v.Spec.Upstream.Repo] || !v.DeletionTimestamp.IsZero() {
		return ""
	}
	if conditions.GetReason(v, "Ready") == packagesv1.UpstreamNotFoundReason {
		return "" // Its status is of the time when it had an upstream.
	}
	if change := v.Status.Change; change != nil {
		name := path.Join(at.Package, change.Workspace)
		is, tip := packagesv1.LifecycleDraft, refs["refs/heads/drafts/"+name]
		if proposed := refs["refs/heads/proposed/"+name]; proposed != "" {
			is, tip = packagesv1.LifecycleProposed, proposed
		}
		if tip != change.Commit || is != change.Lifecycle {
			return fmt.Sprintf("status.change has %s at %.8s, %s; Git has %.8s, %s", change.Workspace, change.Commit, change.Lifecycle, tip, is)
		}
	}
	if ready := conditions.Get(v, "Ready"); ready == nil || ready.Status == "Unknown" || conditions.IsReady(v) && v.Status.ObservedGeneration != v.Generation {
		return "it is not at rest"
	}
	branch := refs["refs/heads/"+branches[at.Repo]]
	files, err := s.read.filesOf(branch)
	s.check(err)
	newest, isThere := "", len(ownFiles(files, at.Package)) > 0
	reached, err := s.read.reach(branch)
	s.check(err)
	tags := under(refs, "refs/tags/"+at.Package+"/")
	tags = slices.DeleteFunc(tags, func(tag string) bool {
		return !reached[refs[tag]] || strings.Count(tag, "/") != strings.Count(at.Package, "/")+3
	})
	if isThere && len(tags) > 0 {
		newest = slices.MaxFunc(tags, func(a, b string) int { return revisionNumber(a) - revisionNumber(b) })
	}
	is := ""
	if p := v.Status.Published; p != nil {
		if is = "refs/tags/" + at.Package + "/" + p.Revision; refs[is] != p.Commit {
			return fmt.Sprintf("status.published has %s at %.8s; Git has %.8s", is, p.Commit, refs[is])
		}
	}
	if is != newest && conditions.IsReady(v) {
		return fmt.Sprintf("status.published is %q, and the branch has %q", is, newest)
	}
	return ""
}

// told is all that has happened.
func (s *sandbox) story() string {
	refs := s.refs()
	lines := slices.Clone(s.told)
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		lines = append(lines, fmt.Sprintf("    %.8s %s", refs[ref], ref))
	}
	return strings.Join(lines, "\n")
}
