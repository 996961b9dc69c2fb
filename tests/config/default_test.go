package config_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"sluice.dev/sluice/tests/config"
)

const namespace = "sluice-system"

func TestDefaultHoldsEverything(t *testing.T) {
	t.Parallel()
	want := []string{
		"Namespace/sluice-system",
		"ValidatingAdmissionPolicy/sluice-approve-controllerrevisions",
		"ValidatingAdmissionPolicy/sluice-approve-packagerevisions",
		"ValidatingAdmissionPolicy/sluice-approve-packagevariants",
		"ValidatingAdmissionPolicy/sluice-approve-packagevariantsets",
		"ValidatingAdmissionPolicyBinding/sluice-approve-controllerrevisions",
		"ValidatingAdmissionPolicyBinding/sluice-approve-packagerevisions",
		"ValidatingAdmissionPolicyBinding/sluice-approve-packagevariants",
		"ValidatingAdmissionPolicyBinding/sluice-approve-packagevariantsets",
		"CustomResourceDefinition/artifactgenerators.source.extensions.fluxcd.io",
		"CustomResourceDefinition/buckets.source.toolkit.fluxcd.io",
		"CustomResourceDefinition/externalartifacts.source.toolkit.fluxcd.io",
		"CustomResourceDefinition/gitrepositories.source.toolkit.fluxcd.io",
		"CustomResourceDefinition/helmcharts.source.toolkit.fluxcd.io",
		"CustomResourceDefinition/helmrepositories.source.toolkit.fluxcd.io",
		"CustomResourceDefinition/inventories.modules.sluice.dev",
		"CustomResourceDefinition/moduleinstallations.modules.sluice.dev",
		"CustomResourceDefinition/modules.modules.sluice.dev",
		"CustomResourceDefinition/moduletemplates.modules.sluice.dev",
		"CustomResourceDefinition/ocirepositories.source.toolkit.fluxcd.io",
		"CustomResourceDefinition/packagerevisions.packages.sluice.dev",
		"CustomResourceDefinition/packagevariants.packages.sluice.dev",
		"CustomResourceDefinition/packagevariantsets.packages.sluice.dev",
		"CustomResourceDefinition/repositories.packages.sluice.dev",
		"ServiceAccount/sluice",
		"Role/sluice-leader-election",
		"Role/sluice-target-fields",
		"ClusterRole/sluice-approve",
		"ClusterRole/sluice-artifacts",
		"ClusterRole/sluice-catalogue",
		"ClusterRole/sluice-edit",
		"ClusterRole/sluice-modules",
		"ClusterRole/sluice-operate",
		"ClusterRole/sluice-packages",
		"ClusterRole/sluice-source",
		"ClusterRole/sluice-view",
		"RoleBinding/sluice-leader-election",
		"RoleBinding/sluice-target-fields",
		"ClusterRoleBinding/sluice-modules",
		"ClusterRoleBinding/sluice-packages",
		"ClusterRoleBinding/sluice-source",
		"Service/source-controller",
		"NetworkPolicy/default-deny",
		"NetworkPolicy/sluice",
		"Deployment/sluice",
	}
	var got []string
	for _, object := range build(t, "default") {
		got = append(got, object.GetKind()+"/"+object.GetName())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects of config/default in the order of applying (-want +got):\n%s", diff)
	}
}

func TestNamespacedObjectsAreInTheNamespace(t *testing.T) {
	t.Parallel()
	cluster := []string{
		"Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	}
	for _, object := range build(t, "default") {
		want := namespace
		if slices.Contains(cluster, object.GetKind()) {
			want = ""
		}
		if got := object.GetNamespace(); got != want {
			t.Errorf("%s %s: namespace: want %q, got %q", object.GetKind(), object.GetName(), want, got)
		}
	}
}

func TestNamespaceEnforcesTheRestrictedProfile(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"enforce", "warn", "audit"} {
		key := "pod-security.kubernetes.io/" + mode
		if got := find[corev1.Namespace](t, "Namespace", namespace).Labels[key]; got != "restricted" {
			t.Errorf("label %s: got %q", key, got)
		}
	}
}

