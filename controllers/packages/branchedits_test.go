package packages_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

// scaled is the deployment with the image and the number of replicas.
func scaled(image, replicas string) string {
	return strings.NewReplacer("1.0.0", image, "replicas: 1", "replicas: "+replicas).Replace(deployment)
}

// caughtUp waits until the draft was begun on what the branch has now.
func (s *story) caughtUp() {
	s.Helper()
	s.settle()
	if base := s.cluster.Raw("rev-parse", "main:"+s.name); !strings.Contains(s.open("Kptfile"), base) {
		s.Errorf("the draft was not begun on %s:\n%s", base, s.open("Kptfile"))
	}
}

// TestADraftCatchesUpWithTheBranch: what somebody edits on the branch while a draft is open comes into the draft, as often as they
// do, and neither what upstream changed nor what was edited in the draft is lost.
func TestADraftCatchesUpWithTheBranch(t *testing.T) {
	t.Parallel()
	s := newScene(t).story(t, "app")
	s.release("v1", "1.0.0", nil)
	s.begin(approve(packagesv1.ApprovalInitial))
	s.released()
	s.person("main", map[string]string{"deployment.yaml": scaled("1.0.0", "3")})
	s.release("v2", "2.0.0", nil)
	s.settle()
	s.has(s.open("deployment.yaml"), "app:2.0.0", "replicas: 3")
	notes := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: notes\ndata:\n  of: the draft\n"
	s.person(s.draft(), map[string]string{"notes.yaml": notes})

	for _, replicas := range []string{"5", "7"} {
		s.person("main", map[string]string{"deployment.yaml": scaled("1.0.0", replicas)})
		s.caughtUp()
		s.has(s.open("deployment.yaml"), "app:2.0.0", "replicas: "+replicas)
		if got := s.open("notes.yaml"); got != notes {
			t.Errorf("the edit of the draft is lost: %q", got)
		}
		if s.v.Status.Change.ConflictCount != 0 {
			t.Errorf("nothing was in conflict: %+v", s.v.Status.Change.Conflicts)
		}
	}
	s.publish(s.v)
	s.has(s.published("deployment.yaml"), "app:2.0.0", "replicas: 7")
	s.has(s.published("notes.yaml"), "the draft")
}

// TestCatchingUpKeepsToThePolicy: where somebody edited on the branch what upstream changed in the draft.
func TestCatchingUpKeepsToThePolicy(t *testing.T) {
	t.Parallel()
	scene := newScene(t)
	for name, test := range map[string]struct {
		policy packagesv1.ConflictPolicy
		image  string
	}{
		"upstream": {packagesv1.ConflictUpstream, "2.0.0"},
		"local":    {packagesv1.ConflictLocal, "1.0.0-hotfix"},
		"fail":     {packagesv1.ConflictFail, "2.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scene.story(t, name)
			s.release("v1", "1.0.0", nil)
			s.begin(approve(packagesv1.ApprovalInitial), func(spec *packagesv1.PackageVariantSpec) { spec.ConflictPolicy = test.policy })
			s.released()
			s.release("v2", "2.0.0", nil)
			s.settle()
			draft := s.v.Status.Change.Commit
			s.person("main", map[string]string{"deployment.yaml": scaled("1.0.0-hotfix", "1")})
			s.settle()
			s.has(s.open("deployment.yaml"), "app:"+test.image+"\n")
			change := s.v.Status.Change
			if test.policy == packagesv1.ConflictFail {
				if change.Commit != draft || !conditions.IsStalled(s.v) {
					t.Errorf("the draft was written: %s", said(s.v))
				}
				change = s.v.Status.Preview // The commit that is open has no conflict.
			}
			if change == nil || change.ConflictCount != 1 || !strings.Contains(change.Conflicts[0].Local, "hotfix") || !strings.Contains(change.Conflicts[0].Upstream, "2.0.0") {
				t.Errorf("the conflict is not told: %+v", change)
			}
		})
	}
}
