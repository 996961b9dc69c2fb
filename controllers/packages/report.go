package packages

import (
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/status"
	"sluice.dev/sluice/internal/variant"
)

// Report implements kernel.Kind.
func (k *variants) Report(obj *packagesv1.PackageVariant, l *look, err error) kernel.Report {
	s := &obj.Status
	if l.upstream != nil {
		s.Upstream = l.upstream
	}
	if l.kept == nil && l.downstream != nil {
		s.Downstream = l.downstream
	}
	if l.digest != "" {
		s.Config, s.Injected, s.Bindings = l.digest, l.injected, l.bound[:min(len(l.bound), packagesv1.MaxBindings)]
	}
	if l.digest == "" || l.downstream == nil {
		// It did not come so far as to look at the package.
		return kernel.Report{Progress: l.progress, Facts: k.Table().Stated(obj)}
	}
	s.Adopted = l.adopted
	s.Published = published(l.downstream.Repo, l.state)
	k.reportChange(obj, l, err)
	return kernel.Report{Message: said(obj, l), Progress: l.progress, Facts: facts(obj, l, err), Again: k.again(l)}
}

// again is when a variant is looked at that may not read what it needs: nothing tells when a right is granted.
func (k *variants) again(l *look) time.Duration {
	if l.older.err != nil {
		return k.shared.RequeueDependency
	}
	for i := range l.injected {
		if l.injected[i].Reason == packagesv1.InjectionForbiddenReason {
			return k.shared.RequeueDependency
		}
	}
	for i := range l.bound {
		if l.bound[i].Reason == packagesv1.InjectionForbiddenReason {
			return k.shared.RequeueDependency
		}
	}
	return 0
}

// published is the newest revision that the package has.
func published(repository string, p *pkgrepo.Package) *packagesv1.PublishedStatus {
	newest := p.Newest()
	if newest == nil || p.Branch == nil {
		return nil
	}
	return &packagesv1.PublishedStatus{
		Revision: newest.Name, PackageRevision: revisionName(repository, newest), Commit: newest.Commit, Tree: newest.Tree,
	}
}

// reportChange shows the open change, and what would be changed.
func (k *variants) reportChange(obj *packagesv1.PackageVariant, l *look, err error) {
	s := &obj.Status
	s.Change = l.change
	if l.pending == "" {
		s.Preview = nil
	} else if l.last != nil && l.last.made.isPreview {
		s.Preview = &packagesv1.ChangeStatus{}
		l.last.made.show(s.Preview)
	}
	if l.last == nil || !errors.Is(err, variant.ErrConflict) {
		return
	}
	// Nothing was written, and what is in conflict has to be known all the same. It is no conflict of the commit that is open.
	s.Preview = &packagesv1.ChangeStatus{}
	l.last.made.listed.show(s.Preview)
}

// said is the message of Ready where nothing is wrong.
func said(obj *packagesv1.PackageVariant, l *look) string {
	name := fmt.Sprintf("Package %s of Repository %s", l.downstream.Package, l.downstream.Repo)
	switch {
	case obj.Spec.DryRun:
		return name + " is left as it is; status.preview shows what would be changed"
	case l.open == nil:
		return name + " is published" + l.review.tail()
	case l.open.Lifecycle == pkgrepo.Proposed:
		return fmt.Sprintf("%s: %s is proposed, and waits for its approval%s", name, l.open.Workspace, l.review.tail())
	case len(l.open.Facts.Waiting()) > 0:
		return fmt.Sprintf("%s: %s waits for its readiness gates%s", name, l.open.Workspace, l.review.tail())
	case policyApproves(obj, l) && !l.open.IsOwn:
		return fmt.Sprintf("%s: %s has commits that Sluice did not make; review it, then propose and approve it%s", name, l.open.Workspace, l.review.tail())
	case policyApproves(obj, l) && l.older.reason != "":
		return fmt.Sprintf("%s: %s has older upstream content, or content not known to be newer; review it, then propose and approve it%s", name, l.open.Workspace, l.review.tail())
	case l.review.isAsked:
		return fmt.Sprintf("%s: %s waits for its review%s", name, l.open.Workspace, l.review.tail())
	}
	return fmt.Sprintf("%s: %s waits to be proposed", name, l.open.Workspace)
}