// TestPodIsRestricted asks for all that the restricted profile of the pod security standards asks for, and for a
// read-only root.
func TestPodIsRestricted(t *testing.T) {
	t.Parallel()
	pod := find[appsv1.Deployment](t, "Deployment", "sluice").Spec.Template.Spec
	if pod.HostNetwork || pod.HostPID || pod.HostIPC {
		t.Error("the pod shares the node's namespaces")
	}
	for _, volume := range pod.Volumes {
		if volume.EmptyDir == nil {
			t.Errorf("volume %s is not the pod's own", volume.Name)
		}
	}
	security := pod.SecurityContext
	if security == nil || security.RunAsNonRoot == nil || !*security.RunAsNonRoot ||
		security.RunAsUser == nil || *security.RunAsUser != 65532 || security.FSGroup == nil || *security.FSGroup != 1337 ||
		security.SeccompProfile == nil || security.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("security context of the pod: got %+v", security)
	}
	if len(pod.InitContainers) != 0 || len(pod.Containers) != 1 {
		t.Fatalf("the pod has one container: got %d and %d init containers", len(pod.Containers), len(pod.InitContainers))
	}
	own := pod.Containers[0].SecurityContext
	no, yes := false, true
	want := &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no,
		ReadOnlyRootFilesystem:   &yes,
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	if diff := cmp.Diff(want, own); diff != "" {
		t.Errorf("security context of the container (-want +got):\n%s", diff)
	}
}

func TestDeploymentKeepsOneWriter(t *testing.T) {
	t.Parallel()
	spec := find[appsv1.Deployment](t, "Deployment", "sluice").Spec
	if spec.Replicas == nil || *spec.Replicas != 1 || spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("two pods must not write at once: got %v replicas, strategy %q", spec.Replicas, spec.Strategy.Type)
	}
	if grace := spec.Template.Spec.TerminationGracePeriodSeconds; grace == nil || *grace != 30 {
		t.Errorf("time to stop: got %v", grace)
	}
}

