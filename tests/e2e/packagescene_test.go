package e2e

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

const (
	// blueprints is the repository that packages come from.
	blueprints = "blueprints"
	// packager is the ServiceAccount that reads what is injected.
	packager = "packager"
	// reach is the Secret with which repositories are reached.
	reach = "reach"
)

// packageScene is a scene with repositories of packages on real Git servers. Each has its objects under its own name.
type packageScene struct {
	*scene
	// url is where the server has a repository, and env how git gets in there as people do.
	url func(name string) string
	env []string
	// interval is how often repositories are read without anything being edited.
	interval time.Duration
	// repos are the repositories themselves.
	repos map[string]*upstream.Edited
	// more are files that each revision of a blueprint has besides.
	more map[string]string
}

// newPackageScene prepares a scene in which the program does not run yet, and no repository is.
func newPackageScene(t *testing.T, flags ...string) *packageScene {
	t.Helper()
	s := &packageScene{scene: newScene(t, append([]string{"--controllers=packages"}, flags...)...), repos: map[string]*upstream.Edited{}, interval: time.Second}
	s.account(packager)
	s.make(
		&rbacv1.Role{ObjectMeta: s.meta(packager), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: s.meta(packager), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: packager},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: packager}},
		},
	)
	return s
}

func (s *packageScene) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.namespace, Name: name}
}

// overHTTP serves the repositories over HTTP, for those who know a password.
func (s *packageScene) overHTTP() *upstream.GitHTTP {
	s.t.Helper()
	access := upstream.Access{Username: "git", Password: "password-of-" + s.namespace}
	server := s.upstream.HTTP(upstream.HTTPOptions{Access: access})
	s.secret(reach, map[string]string{"username": access.Username, "password": access.Password})
	s.url = server.URL
	// Git asks this program for what it has to show.
	s.env = []string{
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "GIT_CONFIG_KEY_1=credential.helper",
		"GIT_CONFIG_VALUE_1=!f() { echo username=" + access.Username + "; echo password=" + access.Password + "; }; f",
	}
	return server
}

// overSSH serves the repositories over SSH.
func (s *packageScene) overSSH() {
	s.t.Helper()
	server := s.upstream.SSH(upstream.SSHOptions{})
	s.secret(reach, map[string]string{"identity": s.pem(server.Key(), ""), "known_hosts": string(server.KnownHosts())})
	s.url = server.URL
	var err error
	if s.env, err = server.Key().Environ(s.t.TempDir(), server.KnownHosts()); err != nil {
		s.t.Fatal(err)
	}
}

// repositories makes repositories of packages whose branch has a file that is of no package, and the objects for them.
func (s *packageScene) repositories(names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.repos[name] = s.upstream.Repository(name)
		s.repos[name].AcceptPushes()
		s.repos[name].Commit("main", "Begin", upstream.Text(map[string]string{"README.md": "The packages of " + name + ".\n"}))
		s.objects(name)
	}
}

// look has a repository read, as a webhook does.
func (s *packageScene) look(name string) {
	s.t.Helper()
	source := &sourcev1.GitRepository{ObjectMeta: s.meta(name)}
	s.amend(source, func() {
		source.Annotations = map[string]string{meta.ReconcileRequestAnnotation: source.ResourceVersion}
	})
}

// objects makes those of a repository.
func (s *packageScene) objects(name string) {
	s.t.Helper()
	s.make(
		&sourcev1.GitRepository{ObjectMeta: s.meta(name), Spec: sourcev1.GitRepositorySpec{
			URL: s.url(name), Interval: metav1.Duration{Duration: time.Hour}, SecretRef: &meta.LocalObjectReference{Name: reach},
			Suspend: true, // Nobody wants its artifact.
		}},
		&packagesv1.Repository{ObjectMeta: s.meta(name), Spec: packagesv1.RepositorySpec{
			GitRepositoryRef: packagesv1.LocalReference{Name: name}, Interval: &metav1.Duration{Duration: s.interval},
		}},
	)
}

// variantChange is how a variant differs from the usual one.
type variantChange func(*packagesv1.PackageVariantSpec)

// variant is one of a package in a repository, named after both: it has a label and a namespace of its own, and takes the
// region from the repository's ConfigMap, see injects.
func (s *packageScene) variant(pkg, into string, changes ...variantChange) *packagesv1.PackageVariant {
	made := &packagesv1.PackageVariant{ObjectMeta: s.meta(pkg + "-" + into), Spec: packagesv1.PackageVariantSpec{
		Upstream:   packagesv1.Upstream{Repo: blueprints, Package: pkg},
		Downstream: packagesv1.Downstream{Repo: into},
		Labels:     map[string]string{"example.com/cluster": into},
		Namespace:  pkg + "-" + into, ServiceAccountName: packager,
		Injectors: []packagesv1.Injector{{Point: "settings", Name: "of-" + into}},
	}}
	for _, change := range changes {
		change(&made.Spec)
	}
	return made
}

// injects makes the ConfigMaps that say which region a repository is of: its name.
func (s *packageScene) injects(repositories ...string) {
	s.t.Helper()
	for _, name := range repositories {
		s.make(&corev1.ConfigMap{ObjectMeta: s.meta("of-" + name), Data: map[string]string{"region": name}})
	}
}

