package packages_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// stock makes a repository on a server of its own, with its objects, and the server.
func (p *plane) stock(name string, change ...func(*sourcev1.GitRepository, *packagesv1.Repository)) (*upstream.Edited, *upstream.GitHTTP) {
	p.Helper()
	server, made := p.upstreams.HTTP(upstream.HTTPOptions{}), p.upstreams.Repository(name+".git")
	made.AcceptPushes()
	made.Commit("main", "begin", upstream.Text(readme))
	source, repository := p.source(name, server), p.packages(name)
	for _, c := range change {
		c(source, repository)
	}
	p.create(source, repository)
	made.Moved = func() { p.look(name) }
	return made, server
}

// rounds waits until a server was asked for its refs so many more times.
func (p *plane) rounds(server *upstream.GitHTTP, more int) {
	p.Helper()
	want := server.Count(upstream.LsRefs) + more
	testenv.Eventually(p.T, "rounds go on", func(context.Context) (bool, string) {
		got := server.Count(upstream.LsRefs)
		return got >= want, fmt.Sprintf("%d of %d", got, want)
	})
}

// paced waits until something was tried eight times since the beginning, which has to take as long as the growing delays between
// them, and the pause that all tries make. A slow machine only makes it longer.
func (p *plane) paced(what string, began time.Time, pause time.Duration, tries func() int) {
	p.Helper()
	testenv.Eventually(p.T, what+" is tried again", func(context.Context) (bool, string) { return tries() >= 8, fmt.Sprint(tries()) })
	least := 7 * pause
	for delay := shortestDelay; delay <= 32*shortestDelay; delay *= 2 {
		least += delay // The last one is spared, as one try may be made for another reason.
	}
	if took := time.Since(began); took < least {
		p.Errorf("%s was tried %d times in %s, which takes %s at least", what, tries(), took, least)
	}
}

// to has the variant keep its package in the repository.
func to(repository string) func(*packagesv1.PackageVariantSpec) {
	return func(s *packagesv1.PackageVariantSpec) { s.Downstream.Repo = repository }
}

// TestADeadRepositoryDelaysNoOther, says what is wrong with it, is not asked over and over, and goes on when it is well again.
func TestADeadRepositoryDelaysNoOther(t *testing.T) {
	t.Parallel()
	began := time.Now()
	p := newPlane(t)
	blueprints := p.repository("blueprints")
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", plain("1.0.0")), false)
	cases := map[string]struct {
		fault  upstream.Fault
		access upstream.Access
		// repository and variant are the reasons why they are not ready; the first is empty where the repository can be read.
		repository, variant string
	}{
		"hanging": {fault: upstream.Hang(), repository: packagesv1.SyncFailedReason, variant: packagesv1.RepositoryNotReadyReason},
		"failing": {fault: upstream.Status(500), repository: packagesv1.SyncFailedReason, variant: packagesv1.RepositoryNotReadyReason},
		"locked":  {access: upstream.Access{Username: "a", Password: "b"}, repository: packagesv1.SyncFailedReason, variant: packagesv1.RepositoryNotReadyReason},
		"readonly": {
			fault: upstream.Status(403).On(upstream.PushRefs, upstream.Push), variant: packagesv1.PushFailedReason,
		},
	}
	servers, made, variants := map[string]*upstream.GitHTTP{}, map[string]*upstream.Edited{}, map[string]*packagesv1.PackageVariant{}
	for name, test := range cases {
		made[name], servers[name] = p.stock(name, func(_ *sourcev1.GitRepository, r *packagesv1.Repository) {
			r.Spec.Timeout = &metav1.Duration{Duration: 2 * time.Second}
		})
		servers[name].SetAccess(test.access)
		if test.access == (upstream.Access{}) {
			servers[name].Always(test.fault)
		}
		variants[name] = p.variantNamed(name, to(name))
	}
	cluster := p.repository("cluster")
	cluster.Commit("main", "begin", upstream.Text(readme))
	p.drafted(p.variantNamed("well"), cluster, func(upstream.Files) bool { return true })
	for name, test := range cases {
		if test.repository != "" {
			fails(p, p.packages(name), test.repository, "")
		}
		fails(p, variants[name], test.variant, "")
	}
	p.paced("reading", began, 0, func() int { return servers["failing"].Count() })
	p.paced("pushing", began, 0, func() int { return servers["readonly"].Count(upstream.PushRefs) })
	for name := range cases {
		servers[name].Heal()
		servers[name].SetAccess(upstream.Access{})
	}
	for name := range cases {
		p.drafted(variants[name], made[name], func(upstream.Files) bool { return true })
	}
}

