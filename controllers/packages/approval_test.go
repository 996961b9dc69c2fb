package packages_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

// approve is a policy of approval.
func approve(policy packagesv1.ApprovalPolicy) func(*packagesv1.PackageVariantSpec) {
	return func(spec *packagesv1.PackageVariantSpec) { spec.Approval = &packagesv1.Approval{Policy: policy} }
}

// released waits until the first revision of the variant is published.
func (s *story) released() {
	s.Helper()
	s.sync()
	until(s.plane, s.v, "v1 is published", func(v *packagesv1.PackageVariant) (bool, string) {
		return v.Status.Published != nil && v.Status.Published.Revision == "v1" && v.Status.Change == nil && conditions.IsReady(v), said(v)
	})
}

// revision is the object of the open change, once it shows its commit.
func (s *story) revision() *packagesv1.PackageRevision {
	s.Helper()
	change := s.v.Status.Change
	if change == nil {
		s.Fatalf("there is no open change: %s", said(s.v))
	}
	revision := &packagesv1.PackageRevision{ObjectMeta: s.meta(change.PackageRevision)}
	until(s.plane, revision, "the revision is shown", func(r *packagesv1.PackageRevision) (bool, string) {
		return r.Status.Commit == change.Commit && r.Status.Lifecycle == change.Lifecycle && r.Spec.Lifecycle == change.Lifecycle, said(r)
	})
	return revision
}

// move asks for a lifecycle, and waits until it is there.
func (s *story) move(r *packagesv1.PackageRevision, to packagesv1.Lifecycle) {
	s.Helper()
	s.ask(r, func() { r.Spec.Lifecycle = to })
	until(s.plane, r, "the lifecycle is "+string(to), func(r *packagesv1.PackageRevision) (bool, string) {
		return r.Status.Lifecycle == to && conditions.IsReady(r), said(r)
	})
}

// TestThePolicyApproves what it says, and leaves all else to people.
func TestThePolicyApproves(t *testing.T) {
	t.Parallel()
	scene := newScene(t)
	for name, test := range map[string]struct {
		reason string
		policy packagesv1.ApprovalPolicy
		// first and second are whether the revisions are published without anybody.
		first, second bool
	}{
		"manual":  {"People approve each revision.", packagesv1.ApprovalManual, false, false},
		"initial": {"The first revision is approved, and none after it.", packagesv1.ApprovalInitial, true, false},
		"always":  {"Every revision is approved.", packagesv1.ApprovalAlways, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scene.story(t, name)
			s.release("v1", "1.0.0", nil)
			s.begin(approve(test.policy))
			s.settle()
			if got := s.v.Status.Published != nil; got != test.first {
				t.Fatalf("%s: the first revision: published is %t: %s", test.reason, got, said(s.v))
			}
			if !test.first {
				s.publish(s.v)
			}
			s.has(s.published("deployment.yaml"), "app:1.0.0")
			s.release("v2", "2.0.0", nil)
			s.settle()
			if got := s.v.Status.Published.Revision == "v2"; got != test.second {
				t.Errorf("%s: the second revision: published is %t: %s", test.reason, got, said(s.v))
			}
			if test.second {
				s.has(s.published("deployment.yaml"), "app:2.0.0")
			} else {
				s.has(s.open("deployment.yaml"), "app:2.0.0")
				s.has(s.published("deployment.yaml"), "app:1.0.0")
			}
			if got := s.v.Status.Change == nil; got != test.second {
				t.Errorf("%s: there is no open change: %t", test.reason, got)
			}
		})
	}
}

// gated is a Kptfile that waits for a check.
func gated(name, status string) string {
	text := strings.ReplaceAll(kptfile, "app", name) + "info:\n  readinessGates:\n    - conditionType: example.com/checked\n"
	if status != "" {
		text += "status:\n  conditions:\n    - type: example.com/checked\n      status: \"" + status + "\"\n      reason: Looked\n"
	}
	return text
}

// TestAGateHoldsEveryApproval, that of the policy and that of people, until its condition is true in the package.
func TestAGateHoldsEveryApproval(t *testing.T) {
	t.Parallel()
	scene := newScene(t)
	for name, policy := range map[string]packagesv1.ApprovalPolicy{
		"gated-manual": packagesv1.ApprovalManual, "gated-initial": packagesv1.ApprovalInitial, "gated-always": packagesv1.ApprovalAlways,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scene.story(t, name)
			// That upstream was checked says nothing of what is made of it.
			s.release("v1", "1.0.0", map[string]string{"Kptfile": gated(name, "True")})
			s.begin(approve(policy))
			s.settle()
			if s.v.Status.Published != nil || s.v.Status.Change == nil || s.v.Status.Change.Lifecycle != packagesv1.LifecycleDraft {
				t.Fatalf("the gate does not hold: %s", said(s.v))
			}
			r := s.revision()
			if !conditions.IsFalse(r, packagesv1.GatesMetCondition) {
				t.Errorf("the revision does not say that the gate is closed: %v", r.Status.Conditions)
			}
			s.has(conditions.GetMessage(r, packagesv1.GatesMetCondition), "example.com/checked")
			if policy == packagesv1.ApprovalManual {
				s.refused(r)
				s.move(r, packagesv1.LifecycleDraft)
				s.settle()
			} else {
				s.has(conditions.GetMessage(s.v, "Ready"), "readiness gates")
			}
			s.person(s.draft(), map[string]string{"Kptfile": s.checked()})
			s.sync()
			until(s.plane, s.v, "the edit is seen", func(v *packagesv1.PackageVariant) (bool, string) {
				return v.Status.Change != nil && v.Status.Change.Commit == s.cluster.Raw("rev-parse", s.draft()), said(v)
			})
			s.publish(s.v) // Under every policy: the commit is a person's.
			s.released()
			s.has(s.published("Kptfile"), "status: \"True\"", "example.com/checked")
		})
	}
}

