package function

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/kpt"
)

// noNamespace is what kpt notes for the namespace of objects that are in none, and of those of kinds that it does not know.
const noNamespace = "~C"

// catalogueMover moves objects as kpt's set-namespace does: what refers to them mostly stays, and some fields are made that were
// not there.
type catalogueMover struct {
	*run
	target, matcher string
	// known are the kinds of Kubernetes alone: definitions in the package are not looked at.
	known scopes
	// there are the objects as kpt's annotation for dependencies calls them.
	there map[string]bool
}

func (m *catalogueMover) move(ctx context.Context) error {
	origins := map[string]bool{}
	for _, o := range m.objects {
		if o.resource.IsLocalConfig() {
			continue
		}
		if m.known.moves(o) {
			m.there[strings.Join([]string{o.group(), "namespaces", cmp.Or(o.current(), defaultNamespace), o.kind(), o.name()}, "/")] = true
		}
		upstream, name := o.upstream()
		if name == "" || m.known.of(o) == scopeCluster {
			continue
		}
		if upstream == noNamespace {
			return o.fail([]string{"metadata", "annotations", upstreamIdentifier}, errors.New("says that the object was in no namespace"))
		}
		origins[upstream] = true
	}
	if len(origins) > 1 && m.matcher == "" {
		return errors.New("the objects are of several namespaces upstream; namespaceMatcher says which of them is meant")
	}
	for _, o := range m.objects {
		if err := ctx.Err(); err != nil {
			return err
		}
		if o.resource.IsLocalConfig() {
			continue
		}
		if err := m.object(o); err != nil {
			return err
		}
	}
	return nil
}

// becomes is what a namespace is to be. What is not there is the default one, whether it changes or not.
func (m *catalogueMover) becomes(current, origin string) string {
	current = cmp.Or(current, defaultNamespace)
	if m.matcher == "" || m.matcher == current || m.matcher == origin {
		return m.target
	}
	return current
}

func (m *catalogueMover) object(o *object) error {
	if err := m.depends(o); err != nil {
		return err
	}
	upstream, name := o.upstream()
	switch version := kpt.Text(o.root, "apiVersion"); {
	case m.known.moves(o):
		if name == "" {
			upstream = cmp.Or(o.current(), defaultNamespace)
		}
		return m.set(o, upstream, "metadata", "namespace")
	case o.kind() == "Namespace" && version == "v1":
		return m.set(o, cmp.Or(name, o.name()), "metadata", "name")
	case o.kind() == "CustomResourceDefinition" && version == "apiextensions.k8s.io/v1":
		return m.set(o, "", "spec", "conversion", "webhook", "clientConfig", "service", "namespace")
	case o.kind() == "APIService" && version == "apiregistration.k8s.io/v1":
		return m.set(o, "", "spec", "service", "namespace")
	case o.is("rbac.authorization.k8s.io", "ClusterRoleBinding"):
		for i, subject := range kpt.Elements(kpt.Lookup(o.root, "subjects")) {
			namespace := kpt.Lookup(subject, "namespace")
			if namespace == nil {
				continue
			}
			path := []string{"subjects", strconv.Itoa(i), "namespace"}
			if err := m.replaceText(o, namespace, path, m.becomes(namespace.Value, "")); err != nil {
				return err
			}
		}
	}
	return nil
}

// set writes the namespace at the path, which is made.
func (m *catalogueMover) set(o *object, origin string, path ...string) error {
	if origin == noNamespace {
		return nil
	}
	parent, err := m.mapping(o, path[:len(path)-1])
	if err != nil {
		return err
	}
	return m.setText(o, parent, path, m.becomes(kpt.Text(o.root, path...), origin))
}

// depends follows the annotation where it names one object of the package, and nothing else.
func (m *catalogueMover) depends(o *object) error {
	path := []string{"metadata", "annotations", dependsOn}
	value := kpt.Lookup(o.root, path...)
	if isNull(value) || !m.there[value.Value] {
		return nil
	}
	parts := strings.Split(value.Value, "/")
	if m.matcher != "" && m.matcher != parts[2] {
		return nil
	}
	parts[2] = m.target
	return m.replaceText(o, value, path, strings.Join(parts, "/"))
}
