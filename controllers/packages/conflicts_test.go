package packages_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

// credentials is a Secret with the password.
func credentials(password string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata:\n  name: credentials\nstringData:\n  user: app\n  password: " + password + "\n"
}

// TestConflictsAreListedAndDecided by the policy: each with its place and three values, those of Secrets hidden.
func TestConflictsAreListedAndDecided(t *testing.T) {
	t.Parallel()
	scene := newScene(t)
	listed := []packagesv1.Conflict{
		{
			File: "credentials.yaml", Resource: "Secret credentials", Path: "stringData.password",
			Base: "(hidden)", Upstream: "(hidden)", Local: "(hidden)",
		},
		{
			File: "deployment.yaml", Resource: "Deployment.apps app", Path: "spec.template.spec.containers[name=app].image",
			Base: "example.com/app:1.0.0", Upstream: "example.com/app:2.0.0", Local: "example.com/app:1.0.0-ours",
		},
	}
	for name, test := range map[string]struct {
		policy          packagesv1.ConflictPolicy
		image, password string
	}{
		"upstream": {packagesv1.ConflictUpstream, "2.0.0", "theirs"},
		"local":    {packagesv1.ConflictLocal, "1.0.0-ours", "ours"},
		"fail":     {packagesv1.ConflictFail, "1.0.0-ours", "ours"},
	} {
		for _, where := range []string{"draft", "branch"} {
			t.Run(name+"-"+where, func(t *testing.T) {
				t.Parallel()
				s := scene.story(t, name+"-"+where)
				s.release("v1", "1.0.0", map[string]string{"credentials.yaml": credentials("first")})
				policy := packagesv1.ApprovalManual
				if where == "branch" {
					policy = packagesv1.ApprovalInitial
				}
				s.begin(approve(policy), func(spec *packagesv1.PackageVariantSpec) { spec.ConflictPolicy = test.policy })
				s.settle()
				edited := "main"
				if where == "draft" {
					edited = s.draft()
				}
				ours := s.person(edited, map[string]string{"deployment.yaml": scaled("1.0.0-ours", "4"), "credentials.yaml": credentials("ours")})
				s.release("v2", "2.0.0", map[string]string{"credentials.yaml": credentials("theirs")})
				s.settle()

				change := s.v.Status.Change
				if test.policy == packagesv1.ConflictFail {
					s.failed(edited, ours)
					change = s.v.Status.Preview // The commit that is open has no conflict.
				} else {
					s.has(s.open("deployment.yaml"), "app:"+test.image+"\n", "replicas: 4")
					s.has(s.open("credentials.yaml"), "password: "+test.password)
				}
				if change == nil {
					t.Fatalf("no conflicts are told: %s", said(s.v))
				}
				if diff := cmp.Diff(listed, change.Conflicts); diff != "" || change.ConflictCount != 2 {
					t.Errorf("%d conflicts are told:\n%s", change.ConflictCount, diff)
				}
				if !conditions.IsTrue(s.v, packagesv1.ConflictedCondition) {
					t.Error("it is not said that there is a conflict")
				}
				for _, condition := range s.v.Status.Conditions {
					s.hasNot(condition.Message, "ours", "theirs")
				}
				if test.policy == packagesv1.ConflictFail {
					s.mended(edited)
				}
			})
		}
	}
}

// failed looks that nothing was written.
func (s *story) failed(branch, ours string) {
	s.Helper()
	if !conditions.IsStalled(s.v) || conditions.GetReason(s.v, "Ready") != packagesv1.ConflictReason {
		s.Errorf("it is not stalled by the conflict: %s", said(s.v))
	}
	if branch != "main" && s.cluster.Raw("rev-parse", branch) != ours {
		s.Errorf("the draft was written to")
	}
	if branch == "main" && s.written() != 0 {
		s.Errorf("a draft was begun")
	}
}

// mended takes back one of the edits, and agrees to upstream's value of the other.
func (s *story) mended(branch string) {
	s.Helper()
	s.person(branch, map[string]string{"deployment.yaml": scaled("2.0.0", "4"), "credentials.yaml": credentials("first")})
	s.settle()
	s.has(s.open("deployment.yaml"), "app:2.0.0", "replicas: 4")
	s.has(s.open("credentials.yaml"), "password: theirs")
	if conditions.Has(s.v, packagesv1.ConflictedCondition) || s.v.Status.Preview != nil || !conditions.IsReady(s.v) {
		s.Errorf("the conflict is still told: %s %+v", said(s.v), s.v.Status.Preview)
	}
}

// TestADryRunShowsAnUpdate of what is published, with its files and objects, until it is taken back; then the draft is made.
func TestADryRunShowsAnUpdate(t *testing.T) {
	t.Parallel()
	s := newScene(t).story(t, "app")
	more := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: more\n"
	s.release("v1", "1.0.0", map[string]string{"gone.yaml": more})
	s.begin(approve(packagesv1.ApprovalInitial))
	s.released()
	refs := s.cluster.Raw("for-each-ref")
	s.edit(func(spec *packagesv1.PackageVariantSpec) {
		spec.DryRun, spec.Labels = true, map[string]string{"team": "blue"}
	})
	s.blueprints.Commit("main", "without it", upstream.Files{"app/gone.yaml": {Mode: upstream.Removed}})
	s.release("v2", "2.0.0", map[string]string{"more.yaml": strings.ReplaceAll(more, "more", "new")})
	s.settle()
	if now := s.cluster.Raw("for-each-ref"); now != refs {
		t.Errorf("refs were moved:\n%s", cmp.Diff(refs, now))
	}
	preview := s.v.Status.Preview
	if preview == nil || preview.Files == nil || preview.Objects == nil {
		t.Fatalf("nothing is shown: %s", said(s.v))
	}
	want := "Changed Kptfile\nChanged deployment.yaml\nRemoved gone.yaml\nAdded more.yaml"
	if diff := cmp.Diff(want, fileNames(preview)); diff != "" || preview.Commit != "" || preview.PackageRevision != "" {
		t.Errorf("the preview is %+v:\n%s", preview, diff)
	}
	if o := preview.Objects; o.Added != 1 || o.Removed != 1 || o.Changed < 1 {
		t.Errorf("the objects are %+v", o)
	}
	if conditions.GetReason(s.v, packagesv1.UpdatePendingCondition) != packagesv1.DryRunReason {
		t.Errorf("it is not said what waits: %v", s.v.Status.Conditions)
	}
	s.edit(func(spec *packagesv1.PackageVariantSpec) { spec.DryRun = false })
	s.settle()
	s.has(s.open("deployment.yaml"), "app:2.0.0")
	s.has(s.open("Kptfile"), "team: blue")
	if s.v.Status.Preview != nil || conditions.Has(s.v, packagesv1.UpdatePendingCondition) {
		t.Errorf("the preview stays: %+v", s.v.Status.Preview)
	}
	if diff := cmp.Diff(want, fileNames(s.v.Status.Change)); diff != "" {
		t.Errorf("the draft is not what was shown:\n%s", diff)
	}
}
