package kpt

import "sigs.k8s.io/kustomize/kyaml/yaml"

// The annotations of a Kptfile that tell where a package comes from. Who reads the tip of a branch needs nothing else.
const (
	// AnnotationVariant names the variant that keeps the package, "namespace/name".
	AnnotationVariant = "packages.sluice.dev/variant"
	// AnnotationConfig is the digest of the upstream and the configuration that the package was made from.
	AnnotationConfig = "packages.sluice.dev/config"
	// AnnotationBase is the tree that the package had on the branch when the change to it was begun, or BaseNone.
	AnnotationBase = "packages.sluice.dev/base"
	// AnnotationApplied is the configuration that the package was made from, as JSON and without what was injected.
	AnnotationApplied = "packages.sluice.dev/applied"
)

// BaseNone is what AnnotationBase says of a package that was not on the branch.
const BaseNone = "none"

// Facts are what a Kptfile says of its package.
type Facts struct {
	Name        string
	Labels      map[string]string
	Annotations map[string]string
	// Upstream and Lock are nil where there are none.
	Upstream *Upstream
	Lock     *Lock
	// Gates are the types of the conditions that must be true.
	Gates      []string
	Conditions []Condition
	// Variant, Config, Base and Applied are the annotations of these names, empty where there are none.
	Variant, Config, Base, Applied string
}

// ReadFacts reads the text of a Kptfile. It overlooks fields that it does not know: a package that somebody else made with
// another release of kpt can be looked at, though not updated. The error is a *SyntaxError.
func ReadFacts(text []byte) (Facts, error) {
	documents, err := split(KptfileName, text)
	if err != nil {
		return Facts{}, err
	}
	for _, d := range documents {
		if err := d.read(); err != nil {
			return Facts{}, d.explain(KptfileName, err)
		}
		root := d.mapping()
		if root == nil {
			continue
		}
		if group, _ := splitAPIVersion(Text(root, "apiVersion")); group != kptfileGroup || Text(root, "kind") != KptfileName {
			break
		}
		k := Kptfile{resource: &Resource{File: KptfileName, Node: yaml.NewRNode(root), origin: d}}
		return k.Facts(), nil
	}
	return Facts{}, &SyntaxError{File: KptfileName, Line: 1, Problem: "it is not a Kptfile of kpt.dev"}
}

// Facts are what the Kptfile says now.
func (k *Kptfile) Facts() Facts {
	annotations := k.Annotations()
	return Facts{
		Name: k.Name(), Labels: k.Labels(), Annotations: annotations, Upstream: k.Upstream(), Lock: k.Lock(),
		Gates: k.Gates(), Conditions: k.Conditions(),
		Variant: annotations[AnnotationVariant], Config: annotations[AnnotationConfig],
		Base: annotations[AnnotationBase], Applied: annotations[AnnotationApplied],
	}
}

// Waiting are the gates whose conditions are not true, in their order.
func (f Facts) Waiting() []string {
	passed := map[string]bool{}
	for _, condition := range f.Conditions {
		passed[condition.Type] = condition.Status == "True"
	}
	waiting := []string{}
	for _, gate := range f.Gates {
		if !passed[gate] {
			waiting = append(waiting, gate)
		}
	}
	return waiting
}
