package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/config"
	"sluice.dev/sluice/tests/docs"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// TestOverlaysRun installs every overlay that is shipped, and every one that a page shows, each on a cluster of its own,
// and runs the program with the arguments, the environment and the rights that it has there.
func TestOverlaysRun(t *testing.T) {
	t.Parallel()
	for name, folder := range overlays(t) {
		t.Run(name, func(t *testing.T) {
			o := newOverlay(t, folder)
			o.start()
			o.serves()
			if of(o.objects, "CustomResourceDefinition", "moduleinstallations.modules.sluice.dev") != nil {
				o.installs()
			}
			if log := o.manager.Log(); strings.Contains(log, "forbidden") {
				t.Errorf("a right is missing: %s", log)
			}
		})
	}
}

// overlays are the folders of all kustomizations that install the program, by where they come from.
func overlays(t *testing.T) map[string]string {
	t.Helper()
	top := t.TempDir()
	shipped := filepath.Join(top, "config")
	if err := os.CopyFS(shipped, os.DirFS(filepath.Join(testenv.Root(), "config"))); err != nil {
		t.Fatal(err)
	}
	kustomizations, err := filepath.Glob(filepath.Join(shipped, "*", "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, file := range kustomizations {
		if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "kind: Component") {
			continue // A page shows what it is a part of.
		}
		folder := filepath.Dir(file)
		objects, err := config.Build(folder)
		if err != nil {
			t.Fatal(err)
		}
		if of(objects, "Deployment", "sluice") != nil && of(objects, "ServiceAccount", "sluice") != nil {
			found["config/"+filepath.Base(folder)] = folder
		}
	}
	if len(found) < 3 {
		t.Fatalf("config has the overlays %v alone", found)
	}
	pages, err := docs.Pages(testenv.Root())
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		for _, block := range page.Blocks("yaml kustomization") {
			name := fmt.Sprintf("%s:%d", page.Path, block.Line)
			folder := filepath.Join(top, fmt.Sprint(len(found)))
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(block.Text), 0o600); err != nil {
				t.Fatal(err)
			}
			found[name] = folder
		}
	}
	return found
}

// overlay is one that is installed.
type overlay struct {
	t          *testing.T
	objects    []*unstructured.Unstructured
	cluster    *testenv.Env
	deployment appsv1.Deployment
	upstream   *upstream.Fixture
	manager    *testenv.Manager
}

// newOverlay applies all that the overlay builds. One without CRDs finds those of Flux's sources, as in Flux's namespace.
func newOverlay(t *testing.T, folder string) *overlay {
	t.Helper()
	objects, err := config.Build(folder)
	if err != nil {
		t.Fatal(err)
	}
	o := &overlay{t: t, objects: objects, upstream: upstream.ForTest(t)}
	kinds := o.kinds()
	if len(kinds) == 0 {
		for _, name := range []string{"gitrepositories", "ocirepositories", "buckets", "helmrepositories", "helmcharts"} {
			kinds = append(kinds, filepath.Join(testenv.Root(), "config", "crd", "bases", "source.toolkit.fluxcd.io_"+name+".yaml"))
		}
	}
	if o.cluster, err = testenv.Start(testenv.Options{CRDs: kinds}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.cluster.Stop() })
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(of(o.objects, "Deployment", "sluice").Object, &o.deployment); err != nil {
		t.Fatal(err)
	}
	o.make(testenv.Namespace(o.deployment.Namespace))
	for _, object := range objects {
		err := o.cluster.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"), client.ForceOwnership)
		if err != nil {
			t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	return o
}

// kinds writes the overlay's CRDs to files, for a control plane to start with.
func (o *overlay) kinds() []string {
	o.t.Helper()
	var files []string
	for _, object := range o.objects {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			o.t.Fatal(err)
		}
		files = append(files, filepath.Join(o.t.TempDir(), object.GetName()+".yaml"))
		if err := os.WriteFile(files[len(files)-1], text, 0o600); err != nil {
			o.t.Fatal(err)
		}
	}
	return files
}

// of finds an object; nil where there is none.
func of(objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	at := slices.IndexFunc(objects, func(object *unstructured.Unstructured) bool {
		return object.GetKind() == kind && object.GetName() == name
	})
	if at < 0 {
		return nil
	}
	return objects[at]
}

func (o *overlay) make(objects ...client.Object) {
	o.t.Helper()
	for _, object := range objects {
		if err := o.cluster.Client.Create(o.t.Context(), object); err != nil {
			o.t.Fatal(err)
		}
	}
}

