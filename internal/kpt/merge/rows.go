package merge

import "slices"

// side is who says something.
type side int

const (
	inBase side = iota
	inTheirs
	inLocal
	sides
)

// row is one element of a list, as far as the sides have it: where it stands with each of them, -1 if not at all.
type row struct {
	at [sides]int
	// label is how paths name it.
	label string
	// replaced is that the side made another element of base's, which does not go with that one.
	replaced [sides]bool
}

func newRow(of side, at int) *row {
	r := &row{at: [sides]int{-1, -1, -1}}
	r.at[of] = at
	return r
}

// has tells whether the side has the element.
func (r *row) has(of side) bool { return r.at[of] >= 0 }

// lists are what the three sides have.
type lists[T any] [sides][]T

// of is what the side has in the row, the zero value if it has nothing.
func (l *lists[T]) of(r *row, of side) (found T) {
	if r.has(of) {
		found = l[of][r.at[of]]
	}
	return found
}

// round is one way to tell that elements of different sides are the same one.
type round[T any] struct {
	// key is what elements have in common, and label how paths write it.
	key func(T) (key, label string, ok bool)
	// changed is that the way is good for elements of which base has one: what both sides added are two.
	changed bool
	// base, if not nil, tells which elements of base the way is good for.
	base func(T) bool
	// inOrder is that of several with the same key the first is the other side's first.
	inOrder bool
}

// match puts elements into rows, round by round. What one round found stays together.
func match[T any](all *lists[T], rounds []round[T]) []*row {
	rows := []*row{}
	for of, list := range all {
		for i := range list {
			rows = append(rows, newRow(side(of), i))
		}
	}
	for _, one := range rounds {
		rows = one.match(all, rows)
	}
	return rows
}

// match joins rows that have the key in common.
func (o *round[T]) match(all *lists[T], rows []*row) []*row {
	groups := map[string][]*row{}
	order := []string{}
	for _, r := range rows {
		key, label, ok := o.of(all, r)
		if r.label == "" {
			r.label = label
		}
		if !ok || r.isWhole() {
			continue
		}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], r)
	}
	gone := map[*row]bool{}
	for _, key := range order {
		o.join(groups[key], gone)
	}
	return slices.DeleteFunc(rows, func(r *row) bool { return gone[r] })
}

// of is the key of a row: of the first side that has it.
func (o *round[T]) of(all *lists[T], r *row) (key, label string, ok bool) {
	for of := range sides {
		if !r.has(of) {
			continue
		}
		if of == inBase && o.base != nil && !o.base(all.of(r, of)) {
			break
		}
		return o.key(all.of(r, of))
	}
	return "", "", false
}

// join makes one row of those of a group that can be one.
func (o *round[T]) join(group []*row, gone map[*row]bool) {
	if !o.inOrder && isAmbiguous(group) {
		return
	}
	waiting := queues{}
	for _, r := range group {
		waiting[r.sides()] = append(waiting[r.sides()], r)
	}
	for _, r := range group {
		if gone[r] || o.changed && !r.has(inBase) {
			continue
		}
		for _, lacks := range r.lacking() {
			if next := waiting.next(lacks, gone); next != nil && r.takes(next) {
				gone[next] = true
			}
		}
	}
}

// isAmbiguous tells whether a side is in the group more than once.
func isAmbiguous(group []*row) bool {
	var count [sides]int
	for _, r := range group {
		for of := range sides {
			if r.has(of) {
				count[of]++
			}
		}
	}
	return slices.Max(count[:]) > 1
}

// queues are rows in order, by the sides that have them.
type queues map[[sides]bool][]*row

// next is the first row of these sides that is not gone, nil for none.
func (q queues) next(of [sides]bool, gone map[*row]bool) *row {
	for len(q[of]) > 0 && gone[q[of][0]] {
		q[of] = q[of][1:]
	}
	if len(q[of]) == 0 {
		return nil
	}
	return q[of][0]
}

// sides are those that have the element.
func (r *row) sides() [sides]bool { return [sides]bool{r.has(inBase), r.has(inTheirs), r.has(inLocal)} }

// lacking are the sides that another row must have to become one with this one: all those that lack, or one of them.
func (r *row) lacking() [][sides]bool {
	has := r.sides()
	found := [][sides]bool{{!has[inBase], !has[inTheirs], !has[inLocal]}}
	for of := range sides {
		if !has[of] {
			one := [sides]bool{}
			one[of] = true
			found = append(found, one)
		}
	}
	return found
}

// isWhole tells whether all sides have the element.
func (r *row) isWhole() bool { return r.has(inBase) && r.has(inTheirs) && r.has(inLocal) }

// takes adds the other row to this one, unless a side would be there twice.
func (r *row) takes(other *row) bool {
	for of := range sides {
		if r.has(of) && other.has(of) {
			return false
		}
	}
	for of := range sides {
		if other.has(of) {
			r.at[of] = other.at[of]
		}
	}
	return true
}
