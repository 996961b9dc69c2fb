package function

import (
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// What refers to objects of a namespace, and follows when they move.

// name is what an object is called, but for the namespace.
type name struct {
	groupKind

	name string
}

// follows tells whether a reference to the object, by the namespace that it names, becomes one to the target. That is so for
// objects of the package that move, and for those that are not in the package but were meant to be beside it.
func (m *mover) follows(n name, namespace string) bool {
	staying := false
	for _, o := range m.there[n] {
		called := []string{o.current(), o.namespace}
		if upstream, _ := o.upstream(); upstream != "" {
			called = append(called, upstream)
		}
		if o.current() == "" {
			called = append(called, defaultNamespace)
		}
		if !slices.Contains(called, namespace) {
			continue
		}
		if m.moving[o] {
			return true
		}
		staying = true
	}
	return !staying && m.origins[namespace]
}

// references rewrites what the object says of others.
func (m *mover) references(o *object) error {
	if err := m.dependencies(o); err != nil {
		return err
	}
	switch group, kind := o.group(), o.kind(); {
	case group == "rbac.authorization.k8s.io" && (kind == "RoleBinding" || kind == "ClusterRoleBinding"):
		return m.subjects(o)
	case group == "apiextensions.k8s.io" && kind == "CustomResourceDefinition":
		if err := m.service(o, "spec", "conversion", "webhook", "clientConfig", "service"); err != nil {
			return err
		}
		// The first version of the API had it here.
		return m.service(o, "spec", "conversion", "webhookClientConfig", "service")
	case group == "apiregistration.k8s.io" && kind == "APIService":
		return m.service(o, "spec", "service")
	case group == "admissionregistration.k8s.io" &&
		(kind == "ValidatingWebhookConfiguration" || kind == "MutatingWebhookConfiguration"):
		for i := range kpt.Elements(kpt.Lookup(o.root, "webhooks")) {
			if err := m.service(o, "webhooks", strconv.Itoa(i), "clientConfig", "service"); err != nil {
				return err
			}
		}
	}
	return nil
}

// subjects are those to whom a role is given.
func (m *mover) subjects(o *object) error {
	for i, subject := range kpt.Elements(kpt.Lookup(o.root, "subjects")) {
		if kpt.Text(subject, "kind") != "ServiceAccount" {
			continue
		}
		account := name{groupKind{"", "ServiceAccount"}, kpt.Text(subject, "name")}
		if err := m.reference(o, subject, account, []string{"subjects", strconv.Itoa(i), "namespace"}); err != nil {
			return err
		}
	}
	return nil
}

// service follows the reference to a Service at the path, if there is one.
func (m *mover) service(o *object, path ...string) error {
	n := o.root
	for _, key := range path {
		if i, err := strconv.Atoi(key); err == nil && i < len(kpt.Elements(n)) {
			n = n.Content[i]
			continue
		}
		n = kpt.Lookup(n, key)
	}
	return m.reference(o, n, name{groupKind{"", "Service"}, kpt.Text(n, "name")}, append(path, "namespace"))
}

// reference sets the namespace in a reference that has one.
func (m *mover) reference(o *object, n *yaml.Node, to name, path []string) error {
	namespace := kpt.Lookup(n, "namespace")
	if isNull(namespace) || !m.follows(to, kpt.Text(n, "namespace")) {
		return nil
	}
	return m.replaceText(o, namespace, path, m.target)
}

// dependencies rewrites the objects that are to be there before this one: group/namespaces/namespace/kind/name, or
// group/kind/name for those of the cluster, with commas between.
func (m *mover) dependencies(o *object) error {
	path := []string{"metadata", "annotations", dependsOn}
	n := kpt.Lookup(o.root, path...)
	if isNull(n) || n.Kind != yaml.ScalarNode {
		return nil
	}
	all := strings.Split(n.Value, ",")
	for i, one := range all {
		parts := strings.Split(one, "/")
		blank := len(parts[0]) - len(strings.TrimLeft(parts[0], " \t"))
		group := parts[0][blank:]
		last := len(parts) - 1
		trailing := parts[last][len(strings.TrimRight(parts[last], " \t")):]
		called := strings.TrimRight(parts[last], " \t")
		switch {
		case len(parts) == 5 && parts[1] == "namespaces":
			if m.follows(name{groupKind{group, parts[3]}, called}, parts[2]) {
				parts[2] = m.target
			}
		case len(parts) == 3 && group == "" && parts[1] == "Namespace":
			if m.renamed != nil && called == m.renamed.name() {
				parts[2] = m.target + trailing
			}
		}
		all[i] = strings.Join(parts, "/")
	}
	return m.replaceText(o, n, path, strings.Join(all, ","))
}
