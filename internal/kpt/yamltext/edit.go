package yamltext

import (
	"errors"
	"slices"
	"strings"
)

// errOverlap says that two edits are about the same bytes. The part of the document is then written anew.
var errOverlap = errors.New("edits overlap")

// edit replaces the bytes from one offset to before another.
type edit struct {
	from, to int
	text     string
}

// apply makes the edits in a part of the text, where all of them have to be. Of those at the same place, what only inserts comes
// first, in the order it was asked for.
func apply(src []byte, from, to int, edits []edit) ([]byte, error) {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b edit) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return min(a.to-a.from, 1) - min(b.to-b.from, 1)
	})
	var out strings.Builder
	at := from
	for _, e := range edits {
		if e.from < at || e.to < e.from || e.to > to {
			return nil, errOverlap
		}
		out.Write(src[at:e.from])
		out.WriteString(e.text)
		at = e.to
	}
	out.Write(src[at:to])
	return []byte(out.String()), nil
}