// revise publishes a revision of a blueprint: an image, a point of injection, and a setting.
func (s *packageScene) revise(pkg string, revision int) {
	s.t.Helper()
	files := map[string]string{
		"Kptfile":         "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: " + pkg + "\npipeline:\n  mutators:\n    - image: set-labels\n      configMap: {tier: front}\n",
		"deployment.yaml": fmt.Sprintf(packagedDeployment, pkg, revision),
		"settings.yaml":   packagedSettings,
		"limits.yaml":     fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: limits\ndata:\n  revision: \"%d\"\n", revision),
	}
	maps.Copy(files, s.more)
	inside := map[string]string{}
	for name, content := range files {
		inside[pkg+"/"+name] = content
	}
	commit := s.repos[blueprints].Commit("main", fmt.Sprintf("%s %d", pkg, revision), upstream.Text(inside))
	s.repos[blueprints].Tag(fmt.Sprintf("%s/v%d", pkg, revision), commit, false)
}

const packagedDeployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s # people know it by this name
spec:
  replicas: 1 # enough for most
  template:
    spec:
      containers:
        - name: main
          image: example.com/%[1]s:%[2]d.0.0
`

const packagedSettings = `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  annotations:
    kpt.dev/config-injection: required
data:
  region: none
`

// image is how a package's manifest names the image of a revision.
func image(pkg string, revision int) string {
	return fmt.Sprintf("example.com/%s:%d.0.0", pkg, revision)
}

// untilVariant waits until the variant is as it should be.
func (s *packageScene) untilVariant(v *packagesv1.PackageVariant, what string, is func() bool) {
	s.t.Helper()
	s.eventually(v.Name+" "+what, func(ctx context.Context) (bool, string) {
		if err := env.Client.Get(ctx, s.key(v.Name), v); err != nil {
			return false, err.Error()
		}
		return is(), asJSON(v.Status)
	})
}

// isDone tells whether the controller has done what it can for the variant as it is.
func isDone(v *packagesv1.PackageVariant) bool {
	return conditions.IsReady(v) && !conditions.IsReconciling(v) && v.Status.ObservedGeneration == v.Generation
}

// drafted waits until the variant has a draft of the revision, and returns its files below the package's folder.
func (s *packageScene) drafted(v *packagesv1.PackageVariant, revision int) map[string]string {
	s.t.Helper()
	var files map[string]string
	s.untilVariant(v, fmt.Sprintf("has a draft of revision %d", revision), func() bool {
		if !isDone(v) || v.Status.Change == nil || v.Status.Change.Lifecycle != packagesv1.LifecycleDraft {
			return false
		}
		files = s.files(v, v.Status.Change.Commit)
		return strings.Contains(files["deployment.yaml"], image(v.Spec.Upstream.Package, revision))
	})
	return files
}

// files are those of the variant's package in a commit or branch of its repository.
func (s *packageScene) files(v *packagesv1.PackageVariant, revision string) map[string]string {
	s.t.Helper()
	inside := map[string]string{}
	for name, file := range s.repos[v.Spec.Downstream.Repo].Tree(revision) {
		if below, ok := strings.CutPrefix(name, v.Spec.Upstream.Package+"/"); ok {
			inside[below] = file.Content
		}
	}
	return inside
}

// branch is that of the variant's open change.
func branch(v *packagesv1.PackageVariant) string {
	return "drafts/" + v.Spec.Upstream.Package + "/" + v.Status.Change.Workspace
}

// untilRevision waits until the PackageRevision is where the lifecycle says.
func (s *packageScene) untilRevision(name string, lifecycle packagesv1.Lifecycle) *packagesv1.PackageRevision {
	s.t.Helper()
	obj := &packagesv1.PackageRevision{}
	s.eventually(name+" is "+string(lifecycle), func(ctx context.Context) (bool, string) {
		if err := env.Client.Get(ctx, s.key(name), obj); err != nil {
			return false, err.Error()
		}
		return obj.Status.Lifecycle == lifecycle && conditions.IsReady(obj) && obj.Status.ObservedGeneration == obj.Generation, asJSON(obj.Status)
	})
	return obj
}

// propose asks for the variant's draft to be proposed, and waits until it is.
func (s *packageScene) propose(v *packagesv1.PackageVariant) *packagesv1.PackageRevision {
	s.t.Helper()
	obj := s.untilRevision(v.Status.Change.PackageRevision, packagesv1.LifecycleDraft)
	s.amend(obj, func() { obj.Spec.Lifecycle = packagesv1.LifecycleProposed })
	return s.untilRevision(obj.Name, packagesv1.LifecycleProposed)
}

// publish proposes the variant's draft and approves the commit that is proposed then.
func (s *packageScene) publish(v *packagesv1.PackageVariant) {
	s.t.Helper()
	obj := s.propose(v)
	s.amend(obj, func() {
		obj.Spec.Lifecycle, obj.Spec.ApprovedCommit = packagesv1.LifecyclePublished, obj.Status.Commit
	})
	obj = s.untilRevision(obj.Name, packagesv1.LifecyclePublished)
	s.untilVariant(v, "is published", func() bool {
		return isDone(v) && v.Status.Change == nil && v.Status.Published != nil && v.Status.Published.Commit == obj.Status.Commit
	})
}

// person is somebody with a working copy of a repository, reached as the program reaches it.
func (s *packageScene) person(repository string) *upstream.Clone {
	s.t.Helper()
	clone, err := upstream.NewClone(s.t.Context(), filepath.Join(s.t.TempDir(), repository), s.url(repository), s.env...)
	if err != nil {
		s.t.Fatal(err)
	}
	return clone
}

// sound checks that all repositories are whole.
func (s *packageScene) sound() {
	s.t.Helper()
	for name, repo := range s.repos {
		if out, err := repo.Repository.Raw("fsck", "--strict", "--full", "--no-dangling"); err != nil {
			s.t.Errorf("repository %s: %v: %s", name, err, out)
		}
	}
}
