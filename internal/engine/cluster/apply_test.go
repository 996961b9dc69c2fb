package cluster_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/engine/cluster"
)

func TestApplyIsOneCallAndSaysWhatItDid(t *testing.T) {
	t.Parallel()
	client, count := admin(t)
	namespace := env.NewNamespace(t)
	var created, same, changed cluster.Applied
	one := map[string]int{"apply": 1}
	count.wantCalls(t, one, func() {
		created = apply(t, client, configMap(t, namespace, "me", "1"), cluster.ApplyOptions{Manager: manager})
	})
	if !created.Created || created.UID == "" || created.ResourceVersion == "" || created.Fingerprint == "" {
		t.Errorf("a new object: %+v", created)
	}
	count.wantCalls(t, one, func() {
		same = apply(t, client, configMap(t, namespace, "me", "1"), cluster.ApplyOptions{Manager: manager})
	})
	want := created
	want.Created = false
	if diff := cmp.Diff(want, same); diff != "" {
		t.Errorf("nothing changed (-want +got):\n%s", diff)
	}
	edited := configMap(t, namespace, "me", "1")
	if err := unstructured.SetNestedField(edited.Object, "x", "data", "more"); err != nil {
		t.Fatal(err)
	}
	count.wantCalls(t, one, func() {
		changed = apply(t, client, edited, cluster.ApplyOptions{Manager: manager})
	})
	if changed.Created || changed.UID != created.UID || changed.Fingerprint == created.Fingerprint {
		t.Errorf("a changed object: %+v", changed)
	}
}

func TestStatusIsNoChange(t *testing.T) {
	t.Parallel()
	subject, _ := admin(t)
	manifest := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: subject, namespace: %s}, spec: {selector: {matchLabels: {a: b}},
		template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`, env.NewNamespace(t))
	before := apply(t, subject, manifest, cluster.ApplyOptions{Manager: manager})
	live := manifest.DeepCopy()
	body := []byte(`{"status":{"replicas":3,"observedGeneration":1}}`)
	if err := env.Client.Status().Patch(t.Context(), live, client.RawPatch(types.MergePatchType, body)); err != nil {
		t.Fatal(err)
	}
	after := apply(t, subject, manifest, cluster.ApplyOptions{Manager: manager})
	if after.Fingerprint != before.Fingerprint || after.Generation != before.Generation || after.ResourceVersion == before.ResourceVersion {
		t.Errorf("another resourceVersion that is due to a status counts as a change: before %+v, after %+v", before, after)
	}
}

func TestConflictNamesFieldsAndManagers(t *testing.T) {
	t.Parallel()
	subject, _ := admin(t)
	namespace := env.NewNamespace(t)
	apply(t, subject, configMap(t, namespace, "me", "1"), cluster.ApplyOptions{Manager: manager})
	theirs := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: subject, namespace: %s}, data: {key: "2"}}`, namespace)
	taken := apply(t, subject, theirs, cluster.ApplyOptions{Manager: "kubectl", Force: true})

	_, err := subject.Apply(t.Context(), configMap(t, namespace, "me", "1"), cluster.ApplyOptions{Manager: manager})
	var conflict *cluster.ConflictError
	if !errors.As(err, &conflict) || !errors.Is(err, cluster.ErrConflict) {
		t.Fatalf("want a conflict, got %v", err)
	}
	if diff := cmp.Diff([]cluster.Field{{Path: ".data.key", Manager: "kubectl"}}, conflict.Fields); diff != "" || conflict.Owner != "" {
		t.Errorf("owner %q, fields (-want +got):\n%s", conflict.Owner, diff)
	}
	wantWords(t, err, "apply ConfigMap "+namespace+"/subject: other managers hold .data.key (\"kubectl\")")

	healed := apply(t, subject, configMap(t, namespace, "me", "1"), cluster.ApplyOptions{Manager: manager, Force: true})
	if healed.ResourceVersion == taken.ResourceVersion {
		t.Errorf("a forced apply that takes a field back is a change: %+v", healed)
	}
}

