package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/tests/testenv"
)

// define makes a CRD of the kind Thing with the versions, and waits until they are served.
func define(t *testing.T, subject *cluster.Client, group string, versions ...string) *unstructured.Unstructured {
	t.Helper()
	definition := object(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.%s},
		spec: {group: %s, scope: Namespaced, names: {plural: things, kind: Thing}, versions: []}}`, group, group)
	all := make([]any, 0, len(versions))
	for i, version := range versions {
		all = append(all, object(t, `{name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object,
			properties: {size: {type: integer, x-kubernetes-validations: [{rule: self == oldSelf, message: size is immutable}]}}}}}}}`, version, i == 0).Object)
	}
	if err := unstructured.SetNestedSlice(definition.Object, all, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	apply(t, subject, definition, cluster.ApplyOptions{Manager: manager})
	t.Cleanup(func() {
		if err := env.Client.Delete(context.WithoutCancel(t.Context()), definition); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	for _, version := range versions {
		serves(t, group, version, true)
	}
	return definition
}

// serves waits until the kind is served, or is not.
func serves(t *testing.T, group, version string, want bool) {
	t.Helper()
	testenv.Eventually(t, "Things of "+group+"/"+version, func(ctx context.Context) (bool, string) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: "ThingList"})
		fresh, err := client.New(env.Config, client.Options{Scheme: env.Scheme})
		if err != nil {
			return false, err.Error()
		}
		err = fresh.List(ctx, list)
		return (err == nil) == want, fmt.Sprint(err)
	})
}

func undefine(t *testing.T, subject *cluster.Client, definition *unstructured.Unstructured) {
	t.Helper()
	ref := cluster.Ref{GVK: definition.GroupVersionKind(), Name: definition.GetName()}
	live, err := subject.Metadata(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	ref.UID = live.UID
	if _, err := subject.Delete(t.Context(), ref, ""); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the CRD goes", func(ctx context.Context) (bool, string) {
		_, err := subject.Metadata(ctx, ref)
		return errors.Is(err, cluster.ErrNotFound), fmt.Sprint(err)
	})
}

func TestInstancesInEveryServedVersion(t *testing.T) {
	t.Parallel()
	connector, count := connect(t, cluster.Options{})
	subject := as(t, connector, cluster.Identity{})
	const group = "instances.example.com"
	definition := define(t, subject, group, "v1", "v2")
	connector.Refresh()
	namespaces := []string{env.NewNamespace(t), env.NewNamespace(t)}
	var refs []cluster.Ref
	for i := range 7 {
		thing := object(t, `{apiVersion: %s/v%d, kind: Thing, metadata: {name: thing-%d, namespace: %s}}`, group, i%2+1, i, namespaces[i%2])
		refs = append(refs, refTo(thing, apply(t, subject, thing, cluster.ApplyOptions{Manager: manager})))
	}
	count.wantCalls(t, map[string]int{"discover": 3, "list": 2}, func() {
		got, err := subject.Instances(t.Context(), schema.GroupKind{Group: group, Kind: "Thing"}, "", nil)
		if err != nil || got.Count != 7 || len(got.Examples) != 5 {
			t.Fatalf("want 7 with 5 examples, got %+v, %v", got, err)
		}
		if want := (cluster.Ref{GVK: schema.GroupVersionKind{Group: group, Version: "v2", Kind: "Thing"}}); got.Examples[0].GVK != want.GVK || got.Examples[0].UID == "" {
			t.Errorf("the first example: %+v", got.Examples[0])
		}
	})
	counted := map[types.UID]bool{refs[0].UID: true, refs[2].UID: true}
	got, err := subject.Instances(t.Context(), schema.GroupKind{Group: group, Kind: "Thing"}, "", func(item *metav1.PartialObjectMetadata) bool {
		return !counted[item.UID]
	})
	if err != nil || got.Count != 2 {
		t.Errorf("five of seven are excluded: %+v, %v", got, err)
	}
	var left []types.UID
	for _, example := range got.Examples {
		left = append(left, example.UID)
	}
	if diff := cmp.Diff(counted, set(left)); diff != "" {
		t.Errorf("examples (-want +got):\n%s", diff)
	}
	if got, err := subject.Instances(t.Context(), schema.GroupKind{Group: group, Kind: "Thing"}, namespaces[1], nil); err != nil || got.Count != 3 {
		t.Errorf("three of seven are in the namespace: %+v, %v", got, err)
	}

	unserve := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/versions/0/served","value":false},{"op":"replace","path":"/spec/versions/1/served","value":false}]`))
	if err := env.Client.Patch(t.Context(), definition.DeepCopy(), unserve); err != nil {
		t.Fatal(err)
	}
	serves(t, group, "v1", false)
	testenv.Eventually(t, "the kind is not served, and its objects are there", func(ctx context.Context) (bool, string) {
		got, err := subject.Instances(ctx, schema.GroupKind{Group: group, Kind: "Thing"}, "", nil)
		if err == nil && got.Count == 0 {
			t.Fatal("objects that no version shows count as none")
		}
		return err != nil && errors.Is(err, cluster.ErrUnavailable), fmt.Sprint(got, err)
	})

	undefine(t, subject, definition)
	testenv.Eventually(t, "the CRD is deleted", func(ctx context.Context) (bool, string) {
		got, err := subject.Instances(ctx, schema.GroupKind{Group: group, Kind: "Thing"}, "", nil)
		return err == nil && got.Count == 0, fmt.Sprint(got, err)
	})
}

