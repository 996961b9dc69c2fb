package config_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/tests/config"
)

// TestTheUIReadsOurKindsAlone: it has no right to anything else, and none to write or to impersonate.
func TestTheUIReadsOurKindsAlone(t *testing.T) {
	t.Parallel()
	view := find[rbacv1.ClusterRole](t, "ClusterRole", "sluice-view").Rules
	role := ofUI[rbacv1.ClusterRole](t, "ClusterRole")
	if len(role.Rules) != len(view) {
		t.Fatalf("%d rules, where those who may see all have %d", len(role.Rules), len(view))
	}
	for i, rule := range role.Rules {
		if !slices.Equal(rule.Verbs, []string{"list", "watch"}) || !slices.Equal(rule.APIGroups, view[i].APIGroups) || !slices.Equal(rule.Resources, view[i].Resources) {
			t.Errorf("rule %v, where those who may see all have %v", rule, view[i])
		}
	}
}

// TestTheUIIsRestricted: beside what the restricted profile asks for, its root is read-only, and what it mounts is its certificate, and
// room for the content of releases, without which there are no plans.
func TestTheUIIsRestricted(t *testing.T) {
	t.Parallel()
	deployment := ofUI[appsv1.Deployment](t, "Deployment")
	pod := deployment.Spec.Template.Spec
	if *deployment.Spec.Replicas != 1 {
		t.Error("logins are in one pod's memory")
	}
	if root := pod.Containers[0].SecurityContext.ReadOnlyRootFilesystem; root == nil || !*root {
		t.Error("the root is not read-only")
	}
	const writable = "/tmp" // The image sets no other folder for temporary files.
	mounts := map[string]corev1.Volume{}
	for _, mount := range pod.Containers[0].VolumeMounts {
		at := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if at < 0 || mount.ReadOnly == (mount.MountPath == writable) {
			t.Fatalf("mount %v", mount)
		}
		mounts[mount.MountPath] = pod.Volumes[at]
	}
	if secret := mounts["/tls"].Secret; len(mounts) != 2 || len(pod.Volumes) != 2 || secret == nil || secret.SecretName != "sluice-ui-tls" {
		t.Errorf("volumes: %v", pod.Volumes)
	}
	if room := mounts[writable].EmptyDir; room == nil || room.SizeLimit == nil || room.SizeLimit.Value() < 4*archive.DefaultMaxBytes {
		t.Errorf("there is no room for four plans' content: %v", room)
	}
}

// TestTheUIHasTheMemoryThatPagesTake: what the API server answers to them, and the processes in which plans are built.
func TestTheUIHasTheMemoryThatPagesTake(t *testing.T) {
	t.Parallel()
	one := ofUI[appsv1.Deployment](t, "Deployment").Spec.Template.Spec.Containers[0]
	at := slices.IndexFunc(one.Env, func(v corev1.EnvVar) bool { return v.Name == "GOMEMLIMIT" })
	if at < 0 {
		t.Fatal("its heap has no limit")
	}
	heap := resource.MustParse(strings.TrimSuffix(one.Env[at].Value, "B"))
	const answers, workers = 7 * 160 << 20, 4 * 256 << 20
	if most := one.Resources.Limits.Memory().Value(); heap.Value() < answers || most < heap.Value()+workers {
		t.Errorf("it has %d bytes, %s of them for its heap", most, heap.String())
	}
}

// TestTheUIReachesTheAPIServerAlone: what it knows of people is not to be sent elsewhere, in questions for names either.
func TestTheUIReachesTheAPIServerAlone(t *testing.T) {
	t.Parallel()
	policy := ofUI[networkingv1.NetworkPolicy](t, "NetworkPolicy")
	if !slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) || !maps.Equal(policy.Spec.PodSelector.MatchLabels, ofUI[appsv1.Deployment](t, "Deployment").Spec.Template.Labels) {
		t.Errorf("it bounds what goes out of others: %v", policy.Spec)
	}
	var out []string
	for _, rule := range policy.Spec.Egress {
		for _, port := range rule.Ports {
			out = append(out, string(*port.Protocol)+" "+port.Port.String())
		}
	}
	if !slices.Equal(out, []string{"TCP 443", "TCP 6443"}) {
		t.Errorf("it may reach %v", out)
	}
}

// TestBehindAProxyThereIsNoCertificate: by the patch in the docs the pod needs none, and is asked for its health as it is served.
func TestBehindAProxyThereIsNoCertificate(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/ui.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "```yaml behind-proxy\n")
	example, _, ends := strings.Cut(after, "```")
	if !found || !ends {
		t.Fatal("docs/ui.md has no kustomization")
	}
	ui, err := filepath.Abs("../../config/ui")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if ui, err = filepath.Rel(dir, ui); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(strings.Replace(example, "config/ui", ui, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := config.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(objects, func(object *unstructured.Unstructured) bool { return object.GetKind() == "Deployment" })
	pod := as[appsv1.Deployment](t, objects[at]).Spec.Template.Spec
	one := pod.Containers[0]
	for _, probe := range []*corev1.Probe{one.LivenessProbe, one.ReadinessProbe} {
		if probe.HTTPGet.Scheme != corev1.URISchemeHTTP {
			t.Errorf("it is asked for its health by %s", probe.HTTPGet.Scheme)
		}
	}
	if len(pod.Volumes) != 1 || pod.Volumes[0].Secret != nil || len(one.VolumeMounts) != 1 || one.VolumeMounts[0].Name != pod.Volumes[0].Name || !slices.Contains(one.Args, "--behind-proxy") {
		t.Errorf("it has %v, %v, %v", pod.Volumes, one.VolumeMounts, one.Args)
	}
}

// ofUI reads the one object of the kind in config/ui.
func ofUI[T any](t *testing.T, kind string) T {
	t.Helper()
	objects := build(t, "ui")
	at := slices.IndexFunc(objects, func(object *unstructured.Unstructured) bool { return object.GetKind() == kind })
	if at < 0 {
		t.Fatalf("config/ui has no %s", kind)
	}
	return as[T](t, objects[at])
}
