package merge

import (
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt/yamltext"
)

// merger merges the documents of one object, or of one file.
type merger struct {
	*forms
	// takesUpstream is that of two changes upstream's counts.
	takesUpstream bool
	// report is told of every conflict, and conflicts counts them.
	report    func(Conflict)
	conflicts int
	// keyed are the places of keys in maps that were looked into.
	keyed map[*yaml.Node]map[int]int
}

func newMerger(takesUpstream bool, report func(Conflict)) *merger {
	return &merger{forms: newForms(), takesUpstream: takesUpstream, report: report, keyed: map[*yaml.Node]map[int]int{}}
}

// read numbers what the document says, without aliases.
func (m *merger) read(root *yaml.Node) (*plain, error) {
	written, err := newPlain(root)
	if err == nil {
		_, err = m.add(written.root, 0)
	}
	return written, err
}

// merge is the value that stands at the place in the end, nil for none. Local's node is changed and returned where it can be, so
// that its text is found again; what comes from upstream is copied.
func (m *merger) merge(base, theirs, local *yaml.Node, at *place) *yaml.Node {
	if at.upstreams && theirs != nil {
		base = local // As if people had changed nothing.
	}
	switch {
	case m.alike(base, theirs):
		return local
	case theirs == nil:
		return m.leave(base, local, at)
	case local == nil:
		return m.come(base, theirs, at)
	case m.hasParts(base, theirs, local):
		m.comments(base, theirs, local, at)
		if base != nil && base.Kind != local.Kind {
			base = nil
		}
		if local.Kind == yaml.MappingNode {
			m.mergeMap(base, theirs, local, at)
		} else {
			m.mergeList(base, theirs, local, at)
		}
		return local
	case m.same(theirs, local) || m.same(base, theirs):
		m.comments(base, theirs, local, at)
		return local
	case m.same(base, local):
		return m.replace(base, theirs, local, at)
	case isText(at, base, theirs, local):
		return m.mergeLinesOf(base, theirs, local, at)
	case m.decide(at, base, theirs, local):
		return m.replace(base, theirs, local, at)
	}
	return local
}

// decide keeps the conflict, and tells whether upstream's side of it counts.
func (m *merger) decide(at *place, base, theirs, local *yaml.Node) bool {
	m.conflict(at, base, theirs, local)
	return m.takesUpstream || at.upstreams
}

// hasParts tells whether theirs and local are merged part by part: both are maps, or both are lists. A map that has a key twice
// is not looked into.
func (m *merger) hasParts(base, theirs, local *yaml.Node) bool {
	if theirs.Kind != local.Kind || theirs.ShortTag() != local.ShortTag() {
		return false
	}
	if local.Kind != yaml.MappingNode {
		return local.Kind == yaml.SequenceNode
	}
	for _, one := range []*yaml.Node{base, theirs, local} {
		if one != nil && one.Kind == yaml.MappingNode && len(m.keys(one)) != len(one.Content)/2 {
			return false
		}
	}
	return true
}

// leave is what is left of a value that upstream no longer has.
func (m *merger) leave(base, local *yaml.Node, at *place) *yaml.Node {
	switch {
	case local == nil || base == nil:
		return local
	case m.same(base, local):
		return nil
	case isCollection(base, at) && base.Kind == local.Kind:
		// Nothing in it and no such thing is the same here: what people added stays, whatever becomes of the rest.
		return m.rest(m.merge(base, m.empty(base), local, at))
	case m.decide(at, base, nil, local):
		return nil
	}
	return local
}

// come is what becomes of a value that only upstream has.
func (m *merger) come(base, theirs *yaml.Node, at *place) *yaml.Node {
	switch {
	case base == nil:
		return copied(theirs)
	case m.same(base, theirs) && !at.upstreams:
		return nil
	case isCollection(base, at) && base.Kind == theirs.Kind:
		return m.rest(m.merge(base, theirs, m.empty(theirs), at))
	case m.decide(at, base, theirs, nil):
		return copied(theirs)
	}
	return nil
}

// isCollection tells whether the value holds entries that are nobody's business but their own, so that it is missing once the
// last one is gone.
func isCollection(node *yaml.Node, at *place) bool {
	return node.Kind == yaml.SequenceNode || node.Kind == yaml.MappingNode && at.known != nil && at.known.open
}

// empty is the collection without what is in it.
func (m *merger) empty(node *yaml.Node) *yaml.Node {
	fresh := &yaml.Node{Kind: node.Kind, Tag: node.Tag, Style: node.Style}
	// Neither is it deep, nor are there aliases in it.
	_, _ = m.add(fresh, 0)
	return fresh
}

// rest is the collection, or nothing if nothing is in it.
func (m *merger) rest(node *yaml.Node) *yaml.Node {
	if len(node.Content) == 0 {
		return nil
	}
	return node
}

