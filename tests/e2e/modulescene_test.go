package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/upstream/registry"
)

// deployer is the ServiceAccount that a test's installations work as, unless they say otherwise.
const deployer = "deployer"

// moduleScene is a scene with a catalogue of releases in a namespace of its own, and a registry that holds them. The
// program has the rights of its role there, and no others.
type moduleScene struct {
	*scene
	// system is the namespace of the catalogue.
	system string
	// user is the program's name in the audit log.
	user     string
	registry *registry.Fixture
}

// newModuleScene prepares a scene in which the program does not run yet.
func newModuleScene(t *testing.T, flags ...string) moduleScene {
	t.Helper()
	r := registry.ForTest(t, registry.Options{}) // It has to outlive the program.
	system := env.NewNamespace(t)
	s := moduleScene{
		scene: newScene(t, append([]string{"--controllers=modules", "--system-namespace=" + system, "--system-namespace-exclusive"}, flags...)...), system: system, registry: r,
	}
	s.user = s.restrict("modules_role.yaml")
	s.account(deployer)
	s.bind(rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: deployer}, "cluster-admin")
	return s
}

// newRunningModules is newModuleScene with the program started.
func newRunningModules(t *testing.T, flags ...string) moduleScene {
	t.Helper()
	s := newModuleScene(t, flags...)
	s.start()
	return s
}

// patch edits an object as an administrator, whatever version it has by now.
func patch[O client.Object](s moduleScene, obj O, edit func()) {
	s.t.Helper()
	s.amend(obj, edit)
}

// publish pushes a release of the module foo under its version as a tag.
func (s moduleScene) publish(version string, files map[string]string) ocispec.Descriptor {
	s.t.Helper()
	return s.registry.Repository("modules/foo").PushFlux(version, files, nil)
}

// templateChange is how a template differs from the usual one.
type templateChange func(*modulesv1.ModuleTemplateSpec)

// template makes a template of foo in the catalogue, named foo-VERSION-CHANNEL.
func (s moduleScene) template(version, channel string, manifest ocispec.Descriptor, changes ...templateChange) *modulesv1.ModuleTemplate {
	s.t.Helper()
	obj := &modulesv1.ModuleTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.system, Name: strings.TrimSuffix("foo-"+version+"-"+channel, "-")},
		Spec:       modulesv1.ModuleTemplateSpec{ModuleName: "foo", Version: version, Channel: channel, Artifact: s.artifact(version, manifest)},
	}
	for _, change := range changes {
		change(&obj.Spec)
	}
	s.make(obj)
	return obj
}

// artifact is where a template says that a release is.
func (s moduleScene) artifact(version string, manifest ocispec.Descriptor) modulesv1.TemplateArtifact {
	return modulesv1.TemplateArtifact{OCI: &modulesv1.OCIArtifact{
		Repository: s.registry.URL("modules/foo"), Digest: manifest.Digest.String(), Tag: version, Insecure: true,
	}}
}

// release publishes a release and makes a template for it, without a channel.
func (s moduleScene) release(version string, files map[string]string, changes ...templateChange) {
	s.t.Helper()
	s.template(version, "", s.publish(version, files), changes...)
}

// installChange is how an installation differs from the usual one.
type installChange func(*modulesv1.ModuleInstallationSpec)

func byChannel(channel string) installChange {
	return func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Module = modulesv1.ModuleRequest{Name: "foo", Channel: channel}
	}
}

func byVersion(version string) installChange {
	return func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Module = modulesv1.ModuleRequest{Name: "foo", Version: version}
	}
}

func installEvery(interval time.Duration) installChange {
	return func(spec *modulesv1.ModuleInstallationSpec) { spec.Interval = &metav1.Duration{Duration: interval} }
}

// install makes an installation of foo's latest release as the deployer. It is looked at every hour, so that what
// happens sooner happens for a reason; the variable instance is its name.
func (s moduleScene) install(name string, changes ...installChange) {
	s.t.Helper()
	s.make(s.installation(name, changes...))
}

func (s moduleScene) installation(name string, changes ...installChange) *modulesv1.ModuleInstallation {
	obj := &modulesv1.ModuleInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: modulesv1.ModuleInstallationSpec{
			Module: modulesv1.ModuleRequest{Name: "foo", Latest: true}, ServiceAccountName: deployer,
			Interval: &metav1.Duration{Duration: time.Hour}, RetryInterval: &metav1.Duration{Duration: time.Second},
			Config: &modulesv1.InstallationConfig{Substitute: map[string]string{"instance": name}},
		},
	}
	for _, change := range changes {
		change(&obj.Spec)
	}
	return obj
}

func (s moduleScene) get(name string) *modulesv1.ModuleInstallation {
	s.t.Helper()
	obj := &modulesv1.ModuleInstallation{}
	if err := env.Client.Get(s.t.Context(), s.key(name), obj); err != nil {
		s.t.Fatal(err)
	}
	return obj
}

// edit patches an installation.
func (s moduleScene) edit(name string, edit func(*modulesv1.ModuleInstallation)) {
	s.t.Helper()
	obj := &modulesv1.ModuleInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	patch(s, obj, func() { edit(obj) })
}

// change edits the spec of an installation.
func (s moduleScene) change(name string, changes ...installChange) {
	s.t.Helper()
	s.edit(name, func(obj *modulesv1.ModuleInstallation) {
		for _, change := range changes {
			change(&obj.Spec)
		}
	})
}