// TestAPackageThatCannotBeReadIsLeftAlone: upstream, on the branch, and in a draft, beside which no other one is begun.
func TestAPackageThatCannotBeReadIsLeftAlone(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	const broken = "apiVersion: kpt.dev/v1\nkind: [\n"
	blueprints, cluster := p.repository("blueprints"), p.repository("cluster")
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", upstream.Text(map[string]string{"app/Kptfile": broken})), false)
	cluster.Commit("main", "begin", upstream.Text(map[string]string{"other/Kptfile": broken}))
	v := p.variant()
	fails(p, v, packagesv1.InvalidPackageReason, "Kptfile")
	there := p.variantNamed("there", func(s *packagesv1.PackageVariantSpec) { s.Downstream.Package = "other" })
	blueprints.Tag("app/v2", blueprints.Commit("main", "mended", plain("1.0.0")), false)
	p.drafted(v, cluster, func(upstream.Files) bool { return true })
	fails(p, there, packagesv1.InvalidPackageReason, "other")

	branch := "drafts/app/" + v.Status.Change.Workspace
	edited := cluster.Tree(branch)
	whole := edited["app/Kptfile"]
	edited["app/Kptfile"] = upstream.File{Content: broken}
	ours := cluster.Commit(branch, "oh", edited)
	fails(p, v, packagesv1.InvalidPackageReason, v.Status.Change.Workspace)
	blueprints.Tag("app/v3", blueprints.Commit("main", "newer", plain("3.0.0")), false)
	until(p, v, "the newer one is known", func(v *packagesv1.PackageVariant) (bool, string) {
		return v.Status.Upstream != nil && v.Status.Upstream.Revision == "v3", said(v)
	})
	if got := refs(cluster); strings.Count(got, "refs/heads/drafts/") != 1 || !strings.Contains(got, ours) {
		t.Errorf("the refs are\n%s", got)
	}
	edited["app/Kptfile"] = whole
	cluster.Commit(branch, "mended", edited)
	p.drafted(v, cluster, func(f upstream.Files) bool { return strings.Contains(f["app/deployment.yaml"].Content, "3.0.0") })
}

// TestIdleObjectsWriteNothing, in whatever state they wait.
func TestIdleObjectsWriteNothing(t *testing.T) {
	t.Parallel()
	p := newPlane(t, frequent)
	blueprints, cluster := p.stocked(map[string]string{"theirs/Kptfile": kptfile})
	draft := p.variant()
	p.drafted(draft, cluster, func(upstream.Files) bool { return true })
	done := p.variantNamed("done", always, func(s *packagesv1.PackageVariantSpec) { s.Downstream.Package = "done" })
	p.published(done, "v1")
	fails(p, p.variantNamed("second"), packagesv1.NotOwnedReason, "")
	fails(p, p.variantNamed("theirs", func(s *packagesv1.PackageVariantSpec) { s.Downstream.Package = "theirs" }), packagesv1.NotOwnedReason, "")
	fails(p, p.variantNamed("lost", func(s *packagesv1.PackageVariantSpec) { s.Upstream.Tag = "none" }), packagesv1.UpstreamNotFoundReason, "")
	preview := p.variantNamed("preview", func(s *packagesv1.PackageVariantSpec) { s.DryRun, s.Downstream.Package = true, "preview" })
	until(p, preview, "the preview", func(v *packagesv1.PackageVariant) (bool, string) {
		return v.Status.Preview != nil && conditions.IsReady(v), said(v)
	})
	revision := p.revision(draft.Status.Change.PackageRevision, packagesv1.LifecycleDraft)
	p.ask(revision, func() { revision.Spec.Lifecycle = packagesv1.LifecycleProposed })
	p.revision(revision.Name, packagesv1.LifecycleProposed)
	blueprints.Tag("app/v2", blueprints.Commit("main", "newer", plain("2.0.0")), false)
	p.published(done, "v2")
	until(p, draft, "the update waits", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.IsTrue(v, packagesv1.UpdatePendingCondition) && conditions.IsReady(v), said(v)
	})
	p.quiet(cluster)
}

// quiet waits until nothing is written any more for three rounds, which are longer than any delay of the plane.
func (p *plane) quiet(cluster *upstream.Edited) {
	p.Helper()
	for tries := 0; ; tries++ {
		writes, pushes, was := p.writes.Load(), p.server.Count(upstream.Push), refs(cluster)
		p.rounds(p.server, 6) // There are two repositories.
		switch {
		case p.writes.Load() == writes && p.server.Count(upstream.Push) == pushes && refs(cluster) == was:
			return
		case tries == 4:
			p.Fatalf("%d writes and %d pushes in three idle rounds", p.writes.Load()-writes, p.server.Count(upstream.Push)-pushes)
		}
	}
}

// TestARefusedPushIsTriedAgainWithGrowingDelays, and says what the server said.
func TestARefusedPushIsTriedAgainWithGrowingDelays(t *testing.T) {
	t.Parallel()
	p, began := newPlane(t), time.Now()
	_, cluster := p.stocked(readme)
	cluster.Hook("pre-receive", "#!/bin/sh\necho no pushes today >&2\nexit 1\n")
	v := p.variant()
	fails(p, v, packagesv1.PushRejectedReason, "")
	p.paced("pushing", began, gathering, func() int { return p.server.Count(upstream.Push) })
	cluster.Hook("pre-receive", "#!/bin/sh\nexit 0\n")
	p.drafted(v, cluster, func(upstream.Files) bool { return true })
}