// replace makes local say what upstream says, in local's way where that is possible.
func (m *merger) replace(base, theirs, local *yaml.Node, at *place) *yaml.Node {
	if theirs.Kind != yaml.ScalarNode || local.Kind != yaml.ScalarNode {
		return copied(theirs)
	}
	m.comments(base, theirs, local, at)
	quotes := yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle
	isText := theirs.ShortTag() == yaml.NodeTagString && local.ShortTag() == yaml.NodeTagString
	if !isText || local.Style&quotes == 0 || theirs.Style&^quotes != 0 {
		local.Style = theirs.Style
	}
	local.Tag, local.Value = theirs.Tag, theirs.Value
	return local
}

// comments takes over upstream's changes of comments that nobody else changed.
func (m *merger) comments(base, theirs, local *yaml.Node, at *place) {
	if at.upstreams {
		return
	}
	if base == nil {
		base = &yaml.Node{}
	}
	pick := func(base, theirs, local string) string {
		switch {
		case theirs == base || local != base:
			return local
		case theirs == "":
			return yamltext.NoComment
		}
		return theirs
	}
	local.HeadComment = pick(base.HeadComment, theirs.HeadComment, local.HeadComment)
	local.LineComment = pick(base.LineComment, theirs.LineComment, local.LineComment)
	local.FootComment = pick(base.FootComment, theirs.FootComment, local.FootComment)
}

// keys are the places of the keys in a map, as it was read.
func (m *merger) keys(node *yaml.Node) map[int]int {
	if known, found := m.keyed[node]; found {
		return known
	}
	content := contentOf(node)
	places := make(map[int]int, len(content)/2)
	for i := 0; i+1 < len(content); i += 2 {
		places[m.of[content[i]].says] = i
	}
	m.keyed[node] = places
	return places
}

// mergeMap merges field by field. Local's order stays, and a field that upstream added stands behind the one it stands behind
// there.
func (m *merger) mergeMap(base, theirs, local *yaml.Node, at *place) {
	secret := isSecret(base) || isSecret(theirs) || isSecret(local)
	inBase, inTheirs, inLocal := m.keys(base), m.keys(theirs), m.keys(local)
	decided := m.unions(base, theirs, local, at)
	side := func(node *yaml.Node, places map[int]int, key int) (name, value *yaml.Node) {
		if i, found := places[key]; found {
			return node.Content[i], node.Content[i+1]
		}
		return nil, nil
	}
	var order weave[int]
	result := map[int][2]*yaml.Node{}
	visit := func(name *yaml.Node, key int) {
		baseName, baseValue := side(base, inBase, key)
		theirName, theirValue := side(theirs, inTheirs, key)
		localName, localValue := side(local, inLocal, key)
		below := at.field(name)
		below.secret = at.secret || secret && !isShown(name.Value)
		value := localValue
		if upstream, found := decided[name.Value]; !found {
			value = m.merge(baseValue, theirValue, localValue, below)
		} else if upstream {
			value = copied(theirValue)
		}
		if value == nil {
			return
		}
		if localName == nil {
			localName = copied(theirName)
		} else if theirName != nil {
			m.comments(baseName, theirName, localName, below)
		}
		result[key] = [2]*yaml.Node{localName, value}
	}
	for i := 0; i+1 < len(local.Content); i += 2 {
		key := m.of[local.Content[i]].says
		visit(local.Content[i], key)
		order.first = append(order.first, key)
	}
	for i := 0; i+1 < len(theirs.Content); i += 2 {
		key := m.of[theirs.Content[i]].says
		if _, both := inLocal[key]; !both {
			visit(theirs.Content[i], key)
		}
		order.second = append(order.second, key)
	}
	content := []*yaml.Node{}
	for _, key := range order.keys(func(key int) bool { _, stays := result[key]; return stays }) {
		pair := result[key]
		content = append(content, pair[0], pair[1])
	}
	local.Content = content
}

// weave puts two orders together: that of the first stays, and what only the second has stands behind what it stands behind
// there, or at the beginning.
type weave[K comparable] struct{ first, second []K }

func (w *weave[K]) keys(stays func(K) bool) []K {
	inFirst := make(map[K]bool, len(w.first))
	for _, key := range w.first {
		inFirst[key] = true
	}
	var start []K
	behind := map[K][]K{}
	var last K
	found := false
	for _, key := range w.second {
		switch {
		case !stays(key):
			continue
		case inFirst[key]:
			last, found = key, true
		case found:
			behind[last] = append(behind[last], key)
		default:
			start = append(start, key)
		}
	}
	keys := slices.Clone(start)
	for _, key := range w.first {
		if stays(key) {
			keys = append(keys, key)
			keys = append(keys, behind[key]...)
		}
	}
	return keys
}
