package function

import (
	"slices"
	"strings"
)

// spread is all the ways in which a value can be read as a pattern, in time and memory of their lengths' product.
type spread struct {
	pattern pattern
	value   string
	// begins[i] are the places where the pattern's token i can begin, if what is before it is read as the tokens before;
	// ends[i] are those where it can begin, if what is behind can be read as this one and those behind it.
	begins, ends [][]bool
	// whole tells whether there is any way.
	whole bool
}

func (p pattern) spread(value string) *spread {
	s := &spread{pattern: p, value: value}
	if len(value) > maxRead || len(p.text()) > len(value) {
		return s
	}
	s.begins, s.ends = grid(len(p)+1, len(value)+1), grid(len(p)+1, len(value)+1)
	s.begins[0][0], s.ends[len(p)][len(value)] = true, true
	for i, t := range p {
		reached := false
		for at := 0; at <= len(value); at++ {
			switch {
			case t.name != "":
				reached = reached || s.begins[i][at]
				s.begins[i+1][at] = reached
			case s.begins[i][at] && strings.HasPrefix(value[at:], t.literal):
				s.begins[i+1][at+len(t.literal)] = true
			}
		}
	}
	for i, t := range slices.Backward(p) {
		reached := false
		for at := len(value); at >= 0; at-- {
			switch {
			case t.name != "":
				reached = reached || s.ends[i+1][at]
				s.ends[i][at] = reached
			case at+len(t.literal) <= len(value) && s.ends[i+1][at+len(t.literal)] && strings.HasPrefix(value[at:], t.literal):
				s.ends[i][at] = true
			}
		}
	}
	s.whole = s.begins[len(p)][len(value)]
	return s
}

func grid(rows, columns int) [][]bool {
	cells := make([]bool, rows*columns)
	made := make([][]bool, rows)
	for i := range made {
		made[i] = cells[i*columns : (i+1)*columns]
	}
	return made
}

// only is what the setter has in every way of reading the value, if that is the same. Where it stands several times, one place
// that is certain is enough.
func (s *spread) only(name string) (string, bool) {
	for i, t := range s.pattern {
		if t.name != name {
			continue
		}
		if found, certain := s.at(i); certain {
			return found, true
		}
	}
	return "", false
}

// at is what token i has.
func (s *spread) at(i int) (found string, certain bool) {
	for from := 0; from <= len(s.value); from++ {
		if !s.begins[i][from] {
			continue
		}
		for to := from; to <= len(s.value); to++ {
			if !s.ends[i+1][to] {
				continue
			}
			if one := s.value[from:to]; certain && one != found {
				return "", false
			}
			found, certain = s.value[from:to], true
		}
	}
	return found, certain
}
