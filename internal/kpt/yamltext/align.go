package yamltext

import (
	"sort"

	"go.yaml.in/yaml/v3"
)

// unmatched stands for no counterpart.
const unmatched = -1

// alignment says what becomes of a collection's entries.
type alignment struct {
	// from is for each entry that is wanted its counterpart among those there are, or unmatched.
	from []int
	// kept says for each entry there is that it has a counterpart.
	kept []bool
	// stays says for each wanted entry that its counterpart stays where it is; others with a counterpart move.
	stays []bool
}

// alignMapping matches the pairs of two mappings by their keys; the same key twice is matched in order.
func alignMapping(have []item, want []twig) *alignment {
	a := newAlignment(len(have)/2, len(want)/2)
	match(a, func(i int) (uint64, bool) { return have[2*i].said, true }, func(i int) (uint64, bool) { return want[2*i].said, true })
	a.settle()
	return a
}

// alignSequence matches the elements of two sequences: those that say the same, then those of the same name, and then those
// that are alike and stand between the same others.
func alignSequence(have []item, want []twig) *alignment {
	a := newAlignment(len(have), len(want))
	match(a, func(i int) (uint64, bool) { return have[i].said, true }, func(i int) (uint64, bool) { return want[i].said, true })
	match(a, func(i int) (string, bool) { return identity(have[i].node) }, func(i int) (string, bool) { return identity(want[i].node) })
	a.settle()
	a.fill(have, want)
	a.settle()
	return a
}

func newAlignment(have, want int) *alignment {
	a := &alignment{from: make([]int, want), kept: make([]bool, have), stays: make([]bool, want)}
	for i := range a.from {
		a.from[i] = unmatched
	}
	return a
}

func (a *alignment) pair(have, want int) {
	a.from[want] = have
	a.kept[have] = true
}

// match pairs entries with the same key that have no counterpart yet: from both ends as far as they are the same, and what is
// between in order.
func match[K comparable](a *alignment, have, want func(int) (K, bool)) {
	same := func(i, j int) bool {
		if a.kept[i] || a.from[j] != unmatched {
			return a.from[j] == i
		}
		h, hok := have(i)
		w, wok := want(j)
		if !hok || !wok || h != w {
			return false
		}
		a.pair(i, j)
		return true
	}
	low, high, top := 0, len(a.kept), len(a.from)
	for low < high && low < top && same(low, low) {
		low++
	}
	for high > low && top > low && same(high-1, top-1) {
		high--
		top--
	}
	if high == top {
		// Where as many are wanted as there are, what stands at the same place is the counterpart of first choice.
		for k := low; k < high; k++ {
			same(k, k)
		}
	}
	matchInOrder(a, low, high, top, have, want)
}

// matchInOrder pairs entries with the same key between low and high, and low and top.
func matchInOrder[K comparable](a *alignment, low, high, top int, have, want func(int) (K, bool)) {
	waiting := map[K][]int{}
	for i := low; i < high; i++ {
		if key, ok := have(i); ok && !a.kept[i] {
			waiting[key] = append(waiting[key], i)
		}
	}
	for j := low; j < top; j++ {
		key, ok := want(j)
		if queue := waiting[key]; ok && a.from[j] == unmatched && len(queue) > 0 {
			a.pair(queue[0], j)
			waiting[key] = queue[1:]
		}
	}
}

// settle decides which entries stay: as many as can without changing their order.
func (a *alignment) settle() {
	// ends holds for each length the wanted entry that ends the best rising run of that length, before the one before it.
	var ends []int
	before := make([]int, len(a.from))
	for j, i := range a.from {
		a.stays[j] = false
		if i == unmatched {
			continue
		}
		at := sort.Search(len(ends), func(k int) bool { return a.from[ends[k]] >= i })
		before[j] = unmatched
		if at > 0 {
			before[j] = ends[at-1]
		}
		if at == len(ends) {
			ends = append(ends, j)
		} else {
			ends[at] = j
		}
	}
	if len(ends) == 0 {
		return
	}
	for j := ends[len(ends)-1]; j != unmatched; j = before[j] {
		a.stays[j] = true
	}
}

// fill pairs what is left between entries that stay.
func (a *alignment) fill(have []item, want []twig) {
	i, j := 0, 0
	for next := 0; next <= len(a.from); next++ {
		upper := len(a.kept)
		if next < len(a.from) {
			if !a.stays[next] {
				continue
			}
			upper = a.from[next]
		}
		a.fillGap(have, want, rest(i, upper, func(k int) bool { return a.kept[k] }),
			rest(j, next, func(k int) bool { return a.from[k] != unmatched }))
		i, j = upper+1, next+1
	}
}

// rest lists the numbers from low to below high that are not taken.
func rest(low, high int, taken func(int) bool) []int {
	var left []int
	for k := low; k < high; k++ {
		if !taken(k) {
			left = append(left, k)
		}
	}
	return left
}

// window is how many entries are looked at for one that is alike.
const window = 8

func (a *alignment) fillGap(have []item, want []twig, there, wanted []int) {
	if len(there) == len(wanted) {
		for k, j := range wanted {
			if alike(&have[there[k]], &want[j], true) {
				a.pair(there[k], j)
			}
		}
		return
	}
	for _, j := range wanted {
		for k, i := range there[:min(window, len(there))] {
			if alike(&have[i], &want[j], false) {
				a.pair(i, j)
				there = there[k+1:]
				break
			}
		}
	}
}

// alike says whether one element may be the other, changed. Where as many are wanted as there are, it is enough that mappings
// share keys: people's comments rather stay with what takes the place of an element than go.
func alike(have *item, want *twig, even bool) bool {
	if have.node.Kind != want.node.Kind {
		return false
	}
	if have.node.Kind != yaml.MappingNode {
		return even
	}
	pairs := make(map[uint64]uint64, len(have.kids)/2)
	for i := 0; i+1 < len(have.kids); i += 2 {
		pairs[have.kids[i].said] = have.kids[i+1].said
	}
	keys, same := 0, 0
	for i := 0; i+1 < len(want.kids); i += 2 {
		value, ok := pairs[want.kids[i].said]
		if ok {
			keys++
		}
		if ok && value == want.kids[i+1].said {
			same++
		}
	}
	return even && 4*keys >= max(len(have.kids), len(want.kids)) || 4*same >= min(len(have.kids), len(want.kids))
}

// identity is what an element of a list is known by, as far as can be told without a schema: its name or what else tells
// elements of Kubernetes' lists apart.
func identity(node *yaml.Node) (string, bool) {
	if node.Kind != yaml.MappingNode {
		return "", false
	}
	for _, name := range []string{"name", "key", "id", "mountPath", "containerPort", "port", "ip", "path", "image"} {
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], content(node.Content[i+1])
			if key != nil && key.Value == name && value != nil && value.Kind == yaml.ScalarNode {
				return name + "=" + value.Value, true
			}
		}
	}
	return "", false
}