func TestContainerIsServedAndProbed(t *testing.T) {
	t.Parallel()
	container := find[appsv1.Deployment](t, "Deployment", "sluice").Spec.Template.Spec.Containers[0]
	ports := map[string]int32{}
	for _, port := range container.Ports {
		ports[port.Name] = port.ContainerPort
	}
	if diff := cmp.Diff(map[string]int32{"http": 9090, "http-prom": 8080, "healthz": 9440}, ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	for path, probe := range map[string]*corev1.Probe{"/healthz": container.LivenessProbe, "/readyz": container.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.String() != "healthz" {
			t.Errorf("probe of %s: got %v", path, probe)
		}
	}
	mounts := map[string]bool{}
	for _, mount := range container.VolumeMounts {
		mounts[mount.MountPath] = !mount.ReadOnly
	}
	if diff := cmp.Diff(map[string]bool{"/data": true, "/tmp": true, "/cache": true}, mounts); diff != "" {
		t.Errorf("writable folders (-want +got):\n%s", diff)
	}
	if container.Resources.Limits.Memory().IsZero() || container.Resources.Requests.Memory().IsZero() {
		t.Error("the container's memory is neither asked for nor bounded")
	}
}

// TestArtifactsAreReachable follows the advertised address: to the service, its pods, and their port.
func TestArtifactsAreReachable(t *testing.T) {
	t.Parallel()
	deployment := find[appsv1.Deployment](t, "Deployment", "sluice")
	service := find[corev1.Service](t, "Service", "source-controller")
	pods := deployment.Spec.Template.Labels
	for key, value := range service.Spec.Selector {
		if pods[key] != value {
			t.Errorf("the service selects %s=%s, the pods have %q", key, value, pods[key])
		}
	}
	if ports := service.Spec.Ports; len(ports) != 1 || ports[0].Port != 80 || ports[0].TargetPort.String() != "http" {
		t.Errorf("port of the service: got %v", ports)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	advertised := "--storage-adv-addr=" + service.Name + ".$(RUNTIME_NAMESPACE).svc.cluster.local."
	if !slices.Contains(container.Args, advertised) {
		t.Errorf("arguments %q do not advertise the service: want %q", container.Args, advertised)
	}
	own := func(env corev1.EnvVar) bool {
		return env.Name == "RUNTIME_NAMESPACE" && env.ValueFrom != nil && env.ValueFrom.FieldRef != nil &&
			env.ValueFrom.FieldRef.FieldPath == "metadata.namespace"
	}
	if !slices.ContainsFunc(container.Env, own) {
		t.Errorf("RUNTIME_NAMESPACE is not the pod's namespace: got %v", container.Env)
	}
}

func TestNetworkIsClosedButForWhatIsNeeded(t *testing.T) {
	t.Parallel()
	both := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	deny := find[networkingv1.NetworkPolicy](t, "NetworkPolicy", "default-deny").Spec
	if diff := cmp.Diff(networkingv1.NetworkPolicySpec{PolicyTypes: both}, deny); diff != "" {
		t.Errorf("the default (-want +got):\n%s", diff)
	}
	allow := find[networkingv1.NetworkPolicy](t, "NetworkPolicy", "sluice").Spec
	if diff := cmp.Diff(both, allow.PolicyTypes); diff != "" {
		t.Errorf("directions (-want +got):\n%s", diff)
	}
	var in, out []string
	for _, rule := range allow.Ingress {
		if len(rule.From) == 0 || len(rule.Ports) == 0 {
			t.Errorf("a rule lets in everyone, or on every port: %+v", rule)
		}
		for _, port := range rule.Ports {
			in = append(in, port.Port.String())
		}
	}
	for _, rule := range allow.Egress {
		if len(rule.Ports) == 0 {
			t.Errorf("a rule lets out on every port: %+v", rule)
		}
		for _, port := range rule.Ports {
			out = append(out, string(*port.Protocol)+"/"+port.Port.String())
		}
	}
	if got, want := strings.Join(in, " "), "http http-prom"; got != want {
		t.Errorf("ports in: want %s, got %s", want, got)
	}
	if got, want := strings.Join(out, " "), "UDP/53 TCP/53 TCP/443 TCP/6443 TCP/80 TCP/22 TCP/9090"; got != want {
		t.Errorf("ports out: want %s, got %s", want, got)
	}
}

// kustomizations are what was built, or the mistakes, by name: to build one takes seconds, and most tests are about the same.
var kustomizations sync.Map

func build(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	once, _ := kustomizations.LoadOrStore(name, sync.OnceValues(func() ([]*unstructured.Unstructured, error) {
		return config.Build("../../config/" + name)
	}))
	built, ok := once.(func() ([]*unstructured.Unstructured, error))
	if !ok {
		t.Fatalf("%T", once)
	}
	objects, err := built()
	if err != nil {
		t.Fatal(err)
	}
	copies := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		copies = append(copies, object.DeepCopy())
	}
	return copies
}

// find reads an object of config/default into its type; a field that the type does not have is an error.
func find[T any](t *testing.T, kind, name string) T {
	t.Helper()
	objects := build(t, "default")
	at := slices.IndexFunc(objects, func(object *unstructured.Unstructured) bool {
		return object.GetKind() == kind && object.GetName() == name
	})
	if at < 0 {
		t.Fatalf("config/default has no %s %s", kind, name)
	}
	return as[T](t, objects[at])
}

func as[T any](t *testing.T, object *unstructured.Unstructured) T {
	t.Helper()
	var typed T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &typed, true); err != nil {
		t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
	return typed
}
