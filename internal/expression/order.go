package expression

import (
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// adapter makes CEL's values of Go's. Its maps have one order: CEL goes through a map as Go does, in another order each time, so
// that what an expression makes of a map's entries would never be the same for long.
type adapter struct{}

// NativeToValue implements types.Adapter.
func (a adapter) NativeToValue(value any) ref.Val {
	switch value := value.(type) {
	case map[string]any:
		return ordered{types.NewStringInterfaceMap(a, value)}
	case map[string]string:
		return ordered{types.NewStringStringMap(a, value)}
	case map[ref.Val]ref.Val:
		return ordered{types.NewRefValMap(a, value)}
	case []any:
		return types.NewDynamicList(a, value)
	case []ref.Val:
		return types.NewRefValList(a, value)
	default:
		return types.DefaultTypeAdapter.NativeToValue(value)
	}
}

// ordered is a map whose entries come in the order of their keys.
type ordered struct{ traits.Mapper }

// Iterator implements traits.Iterable.
func (m ordered) Iterator() traits.Iterator {
	keys := []ref.Val{}
	for all := m.Mapper.Iterator(); all.HasNext() == types.True; {
		keys = append(keys, all.Next())
	}
	slices.SortFunc(keys, compareKeys)
	return types.NewRefValList(adapter{}, keys).Iterator()
}

// IsZeroValue implements traits.Zeroer.
func (m ordered) IsZeroValue() bool { return m.Size() == types.IntZero }

// compareKeys puts keys of one kind in their order, and those of different kinds in that of their types.
func compareKeys(a, b ref.Val) int {
	if first, ok := a.(traits.Comparer); ok {
		if order, both := first.Compare(b).(types.Int); both {
			return int(order)
		}
	}
	if a.Type().TypeName() < b.Type().TypeName() {
		return -1
	}
	return 1
}
