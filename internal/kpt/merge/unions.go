package merge

import (
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// union is a group of fields of which one may be set at a time, such as the sources of a volume. With a discriminator its value
// says which.
type union struct {
	fields        []string
	discriminator keyField
}

// newUnion reads the words of the table: the fields, and the discriminator as "type=" with the value that it has if it is missing.
func newUnion(words []string) union {
	u := union{}
	for _, word := range words {
		name, fallback, found := strings.Cut(word, "=")
		if found {
			u.discriminator = keyField{name: name, fallback: fallback}
		}
		u.fields = append(u.fields, name)
	}
	return u
}

// part is the map with the fields of the union alone, nil if it has none of them.
func (u *union) part(node *yaml.Node) *yaml.Node {
	part := &yaml.Node{Kind: yaml.MappingNode, Tag: yaml.NodeTagMap}
	for i := 0; i+1 < len(contentOf(node)); i += 2 {
		if slices.Contains(u.fields, node.Content[i].Value) {
			part.Content = append(part.Content, node.Content[i:i+2]...)
		}
	}
	if len(part.Content) == 0 {
		return nil
	}
	return part
}

// choice names the members that are set, "" for none.
func (u *union) choice(part *yaml.Node) string {
	if u.discriminator.name != "" {
		if text := kpt.Text(part, u.discriminator.name); text != "" || part == nil {
			return text
		}
		return u.discriminator.fallback
	}
	names := []string{}
	for i := 0; i < len(contentOf(part)); i += 2 {
		names = append(names, part.Content[i].Value)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// unions decides about the unions of a map in which one side set another member while the other side did so too, or changed the
// one that was set: both together would be invalid. It returns the fields that are decided, true for upstream's.
func (m *merger) unions(base, theirs, local *yaml.Node, at *place) map[string]bool {
	decided := map[string]bool{}
	for _, u := range m.unionsOf(base, theirs, local, at.known) {
		was, up, mine := u.part(base), u.part(theirs), u.part(local)
		wasChoice, upChoice, mineChoice := u.choice(was), u.choice(up), u.choice(mine)
		switch {
		case upChoice == "" || mineChoice == "" || upChoice == mineChoice:
			continue
		case (upChoice == wasChoice || !m.differ(was, mine, u.fields)) && (mineChoice == wasChoice || !m.differ(was, up, u.fields)):
			continue
		}
		upstream := m.decide(at, was, up, mine)
		for _, name := range u.fields {
			decided[name] = upstream
		}
	}
	return decided
}

// differ tells whether the maps say different things under one of the keys.
func (m *merger) differ(a, b *yaml.Node, keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return !m.same(kpt.Lookup(a, key), kpt.Lookup(b, key)) })
}

// unionsOf are the unions that the schema knows. Without a schema a map that both sides put another one in the place of shows a
// union.
func (m *merger) unionsOf(base, theirs, local *yaml.Node, known *shape) []union {
	if known != nil {
		return known.unions
	}
	gone, up, mine := m.without(base, theirs), m.without(theirs, base), m.without(local, base)
	if len(gone) != 1 || len(up) != 1 || len(mine) != 1 || up[0] == mine[0] || !slices.Equal(gone, m.without(base, local)) {
		return nil
	}
	for _, value := range []*yaml.Node{kpt.Lookup(base, gone[0]), kpt.Lookup(theirs, up[0]), kpt.Lookup(local, mine[0])} {
		if value == nil || value.Kind != yaml.MappingNode {
			return nil
		}
	}
	return []union{{fields: []string{gone[0], up[0], mine[0]}}}
}

// without are the keys that only the first map has.
func (m *merger) without(node, other *yaml.Node) []string {
	keys, others := []string{}, m.keys(other)
	for i := 0; i+1 < len(contentOf(node)); i += 2 {
		if _, both := others[m.of[node.Content[i]].says]; !both {
			keys = append(keys, node.Content[i].Value)
		}
	}
	return keys
}
