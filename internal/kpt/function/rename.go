package function

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// renamer gives objects other names, and has references to them follow, in all objects that are seen: a reference in one that the
// selectors leave out would lead nowhere.
type renamer struct {
	*run
	scopes scopes
	fields []nameField
	pods   []nameField
	// names are those that objects get, and known the objects by the names that they have then.
	names map[*object]string
	known map[kpt.ID]*object
	// called are the objects by kind and by what others may call them still.
	called map[groupKind]map[string][]*object
}

func newRenamer(r *run) (*renamer, error) {
	n := &renamer{
		run: r, scopes: readScopes(r.seen), names: map[*object]string{}, known: map[kpt.ID]*object{},
		called: map[groupKind]map[string][]*object{},
	}
	var err error
	if n.fields, err = compileFields(nameFields()); err != nil {
		return nil, err
	}
	n.pods, err = compileFields(podFields())
	return n, err
}

// plan notes what the object is to be called. What it was called upstream counts as well, if the edit makes the same of it: what
// comes from there says that name.
func (n *renamer) plan(o *object, to string, edit func(string) string) error {
	if len(to) > maxName {
		return o.fail([]string{"metadata", "name"}, fmt.Errorf("would have more than the %d characters that are allowed", maxName))
	}
	n.names[o] = to
	kind := groupKind{o.group(), o.kind()}
	if n.called[kind] == nil {
		n.called[kind] = map[string][]*object{}
	}
	_, upstream := o.upstream()
	names := []string{o.name(), o.resource.Origin().Name, upstream}
	for i, name := range names {
		if name != "" && name != to && edit(name) == to && !slices.Contains(names[:i], name) {
			n.called[kind][name] = append(n.called[kind][name], o)
		}
	}
	return nil
}

// rename does what was planned, unless two objects would have one name.
func (n *renamer) rename(ctx context.Context) error {
	if err := n.meet(); err != nil {
		return err
	}
	for _, o := range n.seen {
		if err := ctx.Err(); err != nil {
			return err
		}
		if o.resource.IsLocalConfig() {
			continue
		}
		if err := n.references(o); err != nil {
			return err
		}
	}
	for _, o := range n.objects {
		to, planned := n.names[o]
		if !planned {
			continue
		}
		path := []string{"metadata", "name"}
		if err := n.replaceText(o, kpt.Lookup(o.root, path...), path, to); err != nil {
			return err
		}
	}
	return nil
}

// meet fails where two objects would have one name.
func (n *renamer) meet() error {
	for _, o := range n.seen {
		if o.resource.IsLocalConfig() {
			continue
		}
		id := o.resource.ID()
		if to, planned := n.names[o]; planned {
			id.Name = to
		}
		if other := n.known[id]; other != nil && (id.Name != o.name() || id.Name != other.name()) {
			return o.fail([]string{"metadata", "name"}, fmt.Errorf("there would be two of the name %s: the other is in %s", id.Name, other.resource.File))
		}
		n.known[id] = o
	}
	return nil
}

// target is the object that a reference means which has another name now, nil for none: of several kinds of one word, and
// of several namespaces, none is guessed.
func (n *renamer) target(kinds []groupKind, name, namespace string) *object {
	var exact, loose []*object
	for _, kind := range kinds {
		if n.known[kpt.ID{Group: kind.group, Kind: kind.kind, Namespace: namespace, Name: name}] != nil {
			return nil // There is one that is called so.
		}
		for _, o := range n.called[kind][name] {
			switch {
			case o.current() == namespace || n.scopes.of(o) == scopeCluster:
				exact = append(exact, o)
			case o.current() == "":
				loose = append(loose, o)
			}
		}
	}
	switch {
	case len(exact) == 1:
		return exact[0]
	case len(exact) == 0 && len(loose) == 1:
		return loose[0]
	}
	return nil
}

// follow rewrites the name in a reference.
func (n *renamer) follow(o *object, at location, kinds []groupKind, namespace string) error {
	if isNull(at.node) || at.node.Kind != yaml.ScalarNode {
		return nil
	}
	if to := n.target(kinds, at.node.Value, namespace); to != nil {
		return n.replaceText(o, at.node, at.path, n.names[to])
	}
	return nil
}

// references rewrites what the object says of others: in fields that are known to be references, in Pods wherever they are
// described, and wherever a kind stands beside a name.
func (n *renamer) references(o *object) error {
	for i := range n.fields {
		if f := &n.fields[i]; f.of(o) {
			if err := n.field(o, location{node: o.root}, f); err != nil {
				return err
			}
		}
	}
	if err := n.rules(o); err != nil {
		return err
	}
	if err := n.dependencies(o); err != nil {
		return err
	}
	if o.is("apiextensions.k8s.io", "CustomResourceDefinition") {
		return nil // What else it has are schemas.
	}
	return n.walk(o, location{node: o.root})
}

