// Package cluster reads and writes the objects of an installation on the API server: one call an apply, one a delete,
// under the identity that the installation works as.
// It does not know what is to be applied, in which order, or who asks.
package cluster

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/transport"
)

// PartOf is the label that names the owner of a member, after KEP-3659. It is an index, never a proof.
const PartOf = "applyset.kubernetes.io/part-of"

// ManagerPrefix begins the names of all installations' field managers.
const ManagerPrefix = "sluice-"

// Identity is who the API server is asked as: a ServiceAccount, or the controller itself when it is zero.
type Identity struct{ Namespace, ServiceAccount string }

// String is the user name that the API server sees, or words for the controller's own.
func (i Identity) String() string {
	if i == (Identity{}) {
		return "the controller's own account"
	}
	return "system:serviceaccount:" + i.Namespace + ":" + i.ServiceAccount
}

// Ref names an object. A UID pins it to one life of the name; it is optional except where said.
type Ref struct {
	GVK             schema.GroupVersionKind
	Namespace, Name string
	UID             types.UID
}

// String is the kind and the name, as people write them; without a name it stands for all objects of the kind.
func (r Ref) String() string {
	text := r.GVK.GroupKind().String()
	switch {
	case r.Name != "" && r.Namespace != "":
		text += " " + r.Namespace + "/" + r.Name
	case r.Name != "":
		text += " " + r.Name
	case r.Namespace != "":
		text += " in namespace " + r.Namespace
	}
	return transport.Printable(text)
}
