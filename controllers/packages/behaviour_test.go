package packages_test

import (
	"context"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// injectable is a package with a point of injection.
func injectable() upstream.Files {
	return upstream.Text(map[string]string{
		"app/Kptfile":         kptfile,
		"app/deployment.yaml": deployment,
		"app/settings.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n  annotations:\n    kpt.dev/config-injection: required\ndata:\n  region: none\n",
	})
}

// mayRead lets the default ServiceAccount read ConfigMaps.
func (p *plane) mayRead() {
	p.Helper()
	p.create(
		&rbacv1.Role{ObjectMeta: p.meta("reads"), Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps", "persistentvolumeclaims"}, Verbs: []string{"get", "list", "watch"}}}},
		&rbacv1.RoleBinding{
			ObjectMeta: p.meta("reads"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reads"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "reader", Namespace: p.namespace}},
		},
		&corev1.ServiceAccount{ObjectMeta: p.meta("reader")},
	)
}

// TestWhatIsInjectedIsFollowed: a gate holds the package until there is something, and a change of it is a new draft.
func TestWhatIsInjectedIsFollowed(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.mayRead()
	blueprints, cluster := p.repository("blueprints"), p.repository("cluster")
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", injectable()), false)
	cluster.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	v := p.variant(func(s *packagesv1.PackageVariantSpec) {
		s.ServiceAccountName = "reader"
		s.Approval = &packagesv1.Approval{Policy: packagesv1.ApprovalAlways}
	})
	p.drafted(v, cluster, func(f upstream.Files) bool { return strings.Contains(f["app/settings.yaml"].Content, "region: none") })
	until(p, v, "nothing is injected", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.IsFalse(v, packagesv1.InjectedCondition) && v.Status.Published == nil, said(v)
	})
	settings := &corev1.ConfigMap{ObjectMeta: p.meta("cluster"), Data: map[string]string{"region": "north"}}
	p.create(settings)
	until(p, v, "it is published with what is injected", func(v *packagesv1.PackageVariant) (bool, string) {
		return v.Status.Published != nil && v.Status.Published.Revision == "v1" && conditions.IsTrue(v, packagesv1.InjectedCondition), said(v)
	})
	if files := cluster.Tree("main"); !strings.Contains(files["app/settings.yaml"].Content, "region: north") {
		t.Errorf("the branch has\n%s", files["app/settings.yaml"].Content)
	}
	p.ask(settings, func() { settings.Data["region"] = "south" })
	until(p, v, "the change is published", func(v *packagesv1.PackageVariant) (bool, string) {
		return v.Status.Published != nil && v.Status.Published.Revision == "v2", said(v)
	})
	if files := cluster.Tree("main"); !strings.Contains(files["app/settings.yaml"].Content, "region: south") {
		t.Errorf("the branch has\n%s", files["app/settings.yaml"].Content)
	}
}

// TestAPointThatPeopleAddIsFilled, also where upstream has none that the same object fills.
func TestAPointThatPeopleAddIsFilled(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.mayRead()
	p.create(&corev1.ConfigMap{ObjectMeta: p.meta("cluster"), Data: map[string]string{"region": "north"}})
	blueprints, cluster := p.repository("blueprints"), p.repository("cluster")
	all := injectable()
	point := all["app/settings.yaml"]
	delete(all, "app/settings.yaml")
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", all), false)
	cluster.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	v := p.variant(func(s *packagesv1.PackageVariantSpec) { s.ServiceAccountName = "reader" })
	p.drafted(v, cluster, func(upstream.Files) bool { return true })
	cluster.Commit("drafts/app/"+v.Status.Change.Workspace, "a point", upstream.Files{"app/mine.yaml": point})
	p.drafted(v, cluster, func(f upstream.Files) bool { return strings.Contains(f["app/mine.yaml"].Content, "region: north") })
	until(p, v, "it is told", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.IsTrue(v, packagesv1.InjectedCondition) && len(v.Status.Injected) == 1, said(v)
	})
}

// TestAConflictIsTold: with Fail nothing is written, with another policy it decides.
func TestAConflictIsTold(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, cluster := p.repository("blueprints"), p.repository("cluster")
	plain := func(image string) upstream.Files {
		return upstream.Text(map[string]string{"app/Kptfile": kptfile, "app/deployment.yaml": strings.ReplaceAll(deployment, "1.0.0", image)})
	}
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", plain("1.0.0")), false)
	cluster.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	v := p.variant(func(s *packagesv1.PackageVariantSpec) { s.ConflictPolicy = packagesv1.ConflictFail })
	p.drafted(v, cluster, func(upstream.Files) bool { return true })
	branch := "drafts/app/" + v.Status.Change.Workspace
	edited := cluster.Tree(branch)
	edited["app/deployment.yaml"] = upstream.File{Content: strings.ReplaceAll(deployment, "1.0.0", "1.0.0-ours")}
	ours := cluster.Commit(branch, "our image", edited)
	blueprints.Tag("app/v2", blueprints.Commit("main", "newer", plain("2.0.0")), false)
	until(p, v, "the conflict stalls it", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.IsStalled(v) && conditions.GetReason(v, "Ready") == packagesv1.ConflictReason, said(v)
	})
	if c := v.Status.Preview; c == nil || c.ConflictCount != 1 || !strings.Contains(c.Conflicts[0].Upstream, "2.0.0") {
		t.Errorf("what stalls it is not told: %+v", c)
	}
	if got := strings.TrimSpace(cluster.Raw("rev-parse", branch)); got != ours {
		t.Errorf("the draft is at %s, not at the person's commit %s", got, ours)
	}
	p.ask(v, func() { v.Spec.ConflictPolicy = packagesv1.ConflictLocal })
	files := p.drafted(v, cluster, func(upstream.Files) bool { return v.Status.Change.Commit != ours })
	if got := files["app/deployment.yaml"].Content; !strings.Contains(got, "1.0.0-ours") {
		t.Errorf("the person's value is gone:\n%s", got)
	}
	if c := v.Status.Change; c.ConflictCount != 1 || len(c.Conflicts) != 1 || !strings.Contains(c.Conflicts[0].Upstream, "2.0.0") || !conditions.IsTrue(v, packagesv1.ConflictedCondition) {
		t.Errorf("the conflict is not told: %+v", c)
	}
}

