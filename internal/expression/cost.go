package expression

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// byte10 is how many bytes of text are one unit of work, as in CEL.
const byte10 = 10

// zoneCost is that of a function that looks up a time zone, which reads a file.
const zoneCost = 500

// joinCost is that of adding two lists. The sum is a tree of lists, in which each value has to be looked for: few of
// them may be on top of each other.
const joinCost = 9_000

// work tells what calls cost. CEL counts lists and maps by the number of their values, whatever these are, and takes
// some functions of text for free; here all that a call looks at counts, and a text that it makes.
type work struct{ most uint64 }

// CallCost is the cost of a call that was made.
func (w work) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	meter := meter{left: 2 * w.most}
	switch {
	case (function == operators.In || function == operators.OldIn) && len(args) == 2:
		if _, keys := args[1].(traits.Mapper); !keys {
			meter.all(args[1])
		}
	case (function == operators.Equals || function == operators.NotEquals) && len(args) == 2:
		// One value that is not made of others is compared at once with what is.
		if whole(args[0]) || whole(args[1]) {
			meter.text(args[0])
			break
		}
		meter.all(args[0])
		meter.all(args[1])
	case function == operators.Add && len(args) == 2:
		meter.sum(args[0], args[1])
	default:
		for i, arg := range args {
			if _, isList := arg.(traits.Lister); isList && i == 0 && slices.Contains(wholeLists(), function) {
				meter.all(arg)
				continue
			}
			meter.text(arg)
		}
		if strings.HasPrefix(function, "get") && len(args) == 2 {
			meter.used += zoneCost
		}
		meter.text(result)
	}
	cost := 1 + meter.used
	return &cost
}

// wholeLists are functions that look at all of a list.
func wholeLists() []string {
	return []string{"indexOf", "lastIndexOf", "isSorted", "sum", "min", "max", "join"}
}

// whole says that a value is not made of others.
func whole(value ref.Val) bool {
	switch value.(type) {
	case traits.Lister, traits.Mapper, *types.Optional:
		return false
	default:
		return true
	}
}

// meter measures values until there is nothing left.
type meter struct{ used, left uint64 }

// all counts a value and everything in it.
func (m *meter) all(value ref.Val) {
	if m.used >= m.left {
		return
	}
	m.used++
	switch value := value.(type) {
	case traits.Mapper:
		for keys := value.Iterator(); keys.HasNext() == types.True && m.used < m.left; {
			key := keys.Next()
			m.text(key)
			m.all(value.Get(key))
		}
	case traits.Lister:
		for values := value.Iterator(); values.HasNext() == types.True && m.used < m.left; {
			m.all(values.Next())
		}
	case *types.Optional:
		if value.HasValue() {
			m.all(value.GetValue())
		}
	default:
		m.text(value)
	}
}

// sum counts what is added, and what it is added to.
func (m *meter) sum(to, added ref.Val) {
	switch to.(type) {
	case traits.MutableLister:
		// It is what a macro collects: only what is added counts.
	case traits.Lister:
		m.used += joinCost
		m.all(to)
	default:
		m.text(to)
	}
	m.all(added)
}

// text counts the length of a text.
func (m *meter) text(value ref.Val) {
	switch value := value.(type) {
	case types.String:
		m.used += uint64(len(value)+byte10-1) / byte10
	case types.Bytes:
		m.used += uint64(len(value)+byte10-1) / byte10
	}
}