// facts are the conditions that the variant states of itself.
func facts(obj *packagesv1.PackageVariant, l *look, err error) []status.Fact {
	var stated []status.Fact
	if l.pending != "" {
		stated = append(stated, status.True(packagesv1.UpdatePendingCondition, l.pendingReason, l.pending))
	}
	if l.older.reason != "" {
		stated = append(stated, status.True(packagesv1.GoesBackCondition, l.older.reason, l.older.message))
	}
	change, where := obj.Status.Change, "change"
	if change == nil || change.ConflictCount == 0 {
		change, where = obj.Status.Preview, "preview"
	}
	if change != nil && change.ConflictCount > 0 {
		stated = append(stated, status.True(packagesv1.ConflictedCondition, packagesv1.ConflictReason, conflictsSaid(change, where)))
	}
	switch missing := l.missing(); {
	case len(l.injected) == 0 && len(l.bound) == 0:
	case missing != "":
		stated = append(stated, status.False(packagesv1.InjectedCondition, packagesv1.InjectionMissingReason, missing))
	default:
		stated = append(stated, status.True(packagesv1.InjectedCondition, packagesv1.SucceededReason, filledSaid(l.bound)))
	}
	stated = append(stated, l.review.report(obj, l)...)
	return append(stated, rendered(l, err))
}

// filledSaid is the message where all is filled that has to be. A binding whose name no point has is not, but may be a typing error.
func filledSaid(bound []packagesv1.BindingStatus) string {
	said, pointless := "Every required point is filled", []string{}
	for i := range bound {
		if bound[i].Reason == packagesv1.NoPointReason {
			pointless = append(pointless, bound[i].Name)
		}
	}
	if len(pointless) > 0 {
		said += "; the package has no point of these bindings: " + printable.List(pointless, fewPoints)
	}
	return said
}

// rendered says whether the package's functions have run.
func rendered(l *look, err error) status.Fact {
	if err != nil {
		switch _, reason := (status.Table{}).Explain(err); reason {
		case packagesv1.RenderFailedReason, packagesv1.UnknownFunctionReason, packagesv1.FunctionUntrustedReason:
			return status.False(packagesv1.RenderedCondition, reason, err.Error())
		case packagesv1.ReviewFailedReason:
			err = nil // The package was made before anybody was to look at it.
		}
	}
	if err != nil || l.progress != "" {
		return status.Unknown(packagesv1.RenderedCondition, packagesv1.ProgressingReason, "The package is about to be made")
	}
	return status.True(packagesv1.RenderedCondition, packagesv1.SucceededReason, "All functions have run")
}

// Events implements kernel.Kind.
func (k *variants) Events(before, after *packagesv1.PackageVariant, l *look, err error) []event.Event {
	about := event.About(after, packagesv1.GroupVersion.WithKind(packagesv1.PackageVariantKind))
	var events []event.Event
	if l.keptDraft != "" && l.progress == "" {
		kept := event.Happened(about, packagesv1.DraftKeptReason,
			fmt.Sprintf("Branch %s stays in Git, because people have committed to it; use the branch, or delete it", l.keptDraft), "")
		kept.Type = event.Warning
		events = append(events, kept)
	}
	if err != nil {
		if !status.SaysTheSame(before, after) {
			_, reason := k.Table().Explain(err)
			events = append(events, event.Failed(about, reason, err, ""))
		}
		return events
	}
	if was, is := before.Status.Change, after.Status.Change; is != nil && (was == nil || was.Commit != is.Commit) {
		events = append(events, event.Happened(about, packagesv1.DraftWrittenReason,
			fmt.Sprintf("Draft %s of package %s is at %s", is.Workspace, l.downstream.Package, is.Commit), is.Commit))
	}
	if is := conditions.Get(after, packagesv1.GoesBackCondition); is != nil && !conditions.IsTrue(before, packagesv1.GoesBackCondition) {
		events = append(events, event.Warned(about, is.Reason, is.Message, after.Status.Upstream.Commit))
	}
	if was, is := before.Status.Change, after.Status.Change; is != nil && is.ConflictDigest != "" && (was == nil || was.ConflictDigest != is.ConflictDigest) {
		events = append(events, event.Warned(about, packagesv1.ConflictedReason, fmt.Sprintf("Draft %s of package %s has conflicts between upstream and people in %s: %s",
			is.Workspace, l.downstream.Package, counted(int(is.ConflictCount), "place"), is.ConflictDigest), is.Commit))
	}
	if was, is := before.Status.Published, after.Status.Published; is != nil && (was == nil || was.Revision != is.Revision) {
		events = append(events, event.Happened(about, packagesv1.PublishedReason,
			fmt.Sprintf("Package %s was published as %s", l.downstream.Package, is.Revision), is.Commit))
	}
	// Of what goes away nobody wants to hear that it is well again.
	if len(events) == 0 && after.DeletionTimestamp.IsZero() && k.Table().HasFailed(before) && l.progress == "" {
		events = append(events, event.Recovered(about, event.Artifact{}, said(after, l)))
	}
	return events
}