func TestConflictOnTheLabelIsAnotherOwner(t *testing.T) {
	t.Parallel()
	subject, _ := admin(t)
	namespace := env.NewNamespace(t)
	apply(t, subject, configMap(t, namespace, "me", "1"), cluster.ApplyOptions{Manager: manager})
	// Every other value is equal.
	_, err := subject.Apply(t.Context(), configMap(t, namespace, "them", "1"), cluster.ApplyOptions{Manager: other})
	var conflict *cluster.ConflictError
	if !errors.As(err, &conflict) || conflict.Owner != manager {
		t.Fatalf("want a conflict with %s, got %v", manager, err)
	}
	wantWords(t, err, "it belongs to another owner: \""+manager+"\" holds the label "+cluster.PartOf)
}

func TestApplyPinnedToAnotherLife(t *testing.T) {
	t.Parallel()
	subject, _ := admin(t)
	namespace := env.NewNamespace(t)
	pinned := configMap(t, namespace, "me", "1")
	pinned.SetUID("00000000-0000-0000-0000-000000000000")
	_, err := subject.Apply(t.Context(), pinned, cluster.ApplyOptions{Manager: manager})
	if !errors.Is(err, cluster.ErrChanged) {
		t.Errorf("a uid for an object that is not there: want ErrChanged, got %v", err)
	}
	applied := apply(t, subject, configMap(t, namespace, "me", "1"), cluster.ApplyOptions{Manager: manager})
	if _, err := subject.Apply(t.Context(), pinned, cluster.ApplyOptions{Manager: manager}); !errors.Is(err, cluster.ErrChanged) {
		t.Errorf("another object's uid: want ErrChanged, got %v", err)
	}
	pinned.SetUID(applied.UID)
	pinned.SetResourceVersion("1")
	if _, err := subject.Apply(t.Context(), pinned, cluster.ApplyOptions{Manager: manager}); !errors.Is(err, cluster.ErrChanged) {
		t.Errorf("a stale resourceVersion: want ErrChanged, got %v", err)
	}
	plain := configMap(t, namespace, "me", "2")
	stale := cluster.ApplyOptions{Manager: manager, Force: true, Only: cluster.Version{UID: applied.UID, ResourceVersion: "1"}}
	if _, err := subject.Apply(t.Context(), plain, stale); !errors.Is(err, cluster.ErrChanged) {
		t.Errorf("only a stale version: want ErrChanged, got %v", err)
	}
	stale.Only.ResourceVersion = applied.ResourceVersion
	if changed := apply(t, subject, plain, stale); changed.ResourceVersion == applied.ResourceVersion || plain.GetUID() != "" {
		t.Errorf("only the present version: %+v; the object given: %v", changed, plain)
	}
}

func TestCreateNeverOverwrites(t *testing.T) {
	t.Parallel()
	subject, count := admin(t)
	namespace := env.NewNamespace(t)
	count.wantCalls(t, map[string]int{"create": 2}, func() {
		if made, err := subject.Create(t.Context(), configMap(t, namespace, "me", "1"), manager); err != nil || !made.Created || made.UID == "" {
			t.Errorf("create: %+v, %v", made, err)
		}
		if _, err := subject.Create(t.Context(), configMap(t, namespace, "me", "2"), manager); !errors.Is(err, cluster.ErrExists) {
			t.Errorf("want ErrExists, got %v", err)
		}
	})
}

