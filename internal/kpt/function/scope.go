package function

import (
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// scope says whether objects of a kind are in namespaces.
type scope int

const (
	scopeUnknown scope = iota
	scopeNamespace
	scopeCluster
)

// groupKind is a kind in whatever version: the scope is the same in all of them.
type groupKind struct{ group, kind string }

// scopes knows the kinds that CustomResourceDefinitions of the package define, and those of Kubernetes.
type scopes map[groupKind]scope

func readScopes(objects []*object) scopes {
	read := scopes{}
	for _, o := range objects {
		if !o.is("apiextensions.k8s.io", "CustomResourceDefinition") {
			continue
		}
		defined := groupKind{kpt.Text(o.root, "spec", "group"), kpt.Text(o.root, "spec", "names", "kind")}
		switch kpt.Text(o.root, "spec", "scope") {
		case "Cluster":
			read[defined] = scopeCluster
		case "Namespaced":
			read[defined] = scopeNamespace
		}
	}
	return read
}

// of is what is known of the object's kind.
func (s scopes) of(o *object) scope {
	kind := groupKind{o.group(), o.kind()}
	if known, found := s[kind]; found {
		return known
	}
	return builtIn(kind, kpt.Text(o.root, "apiVersion"))
}

// builtIn is what is known of Kubernetes' own kinds. Of versions that it has no more it had the same scope.
func builtIn(kind groupKind, apiVersion string) scope {
	versions := []string{apiVersion}
	groups := []string{kind.group}
	if kind.group == "extensions" {
		groups = []string{"apps", "networking.k8s.io", "policy"} // Where its kinds went.
	}
	for _, group := range groups {
		if group != "" {
			versions = append(versions, group+"/v1", group+"/v2", group+"/v1beta1", group+"/v1alpha1")
		}
	}
	for _, version := range versions {
		namespaced, found := openapi.IsNamespaceScoped(yaml.TypeMeta{APIVersion: version, Kind: kind.kind})
		switch {
		case found && namespaced:
			return scopeNamespace
		case found:
			return scopeCluster
		}
	}
	return scopeUnknown
}

// moves tells whether a namespace can be set on the object. Of a kind that nobody knows only those are in a namespace that
// say so.
func (s scopes) moves(o *object) bool {
	switch s.of(o) {
	case scopeNamespace:
		return true
	case scopeCluster:
		return false
	default:
		return o.current() != ""
	}
}
