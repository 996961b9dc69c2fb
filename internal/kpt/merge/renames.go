package merge

import (
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// maxRenames bounds how many pairs of objects are compared.
const maxRenames = 1 << 14

// matchRenamed finds objects that people renamed without a note: upstream still has the object, people do not, and one that people
// added is of the same kind and says mostly the same. Upstream's changes go into that one.
func matchRenamed(all *resources, rows []*row) []*row {
	added, gone := map[string][]*row{}, map[*row]bool{}
	said := map[*kpt.Resource]map[string]int{}
	key := func(r *kpt.Resource) string {
		id := r.ID()
		return strings.Join([]string{id.Group, id.Kind, r.Subpackage()}, "\x00")
	}
	for _, r := range rows {
		if local := all.of(r, inLocal); local != nil && !r.has(inBase) && !r.has(inTheirs) && !local.IsKptfile() {
			added[key(local)] = append(added[key(local)], r)
		}
	}
	pairs := 0
	for _, r := range rows {
		base := all.of(r, inBase)
		if base == nil || r.has(inLocal) || !r.has(inTheirs) || base.IsKptfile() {
			continue
		}
		var best *row
		most := 0
		for _, candidate := range added[key(base)] {
			if pairs++; pairs > maxRenames || gone[candidate] {
				continue
			}
			if alike := likeness(said, base, all.of(candidate, inLocal)); alike > most {
				best, most = candidate, alike
			}
		}
		if best != nil && r.takes(best) {
			gone[best] = true
		}
	}
	return slices.DeleteFunc(rows, func(r *row) bool { return gone[r] })
}

// likeness counts the values that both objects have, and is 0 unless these are at least half of both.
func likeness(said map[*kpt.Resource]map[string]int, a, b *kpt.Resource) int {
	for _, one := range []*kpt.Resource{a, b} {
		if said[one] == nil {
			said[one] = map[string]int{}
			valuesOf(one.Node.YNode(), "", one.ID().Name, said[one])
		}
	}
	both, countA, countB := 0, 0, 0
	for value, times := range said[a] {
		both, countA = both+min(times, said[b][value]), countA+times
	}
	for _, times := range said[b] {
		countB += times
	}
	if 2*both < max(countA, countB) {
		return 0
	}
	return both
}

// valuesOf counts the single values with their paths. Those that tell objects apart do not count, and where a value is the name of
// the object, as in labels, it counts as the same in both.
func valuesOf(node *yaml.Node, path, name string, values map[string]int) {
	switch path {
	case "/apiVersion", "/kind", "/metadata/name", "/metadata/namespace":
		return
	}
	for i, child := range node.Content {
		switch {
		case node.Kind == yaml.SequenceNode:
			valuesOf(child, path+"/-", name, values)
		case i%2 == 1:
			valuesOf(child, path+"/"+node.Content[i-1].Value, name, values)
		}
	}
	if len(node.Content) > 0 {
		return
	}
	value := node.Value
	if rest, isNamed := strings.CutPrefix(value, name); isNamed && (rest == "" || rest[0] == '-') {
		value = "\x00" + rest
	}
	values[path+"\x00"+value]++
}
