package view

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/engine/health"
)

// Node is an object in a tree, or several that are alike, with what hangs on it: what was made of it, or what it owns.
type Node struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// Name is empty for several objects, which Count counts. Without a kind it is the address that a source reads.
	Name  string `json:"name,omitempty"`
	Count int    `json:"count,omitempty"`
	// State is empty for what nobody can judge, as the message says.
	State   State   `json:"state,omitempty"`
	Message string  `json:"message,omitempty"`
	Note    string  `json:"note,omitempty"`
	Under   []*Node `json:"under"`
	// DependsOn are what has to be ready first, without what hangs on it. Of what nobody has read, no state is told.
	DependsOn []*Node `json:"dependsOn,omitempty"`

	// UID is that of the one object.
	UID types.UID `json:"-"`
	// Between are objects that are not shown, between it and what hangs on it.
	Between []*Node `json:"-"`
}

// NodeOf is the node of one of our objects.
func NodeOf(obj *unstructured.Unstructured, note string) *Node {
	fact := Of(obj)
	told := named(obj)
	told.State, told.Note = fact.State, note
	if told.State != Ready {
		told.Message = strings.TrimPrefix(fact.Reason+": "+fact.Message, ": ")
	}
	return told
}

// Judged is the node of an object of any kind, by the health that installations judge it by. One of a kind without any is
// well as it is there.
func Judged(obj *unstructured.Unstructured, checker *health.Checker) *Node {
	told := named(obj)
	if !checker.NeedsObject(obj.GroupVersionKind()) {
		if told.State = Ready; obj.GetDeletionTimestamp() != nil {
			told.State = Deleting
		}
		return told
	}
	state, message := checker.Check(obj)
	if reason := stuck(obj); reason != "" && state != health.Current {
		state, message = health.Failed, reason
	}
	switch state {
	case health.Current:
		told.State, message = Ready, ""
	case health.InProgress:
		told.State = Progressing
	case health.Failed:
		told.State = Failed
	case health.Unknown:
	}
	told.Message = message
	return told
}

func named(obj *unstructured.Unstructured) *Node {
	gvk := obj.GroupVersionKind()
	return &Node{Group: gvk.Group, Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID()}
}

// stuck is why a container of a Pod does not start, with the kubelet's words; "" for one that may still do.
func stuck(pod *unstructured.Unstructured) string {
	if pod.GetKind() != "Pod" {
		return ""
	}
	for _, of := range []string{"initContainerStatuses", "containerStatuses"} {
		list, _, _ := unstructured.NestedSlice(pod.Object, "status", of)
		for _, one := range list {
			fields, _ := one.(map[string]any)
			reason, _, _ := unstructured.NestedString(fields, "state", "waiting", "reason")
			if message, _, _ := unstructured.NestedString(fields, "state", "waiting", "message"); reason != "" && reason != "ContainerCreating" && reason != "PodInitializing" {
				return strings.TrimSuffix(reason+": "+message, ": ")
			}
		}
	}
	return ""
}

// Hang puts objects under those that own them. Where an owner is none of the nodes and is one of the objects itself, it is left
// out, and what it owns hangs on its own owner: the Pods of a ReplicaSet under their Deployment.
func Hang(nodes []*Node, objects []unstructured.Unstructured, shown func(kind string) bool) {
	above, known := map[types.UID]*unstructured.Unstructured{}, map[types.UID]*Node{}
	for _, n := range nodes {
		known[n.UID] = n
	}
	var hung []*unstructured.Unstructured
	for i := range objects {
		obj := &objects[i]
		above[obj.GetUID()] = obj
		if known[obj.GetUID()] == nil {
			hung = append(hung, obj)
		}
	}
	for _, obj := range hung {
		if shown(obj.GetKind()) {
			known[obj.GetUID()] = Judged(obj, &health.Checker{})
		}
	}
	for _, obj := range hung {
		owner := ownerIn(obj, above, known)
		switch n := known[obj.GetUID()]; {
		case owner == nil:
		case n == nil:
			owner.Between = append(owner.Between, named(obj))
		default:
			owner.Under = append(owner.Under, n)
		}
	}
}

// ownerIn is the node that the object's controllers lead to.
func ownerIn(obj *unstructured.Unstructured, above map[types.UID]*unstructured.Unstructured, known map[types.UID]*Node) *Node {
	// Owners that own each other end nowhere.
	for range len(above) + 1 {
		owner := metav1.GetControllerOf(obj)
		if owner == nil {
			return nil
		}
		if n := known[owner.UID]; n != nil {
			return n
		}
		if obj = above[owner.UID]; obj == nil {
			return nil
		}
	}
	return nil
}

// isReady says that the node itself is as it is to be. An address is no object, and always so.
func (n *Node) isReady() bool { return n.Kind == "" || n.State == Ready }

// IsWell says that the node and all under it are as they are to be.
func (n *Node) IsWell() bool {
	return n.isReady() && !slices.ContainsFunc(n.Under, func(u *Node) bool { return !u.IsWell() })
}

// Troubled is the node with what is not well under it alone; nil if it is well.
func (n *Node) Troubled() *Node {
	told := *n
	told.Under = nil
	for _, u := range n.Under {
		if kept := u.Troubled(); kept != nil {
			told.Under = append(told.Under, kept)
		}
	}
	if len(told.Under) == 0 && n.isReady() {
		return nil
	}
	return &told
}

// Cut is the node with so many levels under it.
func (n *Node) Cut(depth int) *Node {
	told := *n
	told.Under = nil
	if depth > 0 {
		for _, u := range n.Under {
			told.Under = append(told.Under, u.Cut(depth-1))
		}
	}
	return &told
}

// Folded is the node, with those under it that are well and of one kind as one node, which comes before those that are not
// well.
func (n *Node) Folded() *Node {
	told, _ := n.folded(func(*Node) bool { return false })
	return told
}

// folded is Folded, with those as they are that are kept, and whether all is well.
func (n *Node) folded(kept func(*Node) bool) (folded *Node, well bool) {
	told := *n
	told.Under = nil
	well = n.isReady()
	alike := map[string]*Node{}
	var unwell []*Node
	for _, u := range n.Under {
		made, isWell := u.folded(kept)
		well = well && isWell
		if !isWell || u.Kind == "" || kept(u) {
			unwell = append(unwell, made)
			continue
		}
		key := u.Group + "/" + u.Kind
		first := alike[key]
		if first == nil {
			alike[key] = made
			told.Under = append(told.Under, made)
			continue
		}
		*first = Node{Group: u.Group, Kind: u.Kind, Count: first.size() + u.size(), State: Ready}
	}
	told.Under = append(told.Under, unwell...)
	return &told, well
}

// Alone is the node with nothing that hangs on it, as one that others depend on.
func (n *Node) Alone() *Node {
	return &Node{Group: n.Group, Kind: n.Kind, Namespace: n.Namespace, Name: n.Name, State: n.State, Message: n.Message, UID: n.UID}
}

// size is how many objects the node stands for.
func (n *Node) size() int { return max(1, n.Count) }

// Walk visits the node and all under it, shown or not.
func (n *Node) Walk(visit func(*Node)) {
	visit(n)
	for _, u := range slices.Concat(n.Between, n.Under) {
		u.Walk(visit)
	}
}
