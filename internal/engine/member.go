package engine

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
)

// key is what makes a member the same one: its version is not part of it.
type key struct{ group, kind, namespace, name string }

func keyOf(m *modulesv1.Member) key { return key{m.Group, m.Kind, m.Namespace, m.Name} }

func keyOfObject(o *unstructured.Unstructured) key {
	gvk := o.GroupVersionKind()
	return key{gvk.Group, gvk.Kind, o.GetNamespace(), o.GetName()}
}

func kindOf(m *modulesv1.Member) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: m.Group, Version: m.Version, Kind: m.Kind}
}

func refOf(m *modulesv1.Member) cluster.Ref {
	return cluster.Ref{GVK: kindOf(m), Namespace: m.Namespace, Name: m.Name, UID: types.UID(m.UID)}
}

func refOfObject(o *unstructured.Unstructured) cluster.Ref {
	return cluster.Ref{GVK: o.GroupVersionKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

// wanted says that the member is one of the release that was applied last, and was applied.
func wanted(m *modulesv1.Member) bool {
	return m.State == modulesv1.MemberApplied && m.RenderHash != ""
}

// leftover says that the member is one that no release needs any more, once an attempt has come so far that all that
// it needs has been applied: whatever was not, has no hash.
func leftover(m *modulesv1.Member) bool { return !wanted(m) }

// index finds members by their key.
func index(members []modulesv1.Member) map[key]*modulesv1.Member {
	all := make(map[key]*modulesv1.Member, len(members))
	for i := range members {
		all[keyOf(&members[i])] = &members[i]
	}
	return all
}

// objects is a number of objects in words.
func objects(count int) string {
	if count == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", count)
}

// describe names an object to people: Kind/namespace/name.
func describe(ref cluster.Ref) string {
	if ref.Namespace == "" {
		return ref.GVK.Kind + "/" + ref.Name
	}
	return ref.GVK.Kind + "/" + ref.Namespace + "/" + ref.Name
}
