package packages

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/status"
)

// The bounds that the schema has for what a package says of itself.
const (
	maxGates          = 64
	maxConditions     = 64
	maxConditionType  = 316
	maxConditionWords = 1024
	maxURL            = 2048
	maxRef            = 1024
	maxDigest         = 64
	maxOwner          = 317
)

// Report implements kernel.Kind.
func (k *revisions) Report(obj *packagesv1.PackageRevision, s *sight, _ error) kernel.Report {
	if s.seen == nil {
		return kernel.Report{Facts: append(status.Kept(obj, packagesv1.GatesMetCondition, packagesv1.ArtifactInStorageCondition), s.approved(obj)...)}
	}
	seen, to := s.seen, &obj.Status
	if !s.lags {
		to.Lifecycle = packagesv1.Lifecycle(seen.Lifecycle)
	}
	to.Revision, to.Workspace = capped(seen.Number), seen.Workspace
	to.Ref, to.Commit, to.Tree, to.PackageVariant = seen.Ref, seen.Commit, seen.Tree, fit(seen.Facts.Variant, maxOwner)
	to.ConflictCount, to.ConflictDigest = capped(s.conflicts.Count), s.conflicts.Digest
	to.UpstreamLock = nil
	if lock := seen.Facts.Lock; lock != nil {
		to.UpstreamLock = &packagesv1.UpstreamLock{
			Repo: fit(lock.Repo, maxURL), Directory: fit(lock.Directory, maxRef), Ref: fit(lock.Ref, maxRef), Commit: fit(lock.Commit, maxDigest),
		}
	}
	to.Artifact = s.artifact
	to.ReadinessGates, to.PackageConditions = gatesOf(seen), conditionsOf(seen)
	facts := gateFacts(seen)
	if s.artifact != nil {
		facts = append(facts, status.True(packagesv1.ArtifactInStorageCondition, packagesv1.SucceededReason,
			fmt.Sprintf("Stored artifact for revision %s", s.artifact.Revision)))
	}
	return kernel.Report{Message: revisionSaid(seen), Progress: s.progress, Facts: append(facts, s.approved(obj)...)}
}

// approved says that an approval has expired, until something else is asked for.
func (s *sight) approved(obj *packagesv1.PackageRevision) []status.Fact {
	switch {
	case s.expired != "":
		return []status.Fact{status.False(packagesv1.ApprovedCondition, packagesv1.ApprovalExpiredReason, fit(s.expired, maxConditionWords))}
	case isExpired(obj), obj.Spec.GetLifecycle() == obj.Status.Lifecycle:
		return status.Kept(obj, packagesv1.ApprovedCondition)
	}
	return nil
}

func gatesOf(r *pkgrepo.Revision) (gates []packagesv1.ReadinessGate) {
	for _, gate := range r.Facts.Gates[:min(len(r.Facts.Gates), maxGates)] {
		gates = append(gates, packagesv1.ReadinessGate{ConditionType: fit(gate, maxConditionType)})
	}
	return gates
}

func conditionsOf(r *pkgrepo.Revision) (conditions []packagesv1.PackageCondition) {
	for _, c := range r.Facts.Conditions[:min(len(r.Facts.Conditions), maxConditions)] {
		is := metav1.ConditionUnknown
		if c.Status == string(metav1.ConditionTrue) || c.Status == string(metav1.ConditionFalse) {
			is = metav1.ConditionStatus(c.Status)
		}
		conditions = append(conditions, packagesv1.PackageCondition{
			Type: fit(c.Type, maxConditionType), Status: is, Reason: fit(c.Reason, maxText), Message: fit(c.Message, maxConditionWords),
		})
	}
	return conditions
}

// revisionSaid is the message of Ready where nothing is wrong.
func revisionSaid(r *pkgrepo.Revision) string {
	switch r.Lifecycle {
	case pkgrepo.Draft:
		return fmt.Sprintf("Draft of package %s", r.Package)
	case pkgrepo.Proposed:
		return fmt.Sprintf("Proposal of package %s, which waits for its approval", r.Package)
	case pkgrepo.DeletionProposed:
		said := fmt.Sprintf("Revision %s of package %s, whose deletion waits for its approval", r.Name, r.Package)
		if r.Proposer.Variant != "" {
			said += fmt.Sprintf("; PackageVariant %s (UID %s) proposed it when it was deleted or moved", fit(r.Proposer.Variant, maxOwner), fit(r.Proposer.UID, maxLabel))
		}
		return said
	case pkgrepo.Published:
	}
	return fmt.Sprintf("Revision %s of package %s", r.Name, r.Package)
}

// gateFacts say whether the readiness gates are open.
func gateFacts(r *pkgrepo.Revision) []status.Fact {
	if len(r.Facts.Gates) == 0 {
		return nil
	}
	if waiting := r.Facts.Waiting(); len(waiting) > 0 {
		return []status.Fact{status.False(packagesv1.GatesMetCondition, packagesv1.GatesNotMetReason,
			printable.Line("These readiness gates are not open: "+strings.Join(waiting, ", "), maxConditionWords))}
	}
	return []status.Fact{status.True(packagesv1.GatesMetCondition, packagesv1.SucceededReason, "All readiness gates are open")}
}

// Events implements kernel.Kind.
func (k *revisions) Events(before, after *packagesv1.PackageRevision, s *sight, err error) []event.Event {
	about := event.About(after, packagesv1.GroupVersion.WithKind(packagesv1.PackageRevisionKind))
	if err != nil {
		if status.SaysTheSame(before, after) {
			return nil
		}
		_, reason := k.Table().Explain(err)
		return []event.Event{event.Failed(about, reason, err, "")}
	}
	if was, is := before.Status.Lifecycle, after.Status.Lifecycle; was != "" && was != is {
		reason := map[packagesv1.Lifecycle]string{
			packagesv1.LifecycleDraft: packagesv1.RejectedReason, packagesv1.LifecycleProposed: packagesv1.ProposedReason,
			packagesv1.LifecyclePublished: packagesv1.PublishedReason, packagesv1.LifecycleDeletionProposed: packagesv1.DeletionProposedReason,
		}[is]
		return []event.Event{event.Happened(about, reason, revisionSaid(s.seen), s.seen.Commit)}
	}
	return nil
}

// revisionLabels are those of a revision's object: those of its Kptfile that can be labels, and hand the object to no program
// that would prune it.
func revisionLabels(r *pkgrepo.Revision) map[string]string {
	labels := map[string]string{}
	for key, value := range r.Facts.Labels {
		if isLabel(key, value) && !isOwnership(key) {
			labels[key] = value
		}
	}
	return labels
}

// isOwnership tells whether programs that apply and prune objects know by the label which ones are theirs.
func isOwnership(key string) bool {
	domain, name, _ := strings.Cut(key, "/")
	switch domain {
	case "app.kubernetes.io":
		return name == "instance" || name == "managed-by"
	case "applyset.kubernetes.io", "config.k8s.io", "kapp.k14s.io", "objectset.rio.cattle.io":
		return true
	}
	return slices.ContainsFunc([]string{"argoproj.io", "fluxcd.io", "helm.sh", "sluice.dev"}, func(of string) bool {
		return domain == of || strings.HasSuffix(domain, "."+of)
	})
}
