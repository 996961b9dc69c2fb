package yamltext

import "go.yaml.in/yaml/v3"

// region is the entry that holds all that changes, or nothing if none does by itself. What such an entry says can be told
// without reading the rest again.
func (r *rewriter) region() (it *item, t *twig, i int) {
	have, want := &r.root, &r.want
	for have.entries != nil && len(have.kids) == len(want.kids) {
		at := onlyChange(have, want)
		if at == unmatched {
			break
		}
		if !have.entries[at].inner {
			it, t, i = have, want, at
		}
		have, want = have.value(at), valueOf(want, at)
	}
	return it, t, i
}

// onlyChange is the one entry that changes, in its value alone.
func onlyChange(have *item, want *twig) int {
	only, pair := unmatched, 1
	if want.node.Kind == yaml.MappingNode {
		pair = 2
	}
	if have.node.Kind != want.node.Kind || have.node.ShortTag() != want.node.ShortTag() {
		return unmatched
	}
	for k := range have.kids {
		if have.kids[k].full == want.kids[k].full {
			continue
		}
		if only != unmatched || k%pair != pair-1 {
			return unmatched
		}
		only = k / pair
	}
	return only
}

// checkRegion checks the entry that holds all edits, and says whether it says what is wanted.
func (r *rewriter) checkRegion(edits []edit) bool {
	it, t, i := r.region()
	if it == nil {
		return false
	}
	from, to := it.entries[i].head, nextLine(r.src, it.entries[i].tail)
	for to < len(r.src) && isEmpty(r.src, to) {
		// Empty lines may become part of what is above.
		to = nextLine(r.src, to)
	}
	text, err := apply(r.src, from, to, edits)
	if err != nil {
		return false
	}
	document, err := parse(text)
	if err != nil || document.Kind == 0 {
		return false
	}
	found := document.Content[0]
	if found.Kind != t.node.Kind || found.Style&yaml.FlowStyle != 0 {
		return false
	}
	if t.node.Kind == yaml.MappingNode {
		return len(found.Content) == 2 && says(found.Content[0], &t.kids[2*i]) && says(found.Content[1], &t.kids[2*i+1])
	}
	return len(found.Content) == 1 && says(found.Content[0], &t.kids[i])
}