// remove deletes an installation, and does not wait until it is gone.
func (s moduleScene) remove(name string) {
	s.t.Helper()
	if err := env.Client.Delete(s.t.Context(), s.installation(name)); err != nil {
		s.t.Fatal(err)
	}
}

// reconcile asks for a reconcile, which verifies in full, and waits until it is done, whatever it ended with.
func (s moduleScene) reconcile(name string) {
	s.t.Helper()
	token := rand.String(12)
	s.edit(name, func(obj *modulesv1.ModuleInstallation) {
		metav1.SetMetaDataAnnotation(&obj.ObjectMeta, meta.ReconcileRequestAnnotation, token)
	})
	s.until(name, "the requested reconcile is done", func(obj *modulesv1.ModuleInstallation) bool {
		return obj.Status.LastHandledReconcileAt == token
	})
}

// until waits for the condition and returns the installation as it was then.
func (s moduleScene) until(name, what string, condition func(*modulesv1.ModuleInstallation) bool) *modulesv1.ModuleInstallation {
	s.t.Helper()
	obj := &modulesv1.ModuleInstallation{}
	s.eventually(fmt.Sprintf("%s: %s", name, what), func(ctx context.Context) (bool, string) {
		before := asJSON(obj.Status)
		*obj = modulesv1.ModuleInstallation{}
		if err := env.Client.Get(ctx, s.key(name), obj); err != nil {
			return false, err.Error() + "; before that " + before
		}
		return condition(obj), asJSON(obj.Status)
	})
	return obj
}

// ready waits until the version is installed, healthy, and what the spec leads to.
func (s moduleScene) ready(name, version string) *modulesv1.ModuleInstallation {
	s.t.Helper()
	obj := s.until(name, "ready with "+version, func(obj *modulesv1.ModuleInstallation) bool {
		return isInstalled(obj, version) && conditions.IsTrue(obj, modulesv1.UpToDateCondition)
	})
	for _, good := range []string{modulesv1.ResolvedCondition, modulesv1.AppliedCondition, modulesv1.HealthyCondition} {
		if !conditions.IsTrue(obj, good) {
			s.t.Errorf("%s is ready, and %s is not true: %s", name, good, asJSON(obj.Status.Conditions))
		}
	}
	if obj.Status.Pending != nil {
		s.t.Errorf("%s is up to date, and something is pending: %s", name, asJSON(obj.Status.Pending))
	}
	return obj
}

// held waits until the version is installed and healthy, while another one waits for the reason.
func (s moduleScene) held(name, version, reason, text string) *modulesv1.ModuleInstallation {
	s.t.Helper()
	return s.until(name, fmt.Sprintf("held at %s with %s", version, reason), func(obj *modulesv1.ModuleInstallation) bool {
		upToDate := conditions.Get(obj, modulesv1.UpToDateCondition)
		return isInstalled(obj, version) && upToDate != nil && upToDate.Status == metav1.ConditionFalse && upToDate.Reason == reason &&
			obj.Status.Pending != nil && obj.Status.Pending.Reason == reason && strings.Contains(obj.Status.Pending.Message, text)
	})
}

// failing waits until the condition and Ready are false for the reason, with the text.
func (s moduleScene) failing(name, condition, reason, text string) *modulesv1.ModuleInstallation {
	s.t.Helper()
	return s.until(name, fmt.Sprintf("%s fails with %s and %q", condition, reason, text), func(obj *modulesv1.ModuleInstallation) bool {
		own, ready := conditions.Get(obj, condition), conditions.Get(obj, meta.ReadyCondition)
		return own != nil && own.Status == metav1.ConditionFalse && own.Reason == reason && strings.Contains(own.Message, text) &&
			ready != nil && ready.Status == metav1.ConditionFalse && ready.ObservedGeneration == obj.Generation
	})
}

func isInstalled(obj *modulesv1.ModuleInstallation, version string) bool {
	return conditions.IsReady(obj) && obj.Status.ObservedGeneration == obj.Generation &&
		obj.Status.Current != nil && obj.Status.Current.Version == version
}

// settings is a manifest of a ConfigMap, whose name ends in the installation's.
func settings(name, version string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s-${instance}\ndata:\n  version: %q\n", name, version)
}

// configMap is a ConfigMap in the test's namespace; nil when there is none.
func (s moduleScene) configMap(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	obj := &corev1.ConfigMap{}
	err := env.Client.Get(ctx, s.key(name), obj)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return obj, err
}

// says checks the version in a ConfigMap; "" says that there is none.
func (s moduleScene) says(name, version string) {
	s.t.Helper()
	obj, err := s.configMap(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	if got := versionIn(obj); got != version {
		s.t.Errorf("ConfigMap %s says %q, want %q", name, got, version)
	}
}

func versionIn(obj *corev1.ConfigMap) string {
	if obj == nil {
		return ""
	}
	return obj.Data["version"]
}

// becomes waits until the ConfigMap says the version.
func (s moduleScene) becomes(name, version string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("ConfigMap %s says %q", name, version), func(ctx context.Context) (bool, string) {
		obj, err := s.configMap(ctx, name)
		return err == nil && versionIn(obj) == version, fmt.Sprint(obj, err)
	})
}