// TestSuspendStopsAllWork, that which was ordered before as well.
func TestSuspendStopsAllWork(t *testing.T) {
	t.Parallel()
	p := newPlane(t, frequent)
	blueprints := p.repository("blueprints")
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", plain("1.0.0")), false)
	cluster, server := p.stock("cluster")
	repository := p.packages("cluster")
	until(p, repository, "it is read", func(r *packagesv1.Repository) (bool, string) { return conditions.IsReady(r), said(r) })
	server.Always(upstream.Status(500))
	before := refs(cluster)
	v := p.variant()
	fails(p, v, packagesv1.RepositoryNotReadyReason, "")
	p.ask(v, func() { v.Spec.Suspend = true })
	until(p, v, "it is suspended", func(v *packagesv1.PackageVariant) (bool, string) {
		return v.Status.ObservedGeneration == v.Generation, said(v)
	})
	server.Heal()
	until(p, repository, "it is read again", func(r *packagesv1.Repository) (bool, string) { return conditions.IsReady(r), said(r) })
	p.rounds(server, 3)
	if now := refs(cluster); now != before {
		t.Errorf("a suspended variant was worked for:\n%s", now)
	}
	p.ask(repository, func() { repository.Spec.Suspend = true })
	until(p, repository, "it is suspended", func(r *packagesv1.Repository) (bool, string) {
		return r.Status.ObservedGeneration == r.Generation, said(r)
	})
	p.ask(v, func() { v.Spec.Suspend = false })
	fails(p, v, packagesv1.RepositoryNotReadyReason, "is suspended")
	if now := refs(cluster); now != before {
		t.Errorf("a suspended repository was written to:\n%s", now)
	}
	p.ask(repository, func() { repository.Spec.Suspend = false })
	p.drafted(v, cluster, func(upstream.Files) bool { return true })
}

// TestSecretsThatChangeAreTaken: the credentials that are pushed with, and the key that is signed with.
func TestSecretsThatChangeAreTaken(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints := p.repository("blueprints")
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", plain("1.0.0")), false)
	first, second := p.upstreams.Key(upstream.Ed25519), p.upstreams.Key(upstream.Ed25519)
	keys := map[*upstream.SSHKey]string{}
	for _, key := range []*upstream.SSHKey{first, second} {
		text, err := key.PEM()
		if err != nil {
			t.Fatal(err)
		}
		keys[key] = string(text)
	}
	login := func(password string) map[string][]byte {
		return map[string][]byte{"username": []byte("git"), "password": []byte(password)}
	}
	signing := &corev1.Secret{ObjectMeta: p.meta("signing"), Data: map[string][]byte{"identity": []byte(keys[first])}}
	push := &corev1.Secret{ObjectMeta: p.meta("push"), Data: login("wrong")}
	p.create(signing, push, &corev1.Secret{ObjectMeta: p.meta("read"), Data: login("right")})
	cluster, server := p.stock("cluster", func(s *sourcev1.GitRepository, r *packagesv1.Repository) {
		s.Spec.SecretRef = &meta.LocalObjectReference{Name: "read"}
		r.Spec.PushSecretRef = &packagesv1.LocalReference{Name: "push"}
		r.Spec.Commit = &packagesv1.CommitSpec{SigningKeySecretRef: &packagesv1.LocalReference{Name: "signing"}}
	})
	server.SetAccess(upstream.Access{Username: "git", Password: "right"})
	v := p.variant()
	fails(p, v, packagesv1.PushFailedReason, "")
	p.ask(push, func() { push.Data = login("right") })
	p.drafted(v, cluster, func(upstream.Files) bool { return true })
	before := cluster.Raw("cat-file", "commit", v.Status.Change.Commit)
	p.ask(signing, func() { signing.Data["identity"] = []byte(keys[second]) })
	for range 2 { // One may be under way already.
		p.look("cluster")
		p.rounds(server, 1)
	}
	blueprints.Tag("app/v2", blueprints.Commit("main", "newer", plain("2.0.0")), false)
	p.drafted(v, cluster, func(f upstream.Files) bool { return strings.Contains(f["app/deployment.yaml"].Content, "2.0.0") })
	after := cluster.Raw("cat-file", "commit", v.Status.Change.Commit)
	// A signature begins with the public key.
	if a, b := publicPart(before), publicPart(after); a == "" || b == "" || a == b {
		t.Errorf("the commits are signed with %q and %q", a, b)
	}
}

// publicPart is the beginning of a commit's signature.
func publicPart(commit string) string {
	_, signature, ok := strings.Cut(commit, "-----BEGIN SSH SIGNATURE-----\n")
	if !ok {
		return ""
	}
	return signature[:120]
}
