package function

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// ensureNameSubstring has the names of objects begin or end with a text, and has what refers to them follow: see rename.go.
func ensureNameSubstring(ctx context.Context, r *run) error {
	edit, err := readNameEdit(r.config)
	if err != nil {
		return err
	}
	edit.anywhere = r.compat
	return edit.run(ctx, r)
}

// setNamePrefix is ensureNameSubstring for who only ever puts something before names.
func setNamePrefix(ctx context.Context, r *run) error {
	var read struct {
		head   `yaml:",inline"`
		Prefix string `yaml:"prefix"`
	}
	switch c := r.config; {
	case c == nil:
		return errNoConfig
	case c.own != nil:
		if err := c.decode(&read, "SetNamePrefix"); err != nil {
			return err
		}
	default:
		if err := c.only("prefix"); err != nil {
			return err
		}
		read.Prefix = c.data["prefix"]
	}
	edit := nameEdit{text: read.Prefix}
	if err := edit.check(); err != nil {
		return err
	}
	return edit.run(ctx, r)
}

// nameEdit is what is to become of names.
type nameEdit struct {
	text string
	// behind puts the text behind names and not before them.
	behind bool
	// more are other fields that have such names.
	more []fieldSpec
	// anywhere is that the text may stand anywhere in the name, as for kpt.
	anywhere bool
}

// nameConfig is the function's own kind.
type nameConfig struct {
	head      `yaml:",inline"`
	Substring string      `yaml:"substring"`
	Mode      string      `yaml:"editMode"`
	More      []fieldSpec `yaml:"additionalNameFields"`
}

func readNameEdit(c *config) (*nameEdit, error) {
	if c == nil {
		return nil, errNoConfig
	}
	edit := &nameEdit{}
	switch {
	case c.own != nil:
		read := nameConfig{}
		if err := c.decode(&read, "EnsureNameSubstring"); err != nil {
			return nil, err
		}
		if !slices.Contains([]string{"", "prepend", "append"}, read.Mode) {
			return nil, fmt.Errorf("editMode: is %q, and has to be prepend, which it is without it, or append", read.Mode)
		}
		edit = &nameEdit{text: read.Substring, behind: read.Mode == "append", more: read.More}
	default:
		if err := c.only("append", "prepend"); err != nil {
			return nil, err
		}
		before, prepends := c.data["prepend"]
		behind, appends := c.data["append"]
		if prepends == appends {
			return nil, errors.New("the configuration has to say one of prepend and append")
		}
		edit.text, edit.behind = before+behind, appends
	}
	if err := edit.check(); err != nil {
		return nil, err
	}
	return edit, checkSpecs(edit.more)
}

var (
	beginsName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.:_-]*$`)
	endsName   = regexp.MustCompile(`^[A-Za-z0-9.:_-]*[A-Za-z0-9]$`)
)

// maxName bounds names, as Kubernetes does.
const maxName = 253

func (e *nameEdit) check() error {
	fits, where := beginsName, "begin"
	if e.behind {
		fits, where = endsName, "end"
	}
	switch {
	case e.text == "":
		return errors.New("the configuration does not say what names are to have")
	case len(e.text) > maxName || !fits.MatchString(e.text):
		return fmt.Errorf("no name can %s with %q", where, e.text)
	}
	return nil
}

// of is the name as it is to be. It is not enough that the text is somewhere in it: production-db does not begin with db-.
func (e *nameEdit) of(name string) string {
	switch {
	case e.anywhere && strings.Contains(name, e.text):
		return name
	case e.behind && !strings.HasSuffix(name, e.text):
		return name + e.text
	case !e.behind && !strings.HasPrefix(name, e.text):
		return e.text + name
	}
	return name
}

// renames tells whether the object's name is free to be chosen. That of a definition or of an APIService follows from what it
// defines, and Namespaces are named by set-namespace.
func renames(o *object) bool {
	return o.name() != "" && !o.resource.IsLocalConfig() && !o.is("apiextensions.k8s.io", "CustomResourceDefinition") &&
		!o.is("apiregistration.k8s.io", "APIService") && !o.is("", "Namespace")
}

func (e *nameEdit) run(ctx context.Context, r *run) error {
	n, err := newRenamer(r)
	if err != nil {
		return err
	}
	for _, o := range r.objects {
		if !renames(o) {
			continue
		}
		if err := n.plan(o, e.of(o.name()), e.of); err != nil {
			return err
		}
	}
	if err := n.rename(ctx); err != nil {
		return err
	}
	for _, o := range r.objects {
		if o.resource.IsLocalConfig() {
			continue
		}
		for i := range e.more {
			if err := e.field(r, o, &e.more[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// field changes a field that has such a name. Nothing is made where there is none.
func (e *nameEdit) field(r *run, o *object, spec *fieldSpec) error {
	if !spec.matches(o) {
		return nil
	}
	steps, err := spec.steps()
	if err != nil {
		return err
	}
	for _, found := range reach(location{node: o.root}, steps) {
		if isNull(found.node) {
			continue
		}
		if err := r.replaceText(o, found.node, found.path, e.of(found.node.Value)); err != nil {
			return err
		}
	}
	return nil
}

// reach are the values that the steps lead to, where [] is all elements of a list.
func reach(from location, steps []string) []location {
	at := []location{from}
	for _, s := range steps {
		next := []location{}
		for _, one := range at {
			if s == "[]" {
				if one.node.Kind == yaml.SequenceNode {
					next = append(next, step{every: true}.from(one)...)
				}
				continue
			}
			if value := kpt.Lookup(one.node, s); value != nil {
				next = append(next, location{value, join(one.path, s)})
			}
		}
		at = next
	}
	return at
}
