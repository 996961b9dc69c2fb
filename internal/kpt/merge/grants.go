package merge

import (
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// maxGrants bounds how many single permissions of a role are compared.
const maxGrants = 1 << 14

// grant is one permission of a rule: a verb on a resource, or on one object of it, or on a path.
type grant struct{ group, resource, name, path, verb string }

// givesBack tells whether the merged rules grant a permission that the base has and people took away. Rules have no key, so a
// merge by their places cannot tell: upstream may have split, joined or moved the rule that people made narrower.
func givesBack(base, local, merged []*yaml.Node) bool {
	return slices.ContainsFunc(grantsOf(base), func(g grant) bool { return g.isIn(merged) && !g.isIn(local) })
}

// grantsOf are the single permissions of the rules.
func grantsOf(rules []*yaml.Node) []grant {
	found := []grant{}
	for _, rule := range rules {
		of := []grant{{}}
		for _, field := range []struct {
			name string
			set  func(*grant, string)
		}{
			{"apiGroups", func(g *grant, s string) { g.group = s }},
			{"resources", func(g *grant, s string) { g.resource = s }},
			{"resourceNames", func(g *grant, s string) { g.name = s }},
			{"nonResourceURLs", func(g *grant, s string) { g.path = s }},
			{"verbs", func(g *grant, s string) { g.verb = s }},
		} {
			of = times(of, kpt.Elements(kpt.Lookup(rule, field.name)), field.set)
		}
		found = append(found, of...)
	}
	return found[:min(len(found), maxGrants)]
}

// times are the grants with each of the values.
func times(grants []grant, values []*yaml.Node, set func(*grant, string)) []grant {
	if len(values) == 0 {
		return grants
	}
	found := []grant{}
	for _, g := range grants {
		for _, value := range values {
			if len(found) == maxGrants {
				return found
			}
			set(&g, value.Value)
			found = append(found, g)
		}
	}
	return found
}

// isIn tells whether one of the rules grants it.
func (g grant) isIn(rules []*yaml.Node) bool {
	return slices.ContainsFunc(rules, func(rule *yaml.Node) bool {
		names := kpt.Elements(kpt.Lookup(rule, "resourceNames"))
		return allows(rule, "verbs", g.verb) && allows(rule, "apiGroups", g.group) && allows(rule, "resources", g.resource) &&
			allows(rule, "nonResourceURLs", g.path) && (len(names) == 0 || allows(rule, "resourceNames", g.name))
	})
}

// allows tells whether the field of the rule has the value, or a pattern for it.
func allows(rule *yaml.Node, field, value string) bool {
	values := kpt.Elements(kpt.Lookup(rule, field))
	return len(values) == 0 && value == "" || slices.ContainsFunc(values, func(one *yaml.Node) bool {
		prefix, isPattern := strings.CutSuffix(one.Value, "*")
		return one.Value == value || isPattern && (prefix == "" || field == "nonResourceURLs" && strings.HasPrefix(value, prefix))
	})
}
