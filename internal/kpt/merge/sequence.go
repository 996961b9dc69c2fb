package merge

import (
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// partner is the element of another side that became of one of base.
type partner struct {
	// at is its place, -1 for none, and replaced is that the two have nothing in common but their place.
	at       int
	replaced bool
}

// sequence says which elements are the same one where nothing but their order tells: those that say the same, in the order in
// which most of them do; and between these those that are much the same, or as many as there were.
func (m *merger) sequence(all *elements) []*row {
	toTheirs, toLocal := m.align(all[inBase], all[inTheirs]), m.align(all[inBase], all[inLocal])
	rows := make([]*row, 0, len(all[inBase]))
	paired := [sides]map[int]bool{inTheirs: {}, inLocal: {}}
	stable := [sides][]int{}
	for i := range all[inBase] {
		// Who put something else in the place of what the other side took away has added an element.
		if toTheirs[i].replaced && toLocal[i].at < 0 {
			toTheirs[i].at = -1
		}
		if toLocal[i].replaced && toTheirs[i].at < 0 {
			toLocal[i].at = -1
		}
		r := newRow(inBase, i)
		r.at[inTheirs], r.at[inLocal] = toTheirs[i].at, toLocal[i].at
		paired[inTheirs][r.at[inTheirs]], paired[inLocal][r.at[inLocal]] = true, true
		if r.has(inTheirs) && r.has(inLocal) {
			stable[inTheirs], stable[inLocal] = append(stable[inTheirs], r.at[inTheirs]), append(stable[inLocal], r.at[inLocal])
		}
		rows = append(rows, r)
	}
	theirs, local := added(all[inTheirs], paired[inTheirs], stable[inTheirs]), added(all[inLocal], paired[inLocal], stable[inLocal])
	for gap := range stable[inLocal] {
		rows = append(rows, m.added(all, theirs[gap], local[gap])...)
	}
	return append(rows, m.added(all, theirs[len(stable[inLocal])], local[len(stable[inLocal])])...)
}

// added are the places of the elements that base does not have, by how many of the stable places are before them.
func added(list []*yaml.Node, paired map[int]bool, stable []int) map[int][]int {
	gaps := map[int][]int{}
	gap := 0
	for i := range list {
		for gap < len(stable) && stable[gap] < i {
			gap++
		}
		if !paired[i] {
			gaps[gap] = append(gaps[gap], i)
		}
	}
	return gaps
}

// added are rows of what both sides added at the same place. What both added is there once. Of lone values, such as the words of a
// command, two that are alike need not be the same: there one side must have added all that the other did.
func (m *merger) added(all *elements, theirs, local []int) []*row {
	says := func(list []*yaml.Node, places []int) (numbers []int, words bool) {
		for _, at := range places {
			numbers = append(numbers, m.of[list[at]].says)
			words = words || list[at].Kind == yaml.ScalarNode
		}
		return numbers, words
	}
	theirNumbers, theirWords := says(all[inTheirs], theirs)
	localNumbers, localWords := says(all[inLocal], local)
	both := common(theirNumbers, localNumbers)
	if (theirWords || localWords) && !isRun(both, min(len(theirs), len(local))) {
		both = nil
	}
	rows, taken := []*row{}, map[int]bool{}
	for _, found := range both {
		r := newRow(inTheirs, theirs[found.a])
		r.at[inLocal] = local[found.b]
		rows, taken[r.at[inTheirs]] = append(rows, r), true
		local[found.b] = -1
	}
	for _, at := range theirs {
		if !taken[at] {
			rows = append(rows, newRow(inTheirs, at))
		}
	}
	for _, at := range local {
		if at >= 0 {
			rows = append(rows, newRow(inLocal, at))
		}
	}
	return rows
}

// isRun tells whether the pairs are so many, and without a gap on either side.
func isRun(pairs []pair, length int) bool {
	return len(pairs) == length &&
		(length == 0 || pairs[length-1].a-pairs[0].a == length-1 && pairs[length-1].b-pairs[0].b == length-1)
}

// align says for each element of base what became of it.
func (m *merger) align(base, other []*yaml.Node) []partner {
	says := func(list []*yaml.Node) []int {
		numbers := make([]int, len(list))
		for i, element := range list {
			numbers[i] = m.of[element].says
		}
		return numbers
	}
	partners := make([]partner, len(base))
	for i := range partners {
		partners[i].at = -1
	}
	startA, startB := 0, 0
	for _, same := range append(common(says(base), says(other)), pair{len(base), len(other)}) {
		m.alignGap(base[startA:same.a], other[startB:same.b], startB, partners[startA:same.a])
		if same.a < len(base) {
			partners[same.a].at = same.b
		}
		startA, startB = same.a+1, same.b+1
	}
	return partners
}

// maxGap bounds how many pairs of elements are compared between two that say the same.
const maxGap = 1 << 12

// alignGap is for elements of which none says the same as one of the other side's.
func (m *merger) alignGap(base, other []*yaml.Node, start int, partners []partner) {
	if len(base) == len(other) {
		for i := range base {
			partners[i] = partner{at: start + i, replaced: !m.similar(base[i], other[i])}
		}
		return
	}
	if len(base)*len(other) > maxGap {
		return
	}
	// What is similar counts as the same, and so the longest sequence of it is looked for.
	for _, found := range longest(len(base), len(other), func(i, j int) bool { return m.similar(base[i], other[j]) }) {
		partners[found.a].at = start + found.b
	}
}

// similar tells whether one may have become of the other: it has the same name, at least half of the fields of a map or of the
// elements of a list say the same, or a word begins the same, like an argument with another value or an image with another tag.
func (m *merger) similar(a, b *yaml.Node) bool {
	switch {
	case a.Kind != b.Kind:
		return false
	case a.Kind == yaml.ScalarNode:
		stemA, stemB := stem(a.Value), stem(b.Value)
		return stemA != "" && stemA == stemB
	case a.Kind == yaml.SequenceNode:
		return m.similarLists(a, b)
	case a.Kind != yaml.MappingNode:
		return false
	}
	for _, name := range inferred() {
		if value := kpt.Text(a, name); value != "" && value == kpt.Text(b, name) {
			return true
		}
	}
	fields := m.keys(b)
	same := 0
	for i := 0; i+1 < len(a.Content); i += 2 {
		if at, found := fields[m.of[a.Content[i]].says]; found && m.same(a.Content[i+1], b.Content[at+1]) {
			same++
		}
	}
	return same > 0 && same*4 >= max(len(a.Content), len(b.Content))
}

func (m *merger) similarLists(a, b *yaml.Node) bool {
	left := map[int]int{}
	for _, element := range a.Content {
		left[m.of[element].says]++
	}
	same := 0
	for _, element := range b.Content {
		if says := m.of[element].says; left[says] > 0 {
			left[says]--
			same++
		}
	}
	return same > 0 && same*2 >= max(len(a.Content), len(b.Content))
}

// stem is a word up to its value: of "--level=3" it is "--level", of "app:v2" it is "app"; "" where there is none.
func stem(word string) string {
	if name, _, found := strings.Cut(word, "="); found {
		return name
	}
	if at := strings.LastIndexByte(word, ':'); at > 0 {
		return word[:at]
	}
	return ""
}
