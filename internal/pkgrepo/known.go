package pkgrepo

import (
	"fmt"
	"maps"
)

// known is what one snapshot is made of: details of commits, and facts of trees. What it does not have itself it takes over from
// the snapshot before, or from the memory, so that a repository which stands still in most places costs what moves, however
// much others have put into the memory.
type known struct {
	remote   string
	memory   *recollection
	before   *known // nil once the snapshot is made
	details  map[spot]detail
	facts    map[string]learned
	standing standing
	// head is the commit that found is about.
	head  string
	found folders

	// read is what the facts take that were looked at, bytes what those take that the snapshot uses, and most how much these may.
	read, bytes, most int64
	used              map[string]bool
}

// begin begins with what is known from the snapshot before, which may be nil.
func (w work) begin(before *Snapshot) *known {
	k := &known{
		remote: w.settings.Fetch.Key(), memory: w.depot.memory, most: w.bounds.facts,
		details: map[spot]detail{}, facts: map[string]learned{}, used: map[string]bool{},
	}
	if before != nil && before.known.remote == k.remote {
		k.before = before.known
	}
	return k
}

func (k *known) detail(at spot) (d detail, ok bool) {
	if d, ok = k.details[at]; ok {
		return d, true
	}
	if k.before != nil {
		d, ok = k.before.details[at]
	}
	if !ok {
		d, ok = recall[detail](k.memory, detailKey{k.remote, at})
	}
	if ok {
		k.details[at] = d
	}
	return d, ok
}

// learn keeps a detail, for as long as the commit is used.
func (k *known) learn(at spot, d detail) {
	k.details[at] = d
	k.memory.put(detailKey{k.remote, at}, d, d.weight(at))
}

// folders are those of a commit of the branch, if they are known.
func (k *known) folders(head string) (folders, bool) {
	if k.head != head && k.before != nil && k.before.head == head {
		k.head, k.found = head, k.before.found
	}
	return k.found, k.head == head
}

// factsOf are those of a tree, if they are known. More than a snapshot may have are not read: they count as known to be too
// much.
func (k *known) factsOf(tree string) (l learned, ok bool) {
	if l, ok = k.facts[tree]; ok {
		return l, true
	}
	if k.before != nil {
		l, ok = k.before.facts[tree]
	}
	if !ok {
		l, ok = recall[learned](k.memory, factsKey{k.remote, tree})
	}
	if !ok {
		return k.tooMuch(), k.read > 2*k.most
	}
	k.take(tree, l)
	return l, true
}

// learnFacts keeps the facts of a tree.
func (k *known) learnFacts(tree string, l learned) {
	k.memory.put(factsKey{k.remote, tree}, l, l.weight)
	k.take(tree, l)
}

func (k *known) take(tree string, l learned) {
	k.read += l.weight
	k.facts[tree] = l
}

// use is factsOf for a revision of the snapshot: it has the first ones that are not too much together.
func (k *known) use(tree string) (learned, bool) {
	l, ok := k.factsOf(tree)
	if !ok || k.used[tree] {
		return l, ok
	}
	if k.bytes+l.weight > k.most {
		return k.tooMuch(), true
	}
	k.used[tree] = true
	k.bytes += l.weight
	return l, true
}

func (k *known) tooMuch() learned {
	return learned{err: fmt.Errorf("%w: the Kptfiles of the repository have more than %d bytes together", ErrLimit, k.most)}
}

// end drops what no revision of the snapshot uses.
func (k *known) end() {
	maps.DeleteFunc(k.facts, func(tree string, _ learned) bool { return !k.used[tree] })
	k.before, k.used = nil, nil
}