func set(uids []types.UID) map[types.UID]bool {
	all := map[types.UID]bool{}
	for _, uid := range uids {
		all[uid] = true
	}
	return all
}

func TestInstancesThatCannotBeListedAreUnknown(t *testing.T) {
	t.Parallel()
	connector, _ := connect(t, cluster.Options{})
	namespace := env.NewNamespace(t)
	id := cluster.Identity{Namespace: namespace, ServiceAccount: "deployer"}
	grant(t, id, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	if _, err := as(t, connector, id).Instances(t.Context(), schema.GroupKind{Kind: "ConfigMap"}, "", nil); !errors.Is(err, cluster.ErrForbidden) {
		t.Errorf("an account that may not list everywhere: want ErrForbidden, got %v", err)
	}
	if got, err := as(t, connector, cluster.Identity{}).Instances(t.Context(), schema.GroupKind{Kind: "ConfigMap"}, "", nil); err != nil || got.Count == 0 {
		t.Errorf("a kind of the core group: %+v, %v", got, err)
	}
	if got, err := as(t, connector, cluster.Identity{}).Instances(t.Context(), schema.GroupKind{Group: "never.example.com", Kind: "Heard"}, "", nil); err != nil || got.Count != 0 {
		t.Errorf("a kind that never was: %+v, %v", got, err)
	}
}

func TestInstancesBehindAServerThatIsDownAreUnknown(t *testing.T) {
	t.Parallel()
	subject, _ := admin(t)
	service := object(t, `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.down.example.com},
		spec: {group: down.example.com, version: v1, groupPriorityMinimum: 1, versionPriority: 1, insecureSkipTLSVerify: true, service: {name: none, namespace: default}}}`)
	apply(t, subject, service, cluster.ApplyOptions{Manager: manager})
	t.Cleanup(func() {
		if err := env.Client.Delete(context.WithoutCancel(t.Context()), service); err != nil {
			t.Error(err)
		}
	})
	testenv.Eventually(t, "the group's server is down", func(ctx context.Context) (bool, string) {
		got, err := subject.Instances(ctx, schema.GroupKind{Group: "down.example.com", Kind: "Thing"}, "", nil)
		return errors.Is(err, cluster.ErrUnavailable), fmt.Sprint(got, err)
	})
	empty := env.NewNamespace(t)
	testenv.Eventually(t, "what is in a namespace is not known either", func(ctx context.Context) (bool, string) {
		found, err := subject.Inhabitant(ctx, empty, nil, func() error { return nil })
		return found == nil && err != nil && strings.Contains(err.Error(), "the server of down.example.com/v1 does not answer"), fmt.Sprint(found, err)
	})
}
