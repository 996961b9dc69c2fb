package script

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// operators are the binary operators by the way they are written.
func operators() map[string]syntax.Token {
	known := map[string]syntax.Token{syntax.NOT_IN.String(): syntax.NOT_IN, syntax.IN.String(): syntax.IN}
	for token := syntax.PLUS; token <= syntax.GTGT; token++ {
		known[token.String()] = token
	}
	for token := syntax.EQL; token <= syntax.NEQ; token++ {
		known[token.String()] = token
	}
	for _, token := range []syntax.Token{syntax.LT, syntax.LE, syntax.GT, syntax.GE} {
		known[token.String()] = token
	}
	return known
}

// binary is x op y.
func (m *machine) binary(op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	if isComparison(op) {
		if err := m.compared(x, y); err != nil {
			return nil, err
		}
		holds, err := starlark.Compare(op, x, y)
		return starlark.Bool(holds), err
	}
	if err := m.before(op, x, y); err != nil {
		return nil, err
	}
	result, err := starlark.Binary(op, x, y)
	if err != nil {
		return nil, err
	}
	return result, m.small(result)
}

func isComparison(op syntax.Token) bool {
	switch op {
	case syntax.EQL, syntax.NEQ, syntax.LT, syntax.LE, syntax.GT, syntax.GE:
		return true
	default:
		return false
	}
}

// compared looks at what is compared, unless one of the two is not made of others.
func (m *machine) compared(x, y starlark.Value) error {
	for _, value := range []starlark.Value{x, y} {
		switch value := value.(type) {
		case starlark.NoneType, starlark.Bool, starlark.Int, starlark.Float:
			return nil
		case starlark.String:
			m.work(int64(len(value)))
			return nil
		}
	}
	_, err := m.look(x, y)
	return err
}

// before counts what an operator makes.
func (m *machine) before(op syntax.Token, x, y starlark.Value) error {
	switch op {
	case syntax.IN, syntax.NOT_IN:
		return m.searched(x, y)
	case syntax.STAR:
		if count, ok := x.(starlark.Int); ok {
			return m.repeated(y, count)
		}
		if count, ok := y.(starlark.Int); ok {
			return m.repeated(x, count)
		}
	case syntax.PERCENT:
		if format, ok := x.(starlark.String); ok {
			return m.formatted(string(format), "%", y)
		}
	default:
	}
	// What becomes of two is no more than both together.
	return errors.Join(m.flat(x), m.flat(y))
}

// flat counts a copy of a value that does not copy what is in it.
func (m *machine) flat(value starlark.Value) error {
	switch value := value.(type) {
	case starlark.String:
		return m.take(int64(len(value)) + perValue)
	case *starlark.List, starlark.Tuple:
		return m.take(perList + perValue*int64(starlark.Len(value)))
	case *starlark.Dict, *starlark.Set:
		return m.take(perDict + perEntry*int64(starlark.Len(value)))
	default:
		return nil
	}
}

// searched looks at what is searched for, and at what has to be gone through for it.
func (m *machine) searched(x, y starlark.Value) error {
	if err := m.key(x); err != nil {
		return err
	}
	switch y := y.(type) {
	case *starlark.List, starlark.Tuple:
		_, err := m.look(x, y)
		return err
	case starlark.String:
		m.work(int64(len(y)))
	}
	return nil
}

// repeated counts what a text or a list becomes.
func (m *machine) repeated(value starlark.Value, count starlark.Int) error {
	times, fits := count.Int64()
	if !fits {
		times = maxBytes
	}
	switch value := value.(type) {
	case starlark.String:
		return m.times(times, int64(len(value)))
	case *starlark.List, starlark.Tuple:
		return m.times(times, perValue*int64(starlark.Len(value)))
	default:
		return nil
	}
}

// formatted counts a text that is made of a format and what is put where the mark stands.
func (m *machine) formatted(format, mark string, values ...starlark.Value) error {
	seen, err := m.look(values...)
	if err != nil {
		return err
	}
	if err := m.take(int64(len(format))); err != nil {
		return err
	}
	return m.times(int64(strings.Count(format, mark)), quoted*seen)
}

// quoted is how much longer a text may become in quotes.
const quoted = 4

// small refuses integers that grow.
func (m *machine) small(value starlark.Value) error {
	if number, ok := value.(starlark.Int); ok {
		if _, fits := number.Int64(); !fits && number.BigInt().BitLen() > maxBits {
			return m.fail(fmt.Errorf("%w: an integer has more than %d bits", ErrLimit, maxBits))
		}
	}
	return nil
}

const (
	// maxKeyDepth and maxKey bound tuples that something is found by: their parts are gone through each time.
	maxKeyDepth = 8
	maxKey      = 4 << 10
)

// key looks at what something is found by.
func (m *machine) key(value starlark.Value) error {
	if _, ok := value.(starlark.Tuple); !ok {
		return nil
	}
	e := eye{left: maxKey}
	if err := e.look(value, maxKeyDepth); err != nil {
		return m.fail(fmt.Errorf("%w: something is looked for by a tuple of more than %d bytes, or %d deep", ErrLimit, maxKey, maxKeyDepth))
	}
	return nil
}

// update is x op= y, where a list and a map stay the ones that they are.
func (m *machine) update(op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	method := ""
	switch x.(type) {
	case *starlark.List:
		if _, ok := y.(starlark.Iterable); ok && op == syntax.PLUS {
			method = "extend"
		}
	case *starlark.Dict:
		if _, ok := y.(*starlark.Dict); ok && op == syntax.PIPE {
			method = "update"
		}
	}
	if method == "" {
		return m.binary(op, x, y)
	}
	called, err := m.attr(x, method)
	if err != nil {
		return nil, err
	}
	_, err = starlark.Call(m.thread, called, starlark.Tuple{y}, nil)
	return x, err
}

// updateIndex is x[key] op= y.
func (m *machine) updateIndex(op syntax.Token, x, key, y starlark.Value) error {
	switch x := x.(type) {
	case *starlark.Dict:
		value, found, err := x.Get(key)
		switch {
		case err != nil:
			return err
		case !found:
			return fmt.Errorf("key %s not in dict", key)
		}
		if value, err = m.update(op, value, y); err != nil {
			return err
		}
		return x.SetKey(key, value)
	case *starlark.List:
		i, err := starlark.AsInt32(key)
		if err != nil {
			return err
		}
		if i < 0 {
			i += x.Len()
		}
		if i < 0 || i >= x.Len() {
			return fmt.Errorf("list index %d out of range", i)
		}
		value, err := m.update(op, x.Index(i), y)
		if err != nil {
			return err
		}
		return x.SetIndex(i, value)
	default:
		return fmt.Errorf("%s value does not support item assignment", x.Type())
	}
}
