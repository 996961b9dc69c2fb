package engine

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
)

// Label is the label by which members are found; its value is an InstallationID.
const Label = cluster.PartOf

// Labels that tell people whose member an object is.
const (
	InstallationLabel = "modules.sluice.dev/installation"
	NamespaceLabel    = "modules.sluice.dev/namespace"
)

// ManagerPrefix begins the names of all installations' field managers.
const ManagerPrefix = cluster.ManagerPrefix

// InstallationID is the value of Label for an installation, as KEP-3659 makes it.
func InstallationID(name, namespace string) string {
	sum := sha256.Sum256([]byte(name + "." + namespace + ".ModuleInstallation.modules.sluice.dev"))
	return "applyset-" + base64.RawURLEncoding.EncodeToString(sum[:]) + "-v1"
}

// Manager is the field manager of an installation's members. Each has its own, and a new one of the same name another:
// under a shared one the API server would let them overwrite each other without a word.
func Manager(uid string) string {
	sum := sha256.Sum256([]byte(uid))
	return ManagerPrefix + hex.EncodeToString(sum[:8])
}

// ours are the labels that the engine puts on members.
func ours() []string { return []string{Label, InstallationLabel, NamespaceLabel} }

// labelsOf are these labels for an installation.
func labelsOf(name, namespace string) map[string]string {
	id := InstallationID(name, namespace)
	if len(name) > maxLabel {
		name = name[:maxLabel-len(cutMark(id))] + cutMark(id)
	}
	return map[string]string{Label: id, InstallationLabel: name, NamespaceLabel: namespace}
}

// maxLabel is how long a label's value may be. Names of installations may be longer.
const maxLabel = 63

// cutMark ends a name that was cut for a label: 64 bits of a hash of the InstallationID.
func cutMark(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "-" + hex.EncodeToString(sum[:8])
}

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

// wanted says that the member is one of the release that was applied last, and was applied. Once an attempt has come so far
// that all that it needs has been applied, no release needs the others any more: they have no hash.
func wanted(m *modulesv1.Member) bool {
	return m.State == modulesv1.MemberApplied && m.RenderHash != ""
}

// every gives all members, for a loop that may change them.
func every(members []modulesv1.Member) iter.Seq[*modulesv1.Member] {
	return func(yield func(*modulesv1.Member) bool) {
		for i := range members {
			if !yield(&members[i]) {
				return
			}
		}
	}
}

// index finds members by their key.
func index(members []modulesv1.Member) map[key]*modulesv1.Member {
	all := make(map[key]*modulesv1.Member, len(members))
	for m := range every(members) {
		all[keyOf(m)] = m
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
	return ref.GVK.Kind + "/" + strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/")
}