// field follows one known field.
func (n *renamer) field(o *object, from location, f *nameField) error {
	for _, holder := range reach(from, f.holder) {
		if f.untyped && kpt.Text(holder.node, "kind") != "" {
			continue
		}
		namespace := cmp.Or(kpt.Text(holder.node, "namespace"), o.current())
		for _, at := range reach(holder, f.rest) {
			if err := n.follow(o, at, []groupKind{f.target}, namespace); err != nil {
				return err
			}
		}
	}
	return nil
}

// walk looks for Pods and for references that say what kind they lead to.
func (n *renamer) walk(o *object, at location) error {
	switch at.node.Kind {
	case yaml.MappingNode:
		if err := n.pod(o, at); err != nil {
			return err
		}
		if err := n.typed(o, at); err != nil {
			return err
		}
		for i := 0; i+1 < len(at.node.Content); i += 2 {
			if err := n.walk(o, location{at.node.Content[i+1], append(at.path, at.node.Content[i].Value)}); err != nil {
				return err
			}
		}
	case yaml.SequenceNode:
		for i, element := range at.node.Content {
			if err := n.walk(o, location{element, append(at.path, strconv.Itoa(i))}); err != nil {
				return err
			}
		}
	default: // Nothing is below a scalar.
	}
	return nil
}

// pod follows what a map says of others that describes a Pod: it has containers.
func (n *renamer) pod(o *object, at location) error {
	if containers := kpt.Lookup(at.node, "containers"); containers == nil || containers.Kind != yaml.SequenceNode {
		return nil
	}
	for i := range n.pods {
		if err := n.field(o, at, &n.pods[i]); err != nil {
			return err
		}
	}
	return nil
}

// typed follows a reference that has both a kind and a name, and its group in one of the ways in which that is said.
func (n *renamer) typed(o *object, at location) error {
	kind, name := kpt.Text(at.node, "kind"), kpt.Lookup(at.node, "name")
	if len(at.path) == 0 || kind == "" || isNull(name) {
		return nil
	}
	group, said := "", false
	for _, key := range []string{"apiVersion", "apiGroup", "group"} {
		if value := kpt.Lookup(at.node, key); value != nil && !said {
			group, said = value.Value, true
			if before, _, found := strings.Cut(group, "/"); key == "apiVersion" {
				group = before
				if !found {
					group = ""
				}
			}
		}
	}
	kinds := []groupKind{}
	for known := range n.called {
		if known.kind == kind && (!said || known.group == group) {
			kinds = append(kinds, known)
		}
	}
	namespace := cmp.Or(kpt.Text(at.node, "namespace"), o.current())
	return n.follow(o, location{name, join(at.path, "name")}, kinds, namespace)
}

// rules follows the names in roles: each is one of the resources beside it.
func (n *renamer) rules(o *object) error {
	if o.group() != "rbac.authorization.k8s.io" {
		return nil
	}
	for i, rule := range kpt.Elements(kpt.Lookup(o.root, "rules")) {
		kinds := []groupKind{}
		for known := range n.called {
			if contains(kpt.Lookup(rule, "apiGroups"), known.group) && contains(kpt.Lookup(rule, "resources"), plural(known.kind)) {
				kinds = append(kinds, known)
			}
		}
		for j, name := range kpt.Elements(kpt.Lookup(rule, "resourceNames")) {
			at := location{name, []string{"rules", strconv.Itoa(i), "resourceNames", strconv.Itoa(j)}}
			if err := n.follow(o, at, kinds, o.current()); err != nil {
				return err
			}
		}
	}
	return nil
}

// contains tells whether the list has the text.
func contains(list *yaml.Node, text string) bool {
	return slices.ContainsFunc(kpt.Elements(list), func(n *yaml.Node) bool { return n.Value == text })
}

// plural is what the API calls the objects of a kind, as it does for its own kinds.
func plural(kind string) string {
	switch kind = strings.ToLower(kind); {
	case strings.HasSuffix(kind, "s"):
		return kind + "es"
	case strings.HasSuffix(kind, "y") && !strings.HasSuffix(kind, "ay"):
		return strings.TrimSuffix(kind, "y") + "ies"
	}
	return kind + "s"
}

// dependencies follows the annotation that says which objects are to be there before this one; see mover.dependencies.
func (n *renamer) dependencies(o *object) error {
	path := []string{"metadata", "annotations", dependsOn}
	value := kpt.Lookup(o.root, path...)
	if isNull(value) || value.Kind != yaml.ScalarNode {
		return nil
	}
	all := strings.Split(value.Value, ",")
	for i, one := range all {
		parts := strings.Split(strings.TrimSpace(one), "/")
		last, namespace := len(parts)-1, ""
		switch {
		case len(parts) == 5 && parts[1] == "namespaces":
			namespace = parts[2]
		case len(parts) != 3:
			continue
		}
		kinds := []groupKind{{parts[0], parts[last-1]}}
		if to := n.target(kinds, parts[last], namespace); to != nil {
			before := one[:len(one)-len(strings.TrimLeft(one, " \t"))]
			behind := one[len(strings.TrimRight(one, " \t")):]
			parts[last] = n.names[to]
			all[i] = before + strings.Join(parts, "/") + behind
		}
	}
	return n.replaceText(o, value, path, strings.Join(all, ","))
}