func TestImmutableFields(t *testing.T) {
	t.Parallel()
	subject, _ := admin(t)
	cases := map[string]struct {
		reason, before, after string
		want                  []string
	}{
		"selector": {
			reason: "the API server says that the field is immutable",
			before: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: subject, namespace: NS}, spec: {selector: {matchLabels: {a: b}},
				template: {metadata: {labels: {a: b, c: d}}, spec: {containers: [{name: c, image: i}]}}}}`,
			after: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: subject, namespace: NS}, spec: {selector: {matchLabels: {c: d}},
				template: {metadata: {labels: {a: b, c: d}}, spec: {containers: [{name: c, image: i}]}}}}`,
			want: []string{"spec.selector"},
		},
		"clusterIP": {
			reason: "an address may not change once set",
			before: `{apiVersion: v1, kind: Service, metadata: {name: subject, namespace: NS}, spec: {ports: [{port: 1}]}}`,
			after:  `{apiVersion: v1, kind: Service, metadata: {name: subject, namespace: NS}, spec: {clusterIP: None, ports: [{port: 1}]}}`,
			want:   []string{"spec.clusterIPs[0]"},
		},
		"statefulset": {
			reason: "updates to other fields are forbidden",
			before: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: subject, namespace: NS}, spec: {serviceName: a, selector: {matchLabels: {a: b}},
				template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`,
			after: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: subject, namespace: NS}, spec: {serviceName: b, selector: {matchLabels: {a: b}},
				template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`,
			want: []string{"spec"},
		},
		"roleRef": {
			reason: "a binding's role cannot change",
			before: `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: subject, namespace: NS}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}`,
			after:  `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: subject, namespace: NS}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}}`,
			want:   []string{"roleRef"},
		},
		"frozen": {
			reason: "somebody has frozen the ConfigMap",
			before: `{apiVersion: v1, kind: ConfigMap, metadata: {name: subject, namespace: NS}, immutable: true, data: {a: b}}`,
			after:  `{apiVersion: v1, kind: ConfigMap, metadata: {name: subject, namespace: NS}, immutable: true, data: {a: c}}`,
			want:   []string{"data"},
		},
		"secret": {
			reason: "a Secret's type cannot change",
			before: `{apiVersion: v1, kind: Secret, metadata: {name: subject, namespace: NS}, type: Opaque}`,
			after:  `{apiVersion: v1, kind: Secret, metadata: {name: subject, namespace: NS}, type: example.com/other}`,
			want:   []string{"type"},
		},
		"alsowrong": {
			reason: "what is also wrong in another way would not survive being made anew",
			before: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: subject, namespace: NS}, spec: {selector: {matchLabels: {a: b}},
				template: {metadata: {labels: {a: b, c: d}}, spec: {containers: [{name: c, image: i}]}}}}`,
			after: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: subject, namespace: NS}, spec: {selector: {matchLabels: {c: d}},
				template: {metadata: {labels: {a: b, c: d}}, spec: {containers: [{name: C, image: i}]}}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := env.NewNamespace(t)
			apply(t, subject, object(t, "%s", strings.ReplaceAll(tc.before, "NS", namespace)), cluster.ApplyOptions{Manager: manager})
			_, err := subject.Apply(t.Context(), object(t, "%s", strings.ReplaceAll(tc.after, "NS", namespace)), cluster.ApplyOptions{Manager: manager, Force: true})
			if tc.want == nil {
				if !errors.Is(err, cluster.ErrInvalid) || errors.Is(err, cluster.ErrImmutable) {
					t.Errorf("%s: want ErrInvalid, got %v", tc.reason, err)
				}
				return
			}
			if !errors.Is(err, cluster.ErrImmutable) {
				t.Fatalf("%s: want ErrImmutable, got %v", tc.reason, err)
			}
			if want := "it cannot be changed in place: " + strings.Join(tc.want, ", "); !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s: want %q, got %v", tc.reason, want, err)
			}
		})
	}
}

func TestWrongObjects(t *testing.T) {
	t.Parallel()
	subject, _ := admin(t)
	namespace := env.NewNamespace(t)
	cases := map[string]struct {
		reason, body string
		want         error
		words        string
	}{
		"field": {
			"the API server answers 500 without a reason for a field that it does not know", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: NS}, colour: red}`,
			cluster.ErrInvalid, ".colour: field not declared in schema",
		},
		"value": {
			"a value that validation refuses", `{apiVersion: v1, kind: Service, metadata: {name: a, namespace: NS}, spec: {ports: [{port: 99999}]}}`,
			cluster.ErrInvalid, "spec.ports[0].port: Invalid value …: must be between 1 and 65535",
		},
		"choice": {
			"a value that is none of those that there are, and may have come from a Secret", `{apiVersion: v1, kind: Service, metadata: {name: a, namespace: NS}, spec: {type: hunter2, ports: [{port: 1}]}}`,
			cluster.ErrInvalid, `spec.type: Unsupported value …: supported values: "ClusterIP"`,
		},
		"twice": {
			"a value that is there twice", `{apiVersion: v1, kind: Service, metadata: {name: a, namespace: NS}, spec: {ports: [{name: hunter2, port: 1}, {name: hunter2, port: 2}]}}`,
			cluster.ErrInvalid, "spec.ports[1].name: Duplicate value …",
		},
		"unscoped": {
			"without a namespace the path would be that of all namespaces", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`,
			cluster.ErrInvalid, "the object names none",
		},
		"overscoped": {
			"the API server would take it for another path", `{apiVersion: v1, kind: Namespace, metadata: {name: a, namespace: NS}}`,
			cluster.ErrInvalid, "the object names one",
		},
		"climbing": {
			"a name must not lead to another path", `{apiVersion: v1, kind: ConfigMap, metadata: {name: ../../secrets/x, namespace: NS}}`,
			cluster.ErrInvalid, "cannot stand in a path",
		},
		"namespace": {
			"the namespace is not there", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: nowhere}}`,
			cluster.ErrNamespaceMissing, "the namespace nowhere does not exist",
		},
		"kind": {
			"the kind is not there", `{apiVersion: example.com/v1, kind: Unheard, metadata: {name: a, namespace: NS}}`,
			cluster.ErrNoKind, "does not serve Unheard.example.com in version v1",
		},
		"secret": {
			"the API server repeats what is wrong, but a Secret's value is to be seen nowhere", `{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: NS}, data: {password: {hunter2: 12345}}}`,
			cluster.ErrInvalid, ".data.password",
		},
		"number": {
			"a Secret's value of another type", `{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: NS}, data: {password: 12345}}`,
			cluster.ErrInvalid, ".data.password",
		},
		"encoding": {
			"a Secret's value that is no base64", `{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: NS}, data: {password: hunter2-12345}}`,
			cluster.ErrInvalid, "illegal base64",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifest := object(t, "%s", strings.ReplaceAll(tc.body, "NS", namespace))
			_, err := subject.Apply(t.Context(), manifest, cluster.ApplyOptions{Manager: manager})
			if !errors.Is(err, tc.want) {
				t.Errorf("%s: want %v, got %v", tc.reason, tc.want, err)
			}
			wantWords(t, err, tc.words)
			if strings.Contains(err.Error(), "12345") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows the value: %v", err)
			}
		})
	}
	if _, err := subject.Apply(t.Context(), configMap(t, namespace, "me", "1"), cluster.ApplyOptions{}); !errors.Is(err, cluster.ErrInvalid) {
		t.Errorf("an apply without a manager of its own: want ErrInvalid, got %v", err)
	}
}

func TestTerminatingNamespace(t *testing.T) {
	t.Parallel()
	subject, _ := admin(t)
	namespace := env.NewNamespace(t)
	// Nothing here finishes what the API server begins: namespaces stay on their way out.
	ref := cluster.Ref{GVK: corev1.SchemeGroupVersion.WithKind("Namespace"), Name: namespace}
	live, err := subject.Metadata(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	ref.UID = live.UID
	if gone, err := subject.Delete(t.Context(), ref, ""); gone || err != nil {
		t.Fatalf("delete the namespace: gone %t, %v", gone, err)
	}
	_, err = subject.Apply(t.Context(), configMap(t, namespace, "me", "1"), cluster.ApplyOptions{Manager: manager})
	if !errors.Is(err, cluster.ErrNamespaceTerminating) {
		t.Fatalf("want ErrNamespaceTerminating, got %v", err)
	}
	wantWords(t, err, "the namespace "+namespace+" is being deleted")
}

func wantWords(t *testing.T, err error, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("want an error that says %q, got: %v", words, err)
	}
}