// checked is the draft's Kptfile with the check passed.
func (s *story) checked() string {
	s.Helper()
	return s.open("Kptfile") + "status:\n  conditions:\n    - type: example.com/checked\n      status: \"True\"\n      reason: Looked\n"
}

// refused proposes the draft, and asks for its publication in vain.
func (s *story) refused(r *packagesv1.PackageRevision) {
	s.Helper()
	s.move(r, packagesv1.LifecycleProposed)
	s.ask(r, func() { r.Spec.Lifecycle, r.Spec.ApprovedCommit = packagesv1.LifecyclePublished, r.Status.Commit })
	until(s.plane, r, "the gate is told", func(r *packagesv1.PackageRevision) (bool, string) {
		return conditions.GetReason(r, "Ready") == packagesv1.GatesNotMetReason, said(r)
	})
	s.sync()
	if got := s.published("Kptfile"); got != "" {
		s.Errorf("the package was published:\n%s", got)
	}
}

// TestAProposalIsFrozen: what comes later waits and is shown, and comes after the approval or the rejection.
func TestAProposalIsFrozen(t *testing.T) {
	t.Parallel()
	scene := newScene(t)
	for _, name := range []string{"approved", "rejected"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scene.story(t, name)
			s.release("v1", "1.0.0", nil)
			s.begin()
			s.settle()
			first := s.v.Status.Change.Commit
			r := s.revision()
			s.move(r, packagesv1.LifecycleProposed)
			s.release("v2", "2.0.0", map[string]string{"more.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: more\n"})
			s.sync()
			until(s.plane, s.v, "the update waits", func(v *packagesv1.PackageVariant) (bool, string) {
				return conditions.GetReason(v, packagesv1.UpdatePendingCondition) == packagesv1.FrozenProposalReason && conditions.IsReady(v), said(v)
			})
			s.settle()
			s.preview()
			if got := s.cluster.Raw("for-each-ref", "--format=%(objectname)", "refs/heads/proposed/"+name); got != first || s.v.Status.Change.Commit != first {
				t.Fatalf("the proposal moved from %s to %s", first, got)
			}
			if name == "approved" {
				s.ask(r, func() { r.Spec.Lifecycle, r.Spec.ApprovedCommit = packagesv1.LifecyclePublished, first })
			} else {
				s.ask(r, func() { r.Spec.Lifecycle = packagesv1.LifecycleDraft })
			}
			until(s.plane, s.v, "the update comes", func(v *packagesv1.PackageVariant) (bool, string) {
				return v.Status.Change != nil && v.Status.Change.Commit != first && v.Status.Change.Lifecycle == packagesv1.LifecycleDraft && conditions.IsReady(v), said(v)
			})
			s.has(s.open("deployment.yaml"), "app:2.0.0")
			if conditions.Has(s.v, packagesv1.UpdatePendingCondition) || s.v.Status.Preview != nil {
				t.Errorf("the update still waits: %v", s.v.Status.Preview)
			}
			if name == "approved" {
				s.has(s.published("deployment.yaml"), "app:1.0.0")
			} else if got := s.published("deployment.yaml"); got != "" {
				t.Errorf("the rejected proposal was published:\n%s", got)
			}
			if got := len(strings.Fields(s.cluster.Raw("for-each-ref", "--format=%(refname)", "refs/heads/drafts/"+name, "refs/heads/proposed/"+name))); got != 1 {
				t.Errorf("there are %d open changes", got)
			}
			s.publish(s.v)
			s.has(s.published("deployment.yaml"), "app:2.0.0")
		})
	}
}

// preview says what would be made of the second revision.
func (s *story) preview() {
	s.Helper()
	preview := s.v.Status.Preview
	if preview == nil || preview.Files == nil || preview.Objects == nil {
		s.Errorf("what waits is not shown: %+v", preview)
		return
	}
	if !strings.Contains(fileNames(preview), "more.yaml") || preview.Objects.Added == 0 {
		s.Errorf("what waits is not shown: %+v %+v", preview.Files, preview.Objects)
	}
}

// fileNames are the files of a change, with what becomes of them.
func fileNames(change *packagesv1.ChangeStatus) string {
	var all []string
	for _, file := range change.Files.Names {
		all = append(all, string(file.Change)+" "+file.Path)
	}
	return strings.Join(all, "\n")
}

// TestOnlyTheCommitThatWasLookedAtIsPublished: an approval of another one is refused, and told.
func TestOnlyTheCommitThatWasLookedAtIsPublished(t *testing.T) {
	t.Parallel()
	s := newScene(t).story(t, "app")
	s.release("v1", "1.0.0", nil)
	s.begin()
	s.settle()
	looked := s.v.Status.Change.Commit
	s.release("v2", "2.0.0", nil)
	s.settle()
	r := s.revision()
	s.move(r, packagesv1.LifecycleProposed)
	s.ask(r, func() { r.Spec.Lifecycle, r.Spec.ApprovedCommit = packagesv1.LifecyclePublished, looked })
	until(s.plane, r, "the approval is refused", func(r *packagesv1.PackageRevision) (bool, string) {
		return conditions.GetReason(r, "Ready") == packagesv1.ApprovedCommitMismatchReason, said(r)
	})
	s.has(conditions.GetMessage(r, "Ready"), looked, r.Status.Commit)
	if got := s.published("deployment.yaml"); got != "" {
		t.Errorf("it was published:\n%s", got)
	}
	s.ask(r, func() { r.Spec.ApprovedCommit = r.Status.Commit })
	s.released()
	s.has(s.published("deployment.yaml"), "app:2.0.0")
}