// start runs the pod's container, on ports and in a folder of the test's, until it is ready.
func (o *overlay) start() {
	o.t.Helper()
	pod, namespace := o.deployment.Spec.Template.Spec, o.deployment.Namespace
	kubeconfig, err := o.cluster.KubeconfigAs(
		"system:serviceaccount:"+namespace+":"+pod.ServiceAccountName, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	if err != nil {
		o.t.Fatal(err)
	}
	container := pod.Containers[0]
	var flags []string
	for _, arg := range container.Args {
		flags = append(flags, strings.ReplaceAll(arg, "$(RUNTIME_NAMESPACE)", namespace))
	}
	o.manager, err = testenv.StartManager(testenv.ManagerOptions{
		Binary: program(o.t), Kubeconfig: kubeconfig, Storage: o.t.TempDir(), Env: o.environment(container),
		Flags: append(flags, "--storage-path="+o.t.TempDir(), "--git-cache-path="+o.t.TempDir(), "--storage-addr=127.0.0.1:0", "--storage-adv-addr=", "--health-addr=127.0.0.1:0"),
	})
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() {
		if err := o.manager.Stop(); err != nil {
			o.t.Error(err)
		}
	})
	o.eventually("the process is ready", func(ctx context.Context) (bool, string) {
		got, err := endpoint(ctx, o.manager, "/readyz")
		return err == nil && got.status == http.StatusOK, fmt.Sprint(got.status, err)
	})
}

// environment is what the kubelet would set.
func (o *overlay) environment(container corev1.Container) []string {
	o.t.Helper()
	var set []string
	for _, variable := range container.Env {
		value, from := variable.Value, variable.ValueFrom
		switch {
		case from == nil:
		case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.namespace":
			value = o.deployment.Namespace
		case from.ResourceFieldRef != nil && from.ResourceFieldRef.Resource == "limits.memory":
			value = fmt.Sprint(container.Resources.Limits.Memory().Value())
		default:
			o.t.Fatalf("variable %s comes from %v", variable.Name, from)
		}
		set = append(set, variable.Name+"="+value)
	}
	return set
}

// eventually waits for the condition, but not for a process that has ended.
func (o *overlay) eventually(what string, condition func(context.Context) (bool, string)) {
	o.t.Helper()
	testenv.Eventually(o.t, what, func(ctx context.Context) (bool, string) {
		select {
		case <-o.manager.Done():
			o.t.Fatalf("%s: the process has ended: %s", what, tail(o.manager.Log(), 10))
		default:
		}
		ok, last := condition(ctx)
		return ok, last + "; log: " + tail(o.manager.Log(), 5)
	})
}

// serves makes a source that needs all rights of sources, and waits for its artifact and its event.
func (o *overlay) serves() {
	o.t.Helper()
	o.upstream.Repository("app").Commit("main", "First", oneFile("replicas: 1\n"))
	obj := &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app", Labels: map[string]string{"sharding.fluxcd.io/key": "sluice"}},
		Spec: sourcev1.GitRepositorySpec{
			URL: o.upstream.HTTP(upstream.HTTPOptions{}).URL("app"), Interval: metav1.Duration{Duration: time.Hour},
			Reference: &sourcev1.GitRepositoryRef{Branch: "main"}, SecretRef: &meta.LocalObjectReference{Name: "login"},
		},
	}
	o.make(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "login"},
		StringData: map[string]string{"username": "ada", "password": "of-no-use"},
	}, obj)
	o.ready(obj)
	o.eventually("an event tells of the artifact", func(ctx context.Context) (bool, string) {
		var list corev1.EventList
		err := o.cluster.Client.List(ctx, &list, client.InNamespace("default"))
		return slices.ContainsFunc(list.Items, func(event corev1.Event) bool { return event.InvolvedObject.UID == obj.UID }), fmt.Sprint(err)
	})
}

// installs puts a release into the cluster as an account of its own.
func (o *overlay) installs() {
	o.t.Helper()
	commit := o.upstream.Repository("foo").Commit("main", "1.0.0", under("release", map[string]string{"settings.yaml": settings("settings", "1.0.0")}))
	url := o.upstream.HTTP(upstream.HTTPOptions{}).URL("foo")
	installed := &modulesv1.ModuleInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "foo"},
		Spec: modulesv1.ModuleInstallationSpec{
			Module: modulesv1.ModuleRequest{Name: "foo", Version: "1.0.0"}, ServiceAccountName: deployer,
			Config: &modulesv1.InstallationConfig{Substitute: map[string]string{"instance": "foo"}},
		},
	}
	o.make(
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: deployer}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: deployer},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: deployer}},
		},
		&modulesv1.ModuleTemplate{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.deployment.Namespace, Name: "foo-1"},
			Spec: modulesv1.ModuleTemplateSpec{
				ModuleName: "foo", Version: "1.0.0", Artifact: fromGit(modulesv1.GitArtifact{URL: url, Commit: commit}, "release"),
			},
		},
		installed,
	)
	o.ready(installed)
}

// ready waits until the object is.
func (o *overlay) ready(obj interface {
	client.Object
	conditions.Getter
},
) {
	o.t.Helper()
	o.eventually(obj.GetName()+" is ready", func(ctx context.Context) (bool, string) {
		err := o.cluster.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		return err == nil && conditions.IsReady(obj), fmt.Sprint(err, asJSON(obj.GetConditions()))
	})
}
