package function

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/kpt"
)

// setNamespace moves the package's objects into a namespace, and with them what refers to them: see references.go.
//
// Without a matcher all objects move, which have to be of one namespace so far: a package whose objects are spread over several
// means something by it. With one, only those move that are, or were upstream, in the namespace that it names.
func setNamespace(ctx context.Context, r *run) error {
	target, matcher, err := readNamespace(r.config)
	if err != nil {
		return err
	}
	if r.compat {
		return (&catalogueMover{run: r, target: target, matcher: matcher, known: scopes{}, there: map[string]bool{}}).move(ctx)
	}
	m := &mover{run: r, target: target, matcher: matcher, scopes: readScopes(r.seen)}
	if err := m.plan(); err != nil {
		return err
	}
	if err := m.planNamespaces(); err != nil {
		return err
	}
	for _, o := range r.objects {
		if err := ctx.Err(); err != nil {
			return err
		}
		if o.resource.IsLocalConfig() {
			continue
		}
		if err := m.references(o); err != nil {
			return err
		}
	}
	return m.move()
}

// defaultNamespace is where objects go that name no namespace.
const defaultNamespace = "default"

// namespaceConfig is the function's own kind.
type namespaceConfig struct {
	head      `yaml:",inline"`
	Namespace string `yaml:"namespace"`
	Matcher   string `yaml:"namespaceMatcher"`
}

// packageContext is the ConfigMap that says what a package is called; its name is then the namespace's.
const packageContext = "kptfile.kpt.dev"

func readNamespace(c *config) (target, matcher string, err error) {
	var read namespaceConfig
	switch {
	case c == nil:
		return "", "", errNoConfig
	case c.own != nil:
		err = c.decode(&read, "SetNamespace")
	case c.name == packageContext && c.data["namespace"] == "":
		read.Namespace = c.data["name"]
	case c.name == packageContext:
		read.Namespace, read.Matcher = c.data["namespace"], c.data["namespaceMatcher"]
	default:
		read.Namespace, read.Matcher = c.data["namespace"], c.data["namespaceMatcher"]
		err = c.only("namespace", "namespaceMatcher")
	}
	switch {
	case err != nil:
		return "", "", err
	case read.Namespace == "":
		return "", "", errors.New("the configuration names no namespace")
	case !isNamespace(read.Namespace):
		return "", "", fmt.Errorf("%q cannot be the name of a namespace", read.Namespace)
	}
	return read.Namespace, read.Matcher, nil
}

// mover moves the objects of one run.
type mover struct {
	*run
	target, matcher string
	scopes          scopes
	// moving are the objects that get the target for their namespace, and origins the namespaces that they come from.
	moving  map[*object]bool
	origins map[string]bool
	// renamed is the Namespace that gets the target for its name, if any.
	renamed *object
	// there are the objects that are seen, by what others call them.
	there map[name][]*object
}

// plan finds the objects that move.
func (m *mover) plan() error {
	m.moving, m.origins, m.there = map[*object]bool{}, map[string]bool{}, map[name][]*object{}
	for _, o := range m.seen {
		if n := (name{groupKind{o.group(), o.kind()}, o.name()}); !o.resource.IsLocalConfig() {
			m.there[n] = append(m.there[n], o)
		}
	}
	apart, silent := map[string]bool{}, false
	for _, o := range m.objects {
		if o.resource.IsLocalConfig() || !m.scopes.moves(o) || !m.matches(o) {
			continue
		}
		m.moving[o] = true
		origin := m.origin(o)
		silent = silent || origin == ""
		if origin != "" && o.current() != "" && o.current() != m.target && origin != m.target {
			apart[origin] = true
		}
	}
	delete(m.origins, "")
	if len(m.origins) == 0 && silent {
		m.origins[defaultNamespace] = true
	}
	if m.matcher != "" {
		m.origins[m.matcher] = true
	}
	if m.matcher == "" && len(apart) > 1 {
		return fmt.Errorf("the objects are of several namespaces, %s; namespaceMatcher says which of them is meant",
			strings.Join(slices.Sorted(maps.Keys(apart)), ", "))
	}
	return nil
}

// origin is where the object comes from: the namespace it had upstream, before rendering, or now. All three are noted, as others
// may know it by any of them.
func (m *mover) origin(o *object) string {
	upstream, _ := o.upstream()
	if upstream == defaultNamespace && o.namespace != defaultNamespace {
		upstream = "" // Of an object that named no namespace, kpt says that it was the default one.
	}
	origin := ""
	for _, one := range []string{upstream, o.namespace, o.current()} {
		m.origins[one] = true
		if origin == "" {
			origin = one
		}
	}
	return origin
}

// matches tells whether the object is in the namespace that is meant.
func (m *mover) matches(o *object) bool {
	upstream, _ := o.upstream()
	return m.matcher == "" || slices.Contains([]string{o.current(), o.namespace, upstream}, m.matcher) ||
		o.current() == "" && m.matcher == defaultNamespace
}

// planNamespaces finds the Namespace that means the package's: the one that the objects come from, or the only one there is
// where they do not name any. No other is renamed, and none so that there would be two of a name.
func (m *mover) planNamespaces() error {
	var all, means, taken []*object
	for _, o := range m.objects {
		if !o.is("", "Namespace") || o.resource.IsLocalConfig() {
			continue
		}
		_, upstream := o.upstream()
		switch {
		case o.name() == m.target:
			taken = append(taken, o)
		case m.origins[o.name()] || upstream != "" && (m.origins[upstream] || upstream == m.matcher):
			means = append(means, o)
		}
		all = append(all, o)
	}
	unnamed := len(m.origins) == 0 || len(m.origins) == 1 && m.origins[defaultNamespace]
	if len(means) == 0 && len(all) == 1 && unnamed && m.matcher == "" {
		means = all
	}
	means = slices.DeleteFunc(means, func(o *object) bool { return o.name() == m.target })
	switch {
	case len(means) == 0:
		if len(all) > 0 && len(taken) == 0 {
			m.note("no Namespace of the package is the one that its objects come from; none is renamed")
		}
		return nil
	case len(means) > 1:
		return means[1].fail([]string{"metadata", "name"},
			fmt.Errorf("%s would be called %s as well: there cannot be two Namespaces of a name", means[0].name(), m.target))
	case len(taken) > 0:
		return means[0].fail([]string{"metadata", "name"},
			fmt.Errorf("there is a Namespace %s in %s already: there cannot be two of a name", m.target, taken[0].resource.File))
	}
	m.renamed = means[0]
	return nil
}

// move sets the namespaces, once everything that refers to the old ones was found.
func (m *mover) move() error {
	for _, o := range m.objects {
		if !m.moving[o] {
			continue
		}
		path := []string{"metadata", "namespace"}
		parent, err := m.mapping(o, path[:1])
		if err == nil {
			err = m.setText(o, parent, path, m.target)
		}
		if err != nil {
			return err
		}
	}
	if m.renamed == nil {
		return nil
	}
	return m.replaceText(m.renamed, kpt.Lookup(m.renamed.root, "metadata", "name"), []string{"metadata", "name"}, m.target)
}