// TestDryRunPushesNothing and shows what would be changed.
func TestDryRunPushesNothing(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, cluster := p.repository("blueprints"), p.repository("cluster")
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", injectable()), false)
	cluster.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	refs := cluster.Raw("for-each-ref")
	v := p.variant(func(s *packagesv1.PackageVariantSpec) { s.DryRun, s.ServiceAccountName = true, "reader" })
	p.mayRead()
	until(p, v, "the preview is there", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.IsReady(v) && v.Status.Preview != nil && v.Status.Preview.Files != nil && v.Status.Preview.Files.Added == 3, said(v)
	})
	if now := cluster.Raw("for-each-ref"); now != refs {
		t.Errorf("refs were made:\n%s", now)
	}
}

// TestAVariantThatGoesProposesTheDeletion of what is published; who deletes its revision then approves that.
func TestAVariantThatGoesProposesTheDeletion(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, cluster := p.repository("blueprints"), p.repository("cluster")
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", injectable()), false)
	cluster.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	p.mayRead()
	p.create(&corev1.ConfigMap{ObjectMeta: p.meta("cluster"), Data: map[string]string{"region": "north"}})
	v := p.variant(func(s *packagesv1.PackageVariantSpec) {
		s.ServiceAccountName, s.Approval = "reader", &packagesv1.Approval{Policy: packagesv1.ApprovalAlways}
	})
	until(p, v, "it is published", func(v *packagesv1.PackageVariant) (bool, string) { return v.Status.Published != nil, said(v) })
	revision := &packagesv1.PackageRevision{ObjectMeta: p.meta(v.Status.Published.PackageRevision)}
	if err := env.Client.Delete(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	until(p, revision, "the deletion is proposed", func(r *packagesv1.PackageRevision) (bool, string) {
		return r.Status.Lifecycle == packagesv1.LifecycleDeletionProposed, said(r)
	})
	if _, ok := cluster.Tree("main")["app/Kptfile"]; !ok {
		t.Error("the package is gone before anybody approved")
	}
	p.remove(revision)
	testenv.Eventually(t, "the package leaves the branch", func(context.Context) (bool, string) {
		_, there := cluster.Tree("main")["app/Kptfile"]
		return !there, "it is there"
	})
	if got := cluster.Tree("main")["README.md"].Content; got != "hello\n" {
		t.Errorf("the rest of the branch is %q", got)
	}
}

// TestGitAloneTellsWhatIsDone: without any object's status, and with the objects made anew by a process that knows nothing,
// nothing is written to Git.
func TestGitAloneTellsWhatIsDone(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, cluster := p.repository("blueprints"), p.repository("cluster")
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", upstream.Text(map[string]string{"app/Kptfile": kptfile, "app/deployment.yaml": deployment})), false)
	cluster.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	always := func(s *packagesv1.PackageVariantSpec) {
		s.Approval = &packagesv1.Approval{Policy: packagesv1.ApprovalInitial}
	}
	v := p.variant(always)
	until(p, v, "it is published", func(v *packagesv1.PackageVariant) (bool, string) { return v.Status.Published != nil, said(v) })
	blueprints.Tag("app/v2", blueprints.Commit("main", "newer", upstream.Text(map[string]string{
		"app/Kptfile": kptfile, "app/deployment.yaml": strings.ReplaceAll(deployment, "1.0.0", "2.0.0"),
	})), false)
	p.drafted(v, cluster, func(f upstream.Files) bool { return strings.Contains(f["app/deployment.yaml"].Content, "2.0.0") })
	refs := cluster.Raw("for-each-ref")
	p.stop()
	p.ask(v, func() { v.Finalizers = nil })
	if err := env.Client.Delete(t.Context(), v); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	pushes := p.server.Count(upstream.Push)
	p.start()
	again := p.variant(always)
	until(p, again, "the draft is known", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.IsReady(v) && v.Status.Change != nil && v.Status.Published != nil, said(v)
	})
	if now := cluster.Raw("for-each-ref"); now != refs || p.server.Count(upstream.Push) != pushes {
		t.Errorf("Git was written to:\n%s\nbefore:\n%s", now, refs)
	}
}

// TestARightThatIsGrantedLaterIsNoticed, as nothing tells of it.
func TestARightThatIsGrantedLaterIsNoticed(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, cluster := p.repository("blueprints"), p.repository("cluster")
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", injectable()), false)
	cluster.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	p.create(&corev1.ConfigMap{ObjectMeta: p.meta("cluster"), Data: map[string]string{"region": "north"}})
	v := p.variant(func(s *packagesv1.PackageVariantSpec) { s.ServiceAccountName = "reader" })
	until(p, v, "the right that lacks is told", func(v *packagesv1.PackageVariant) (bool, string) {
		return len(v.Status.Injected) == 1 && v.Status.Injected[0].Reason == packagesv1.InjectionForbiddenReason && v.Status.Change != nil, said(v)
	})
	p.mayRead()
	p.drafted(v, cluster, func(f upstream.Files) bool { return strings.Contains(f["app/settings.yaml"].Content, "region: north") })
}
