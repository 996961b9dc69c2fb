package merge

import (
	"fmt"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// mergeList merges element by element: by the keys that the schema knows, by those that the elements have themselves, or else by
// where they stand. The result is put into local.
func (m *merger) mergeList(base, theirs, local *yaml.Node, at *place) {
	all := elements{contentOf(base), theirs.Content, local.Content}
	rows := m.rows(&all, at.known)
	var before *yaml.Node
	conflicts, grants := m.conflicts, at.known != nil && at.known.grants
	if grants {
		before = copied(local)
	}
	results := map[*row]*yaml.Node{}
	for _, r := range rows {
		below := at.below(label(r), at.known.element())
		if value := m.mergeElement(&all, r, below); value != nil {
			results[r] = value
		}
	}
	content := []*yaml.Node{}
	for _, r := range m.order(&all, rows, results, at) {
		content = append(content, results[r])
	}
	if grants && m.conflicts == conflicts && givesBack(contentOf(base), before.Content, content) &&
		!m.decide(at, base, theirs, before) {
		content = before.Content
	}
	local.Content = content
}

// label is how a path names the element.
func label(r *row) string {
	if r.label != "" {
		return r.label
	}
	for _, of := range []side{inLocal, inBase, inTheirs} {
		if r.has(of) {
			return fmt.Sprintf("[%d]", r.at[of])
		}
	}
	return "[?]"
}

// mergeElement is what becomes of an element.
func (m *merger) mergeElement(all *elements, r *row, at *place) *yaml.Node {
	base, theirs, local := all.of(r, inBase), all.of(r, inTheirs), all.of(r, inLocal)
	switch {
	// Who made something else of what the other side took away has added an element, and none is lost.
	case theirs == nil && r.replaced[inLocal]:
		return local
	case local == nil && r.replaced[inTheirs]:
		return copied(theirs)
	}
	if base != nil && base.Kind == yaml.SequenceNode && (theirs == nil || local == nil) {
		return m.mergeWhole(base, theirs, local, at)
	}
	return m.merge(base, theirs, local, at)
}

// mergeWhole is for a list in a list, which is an element like others: that it is missing does not say that it is empty.
func (m *merger) mergeWhole(base, theirs, local *yaml.Node, at *place) *yaml.Node {
	switch {
	case m.same(base, theirs):
		return local
	case m.same(base, local):
		return copied(theirs)
	case theirs == nil && local == nil:
		return nil
	case m.decide(at, base, theirs, local):
		return copied(theirs)
	}
	return local
}

// rows says which elements are the same one.
func (m *merger) rows(all *elements, known *shape) []*row {
	switch {
	case known != nil && known.functions && allMaps(all):
		return m.matchFunctions(all)
	case known != nil && known.set && m.isSet(all):
		return match(all, []round[*yaml.Node]{{key: m.wholeKey}})
	}
	if rounds := m.keyedRounds(all, known); len(rounds) > 0 {
		return match(all, rounds)
	}
	return m.sequence(all)
}

// order says how the elements stand in the end: as with local, unless only upstream put them in another order.
func (m *merger) order(all *elements, rows []*row, results map[*row]*yaml.Node, at *place) []*row {
	standing := func(of side) []*row {
		found := make([]*row, len(all[of]))
		for _, r := range rows {
			if r.has(of) {
				found[r.at[of]] = r
			}
		}
		return found
	}
	theirs, local := standing(inTheirs), standing(inLocal)
	order := weave[*row]{first: local, second: theirs}
	if moved(theirs) {
		both := func(r *row) bool { return !r.has(inTheirs) || !r.has(inLocal) }
		theirOrder, localOrder := slices.DeleteFunc(slices.Clone(theirs), both), slices.DeleteFunc(slices.Clone(local), both)
		upstream := !moved(local)
		if !upstream && !slices.Equal(theirOrder, localOrder) {
			upstream = m.decide(at, orderOf(all, inBase), orderOf(all, inTheirs), orderOf(all, inLocal))
		}
		if upstream {
			order = weave[*row]{first: theirs, second: local}
		}
	}
	return order.keys(func(r *row) bool { return results[r] != nil })
}

// moved tells whether the elements that base has as well stand in another order.
func moved(standing []*row) bool {
	last := -1
	for _, r := range standing {
		if !r.has(inBase) {
			continue
		}
		if r.at[inBase] < last {
			return true
		}
		last = r.at[inBase]
	}
	return false
}

func orderOf(all *elements, of side) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Content: all[of]}
}
