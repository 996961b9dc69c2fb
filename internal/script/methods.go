package script

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// method counts what a call of a method makes, before it is made.
type method func(m *machine, of starlark.Value, args starlark.Tuple) error

// attr is x.name: a method behind its check, or a field of ctx.
func (m *machine) attr(x starlark.Value, name string) (starlark.Value, error) {
	from, ok := x.(starlark.HasAttrs)
	if !ok {
		return nil, fmt.Errorf("%s has no .%s field or method", x.Type(), name)
	}
	value, err := from.Attr(name)
	switch {
	case err != nil:
		return nil, err
	case value == nil:
		return nil, fmt.Errorf("%s has no .%s field or method", x.Type(), name)
	}
	raw, ok := value.(*starlark.Builtin)
	if !ok {
		return value, nil
	}
	before, ok := methods(x)[name]
	if !ok {
		return nil, fmt.Errorf("%s has no .%s here", x.Type(), name)
	}
	return m.guarded(raw, func(m *machine, args starlark.Tuple, kwargs []starlark.Tuple) error {
		for _, pair := range kwargs {
			args = append(slices.Clip(args), pair[1])
		}
		return before(m, x, args)
	}), nil
}

// methods are those of a value. What yields single bytes or characters without saying how many is not among them.
func methods(of starlark.Value) map[string]method {
	switch of.(type) {
	case starlark.String:
		return stringMethods
	case *starlark.List:
		return listMethods
	case *starlark.Dict:
		return dictMethods
	case *starlark.Set:
		return setMethods
	default:
		return nil
	}
}

//nolint:gochecknoglobals // They are constant; making them for every call of a method would take longer than the call.
var (
	stringMethods = map[string]method{
		"capitalize": copied, "lower": copied, "title": copied, "upper": copied,
		"count": read, "endswith": read, "find": read, "index": read, "rfind": read, "rindex": read, "startswith": read,
		"isalnum": read, "isalpha": read, "isdigit": read, "islower": read, "isspace": read, "istitle": read, "isupper": read,
		"lstrip": read, "rstrip": read, "strip": read, "removeprefix": read, "removesuffix": read,
		"partition": read, "rpartition": read,
		"split": parted, "rsplit": parted, "splitlines": parted,
		"format": func(m *machine, of starlark.Value, args starlark.Tuple) error {
			return m.formatted(word(of), "{", args)
		},
		"join": joined, "replace": replaced,
	}
	listMethods = map[string]method{
		"append": grows, "insert": shifted, "clear": free, "pop": shifted,
		"extend": extended,
		"index":  looked, "remove": looked,
	}
	dictMethods = map[string]method{
		"clear": free, "popitem": free, "get": keyed, "pop": keyed, "setdefault": keyed,
		"items": listed, "keys": listed, "values": listed,
		"update": united(true),
	}
	setMethods = map[string]method{
		"clear": free, "pop": free, "add": keyed, "discard": keyed, "remove": keyed,
		"difference": united(false), "intersection": united(false), "issubset": united(false), "issuperset": united(false),
		"symmetric_difference": united(false), "union": united(false), "update": united(false),
	}
)

func free(*machine, starlark.Value, starlark.Tuple) error { return nil }

// read goes through a text.
func read(m *machine, of starlark.Value, _ starlark.Tuple) error {
	m.work(int64(starlark.Len(of)))
	return nil
}

// copied makes a text of at most three times the bytes: no letter becomes longer than that in the other case.
func copied(m *machine, of starlark.Value, _ starlark.Tuple) error {
	return m.times(3, int64(starlark.Len(of)))
}

// parted makes as many texts as there are separators, and one more.
func parted(m *machine, of starlark.Value, args starlark.Tuple) error {
	text, parts := word(of), 0
	if len(args) > 0 && word(args[0]) != "" {
		parts = strings.Count(text, word(args[0]))
	} else {
		parts = strings.Count(text, "\n") + strings.Count(text, "\r")
		parts += strings.Count(text, " ") + strings.Count(text, "\t") + strings.Count(text, "\v") + strings.Count(text, "\f")
		parts += len(text) - len(asciiOf(text)) // There are spaces beyond ASCII.
	}
	m.work(int64(len(text)))
	return m.times(int64(parts+1), 3*perValue)
}

// asciiOf leaves out what is not ASCII.
func asciiOf(text string) string {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return strings.Map(func(r rune) rune {
				if r >= 0x80 {
					return -1
				}
				return r
			}, text)
		}
	}
	return text
}

// joined makes a text of all elements, with the separator between.
func joined(m *machine, of starlark.Value, args starlark.Tuple) error {
	for _, arg := range args {
		if err := m.gone(int64(len(word(of)))+perValue, arg); err != nil {
			return err
		}
		total := int64(0)
		if err := each(arg, func(element starlark.Value) error {
			total += int64(len(word(element)))
			return nil
		}); err != nil {
			return err
		}
		if err := m.take(total); err != nil {
			return err
		}
	}
	return nil
}

func replaced(m *machine, of starlark.Value, args starlark.Tuple) error {
	if len(args) < 2 {
		return nil // The method says what is wrong.
	}
	text := word(of)
	m.work(int64(len(text)))
	if err := m.take(int64(len(text))); err != nil {
		return err
	}
	return m.times(int64(strings.Count(text, word(args[0]))), int64(len(word(args[1]))))
}

func grows(m *machine, _ starlark.Value, _ starlark.Tuple) error { return m.take(2 * perValue) }

// shifted moves what is behind a place in a list.
func shifted(m *machine, of starlark.Value, args starlark.Tuple) error {
	m.work(perValue * int64(starlark.Len(of)))
	return grows(m, of, args)
}

func extended(m *machine, _ starlark.Value, args starlark.Tuple) error {
	return m.gone(2*perValue, args...)
}

// looked goes through a list and compares.
func looked(m *machine, of starlark.Value, args starlark.Tuple) error {
	_, err := m.look(append(starlark.Tuple{of}, args...)...)
	return err
}

func keyed(m *machine, _ starlark.Value, args starlark.Tuple) error {
	if len(args) > 0 {
		if err := m.key(args[0]); err != nil {
			return err
		}
	}
	return m.take(perEntry)
}

func listed(m *machine, of starlark.Value, _ starlark.Tuple) error {
	return m.times(int64(starlark.Len(of)), perList+perValue)
}

// united makes one of what there is and of all that it gets.
func united(pairs bool) method {
	return func(m *machine, of starlark.Value, args starlark.Tuple) error {
		if err := m.gone(perEntry, append(starlark.Tuple{of}, args...)...); err != nil {
			return err
		}
		return m.keys(args, pairs)
	}
}
