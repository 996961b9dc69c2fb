package engine

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
)

// fate is what becomes of an object that is no longer needed.
type fate int

const (
	// foreign: it is not this installation's, so that nothing becomes of it.
	foreign fate = iota
	// inherited: it is another installation's from now on.
	inherited
	// letGo: it stays, and nothing on it says any more that it was a member.
	letGo
	// held: it stays a member until what is in it is gone.
	held
	// goes: it is deleted.
	goes
)

// facts are all that the fate of an object depends on.
type facts struct {
	kind schema.GroupKind
	// owned says that it is provably this installation's, and adopted that somebody else made it all the same.
	owned, adopted bool
	// claimed says that another installation needs it.
	claimed bool
	// home says that it is the installation's own namespace.
	home bool
	// keptBy is the annotation by which somebody keeps it; "" without one.
	keptBy string
	// holds is what would go with it, in words; "" for nothing.
	holds string
	// orphan says that everything is let go of.
	orphan bool
}

// fate alone decides what may be deleted, and says why not: for pruning, uninstalling, handing over and making anew.
func (f facts) fate() (fate, string) {
	switch {
	case !f.owned:
		return foreign, "it is not provably this installation's"
	case f.orphan:
		return letGo, ""
	case f.claimed:
		return inherited, ""
	case f.home:
		// It would take the installation's own record along.
		return letGo, "it is the installation's own namespace"
	case f.keptBy != "":
		return letGo, "it is kept by " + f.keptBy
	case isVolume(f.kind):
		return letGo, "what is in a " + f.kind.Kind + " would go with it"
	case f.adopted:
		return letGo, "it was there before"
	case f.holds == "":
		return goes, ""
	case f.kind == definitionKind():
		return held, f.holds
	}
	return letGo, f.holds
}

// owner is who an installation is to objects.
type owner struct {
	sight

	name, namespace string
	// policy is spec.adopt: what somebody else made may be as much the installation's own as what it made.
	policy modulesv1.AdoptPolicy
}

// owns says whether an object is provably the installation's: it carries the label, and is either the one on record
// or has fields of the manager that nobody else has.
func (o owner) owns(live metav1.Object, m *modulesv1.Member) bool {
	if live.GetLabels()[Label] != o.id {
		return false
	}
	return m != nil && m.UID != "" && m.UID == string(live.GetUID()) || cluster.Fingerprint(live, o.manager) != ""
}

// facts are what the record and the object tell: the object alone, if it was applied and not written down before a crash.
func (o owner) facts(m *modulesv1.Member, live metav1.Object) facts {
	known := o.recordedFacts(m)
	known.owned, known.keptBy = o.owns(live, m), cluster.KeptBy(live)
	known.adopted = o.policy != modulesv1.AdoptAlways && (m.Adopted || m.UID != string(live.GetUID()) && !cluster.MadeBy(live, o.manager))
	return known
}

// recordedFacts are those that the record alone tells of a member that is this installation's.
func (o owner) recordedFacts(m *modulesv1.Member) facts {
	kind := kindOf(m).GroupKind()
	return facts{
		kind: kind, owned: true, adopted: m.Adopted && o.policy != modulesv1.AdoptAlways,
		home: kind == schema.GroupKind{Kind: "Namespace"} && m.Name == o.namespace,
	}
}

// configFacts are the facts about the default configuration, which is the installation's and no member.
func configFacts(kind schema.GroupKind, live metav1.Object) facts {
	return facts{kind: kind, owned: true, keptBy: cluster.KeptBy(live)}
}

// isVolume says that objects of the kind are data themselves.
func isVolume(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Kind: "PersistentVolumeClaim"} || kind == schema.GroupKind{Kind: "PersistentVolume"}
}

// mayHold says that something else can go with an object of the kind: what that is, is asked of the object.
func mayHold(kind schema.GroupKind) bool { return isContainer(kind) || kind == statefulKind() }

// claimsOf says that the claims of a StatefulSet go with it; "" when they outlive it.
func claimsOf(set *unstructured.Unstructured) string {
	policy, _, _ := unstructured.NestedString(set.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
	if policy != "Delete" {
		return ""
	}
	return "its claims would go with it, by persistentVolumeClaimRetentionPolicy.whenDeleted"
}

// statefulKind is the kind of StatefulSets.
func statefulKind() schema.GroupKind { return schema.GroupKind{Group: "apps", Kind: "StatefulSet"} }

// isContainer says that others' objects can be in an object of the kind, and go with it.
func isContainer(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Kind: "Namespace"} || kind == definitionKind()
}

// definitionKind is the kind of CRDs.
func definitionKind() schema.GroupKind {
	return schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}
