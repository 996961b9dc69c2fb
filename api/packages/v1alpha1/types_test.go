package v1alpha1_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/docs"
)

// TestWhatIsMeantWhenNothingIsSet: objects from before a default, or from a test, have none.
func TestWhatIsMeantWhenNothingIsSet(t *testing.T) {
	t.Parallel()
	check := func(what string, want, got any) {
		t.Helper()
		if want != got {
			t.Errorf("%s: want %v, got %v", what, want, got)
		}
	}
	repository, variant, revision := &packagesv1.Repository{}, &packagesv1.PackageVariant{}, &packagesv1.PackageRevision{}
	variant.Spec.Upstream.Package = "web"
	check("branch", "main", repository.Spec.GetBranch())
	check("interval of repositories", 5*time.Minute, repository.GetRequeueAfter())
	check("timeout of repositories", 2*time.Minute, repository.Spec.GetTimeout())
	check("interval of variants", 10*time.Minute, variant.GetRequeueAfter())
	check("timeout of variants", time.Minute, variant.Spec.GetTimeout())
	check("downstream package", "web", variant.Spec.GetDownstreamPackage())
	check("adoption", packagesv1.AdoptNone, variant.Spec.GetAdoptionPolicy())
	check("deletion", packagesv1.DeletionDelete, variant.Spec.GetDeletionPolicy())
	check("approval", packagesv1.ApprovalManual, variant.Spec.GetApprovalPolicy())
	check("conflicts", packagesv1.ConflictLocal, variant.Spec.GetConflictPolicy())
	check("interval of revisions", time.Hour, revision.GetRequeueAfter())
	check("lifecycle", packagesv1.LifecycleDraft, revision.Spec.GetLifecycle())

	second := &metav1.Duration{Duration: time.Second}
	repository.Spec = packagesv1.RepositorySpec{Branch: "next", Interval: second, Timeout: second}
	variant.Spec = packagesv1.PackageVariantSpec{
		Upstream: packagesv1.Upstream{Package: "web"}, Downstream: packagesv1.Downstream{Package: "front"},
		AdoptionPolicy: packagesv1.AdoptExisting, DeletionPolicy: packagesv1.DeletionOrphan, ConflictPolicy: packagesv1.ConflictFail,
		Approval: &packagesv1.Approval{}, Interval: second, Timeout: second,
	}
	revision.Spec.Lifecycle = packagesv1.LifecyclePublished
	revision.Status.Artifact = &meta.Artifact{Path: "a"}
	check("empty approval", packagesv1.ApprovalManual, variant.Spec.GetApprovalPolicy())
	variant.Spec.Approval.Policy = packagesv1.ApprovalInitial
	check("set branch", "next", repository.Spec.GetBranch())
	check("set interval of repositories", time.Second, repository.GetRequeueAfter())
	check("set timeout of repositories", time.Second, repository.Spec.GetTimeout())
	check("set interval of variants", time.Second, variant.GetRequeueAfter())
	check("set timeout of variants", time.Second, variant.Spec.GetTimeout())
	check("set downstream package", "front", variant.Spec.GetDownstreamPackage())
	check("set adoption", packagesv1.AdoptExisting, variant.Spec.GetAdoptionPolicy())
	check("set deletion", packagesv1.DeletionOrphan, variant.Spec.GetDeletionPolicy())
	check("set approval", packagesv1.ApprovalInitial, variant.Spec.GetApprovalPolicy())
	check("set conflicts", packagesv1.ConflictFail, variant.Spec.GetConflictPolicy())
	check("set lifecycle", packagesv1.LifecyclePublished, revision.Spec.GetLifecycle())
	check("artifact", "a", revision.GetArtifact().Path)
}

func TestWhatCountsAsPublished(t *testing.T) {
	t.Parallel()
	for lifecycle, want := range map[packagesv1.Lifecycle]bool{
		"": false, packagesv1.LifecycleDraft: false, packagesv1.LifecycleProposed: false,
		packagesv1.LifecyclePublished: true, packagesv1.LifecycleDeletionProposed: true,
	} {
		if got := lifecycle.IsPublished(); got != want {
			t.Errorf("%q is published: want %t, got %t", lifecycle, want, got)
		}
	}
}

func TestConditionsAreTheObjects(t *testing.T) {
	t.Parallel()
	for _, object := range []interface {
		GetConditions() []metav1.Condition
		SetConditions(conditions []metav1.Condition)
	}{&packagesv1.Repository{}, &packagesv1.PackageVariant{}, &packagesv1.PackageRevision{}} {
		want := []metav1.Condition{{Type: packagesv1.RenderedCondition}}
		object.SetConditions(want)
		if diff := cmp.Diff(want, object.GetConditions()); diff != "" {
			t.Errorf("%T: conditions (-want +got):\n%s", object, diff)
		}
	}
}

var camelCase = regexp.MustCompile(`^([A-Z][a-z]*)+$`)

// TestReasonsAreOneWordEach: what conditions carry is CamelCase, and no two constants of one suffix say the same.
func TestReasonsAreOneWordEach(t *testing.T) {
	t.Parallel()
	for suffix, least := range map[string]int{"Reason": 30, "Condition": 5} {
		found, err := docs.Constants("condition_types.go", suffix)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]string{}
		for name, value := range found {
			if !camelCase.MatchString(value) {
				t.Errorf("%s = %q is not CamelCase", name, value)
			}
			if other, taken := names[value]; taken {
				t.Errorf("%s and %s are both %q", name, other, value)
			}
			names[value] = name
		}
		if len(found) < least {
			t.Errorf("only %d constants end in %s", len(found), suffix)
		}
	}
}
