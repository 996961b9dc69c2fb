package script

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// check counts what a call makes, before it is made.
type check func(m *machine, args starlark.Tuple, kwargs []starlark.Tuple) error

// builtin is a function of this package.
type builtin func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error)

// predeclared are all names that a script knows: the functions of rewritten trees, and every one of the library's own in the
// place of itself. One that nobody thought of fails.
func (m *machine) predeclared() starlark.StringDict {
	known := starlark.StringDict{}
	checks := builtinChecks()
	for name, value := range starlark.Universe {
		raw, ok := value.(*starlark.Builtin)
		if !ok {
			continue // None, True and False.
		}
		known[name] = m.guarded(raw, checks[name])
	}
	for name, do := range m.own() {
		known[name] = starlark.NewBuiltin(strings.TrimPrefix(name, "$"),
			func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
				return do(args, kwargs)
			})
	}
	return known
}

// guarded is the library's function behind its check.
func (m *machine) guarded(raw *starlark.Builtin, before check) *starlark.Builtin {
	return starlark.NewBuiltin(raw.Name(),
		func(thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			if before == nil {
				return nil, fmt.Errorf("there is no %s here", raw.Name())
			}
			if err := before(m, args, kwargs); err != nil {
				return nil, err
			}
			if raw.Name() == "sorted" && len(args) > 1 {
				// It takes its key by place as well.
				args, kwargs = args[:1], append(byName(args[1:], "key", "reverse"), kwargs...)
			}
			result, err := raw.CallInternal(thread, args, m.watched(kwargs))
			if err != nil {
				return nil, err
			}
			return result, m.small(result)
		})
}

// byName are arguments as they are given by their names; those that have none are given by an empty one, which nobody takes.
func byName(args starlark.Tuple, names ...string) []starlark.Tuple {
	named := make([]starlark.Tuple, 0, len(args))
	for i, arg := range args {
		name := ""
		if i < len(names) {
			name = names[i]
		}
		named = append(named, starlark.Tuple{starlark.String(name), arg})
	}
	return named
}

// watched looks at what the function in key= returns, as somebody is going to compare it.
func (m *machine) watched(kwargs []starlark.Tuple) []starlark.Tuple {
	for i, pair := range kwargs {
		if called, ok := pair[1].(starlark.Callable); ok && pair[0] == starlark.String("key") {
			kwargs[i] = starlark.Tuple{pair[0], starlark.NewBuiltin("key",
				func(thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
					result, err := starlark.Call(thread, called, args, kwargs)
					if err == nil {
						_, err = m.look(result)
					}
					return result, err
				})}
		}
	}
	return kwargs
}

// own are this package's functions.
func (m *machine) own() map[string]builtin {
	operators := operators()
	return map[string]builtin{
		opBinary: func(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return m.binary(operators[word(args[0])], args[1], args[2])
		},
		opUpdate: func(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return m.update(operators[word(args[0])], args[1], args[2])
		},
		opUpdIdx: func(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return starlark.None, m.updateIndex(operators[word(args[0])], args[1], args[2], args[3])
		},
		opAttr: func(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return m.attr(args[0], word(args[1]))
		},
		opKey: func(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) { return args[0], m.key(args[0]) },
		opSpread: func(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return args[0], m.gone(perEntry, args[0])
		},
		opMade:    func(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) { return args[0], m.flat(args[0]) },
		"print":   m.print,
		"getattr": m.getattr,
	}
}

// word is a text that is known to be one.
func word(value starlark.Value) string {
	text, _ := starlark.AsString(value) // It is "" for what is no text.
	return text
}

// print keeps what a script prints, the first lines of it.
func (m *machine) print(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if len(m.printed) >= maxPrinted {
		return starlark.None, nil
	}
	if err := m.formatted("", "", args); err != nil {
		return nil, err
	}
	words := make([]string, 0, len(args))
	for _, arg := range args {
		if text, ok := starlark.AsString(arg); ok {
			words = append(words, text)
			continue
		}
		words = append(words, arg.String())
	}
	m.printed = append(m.printed, strings.Join(words, " "))
	return starlark.None, nil
}

func (m *machine) getattr(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var from, otherwise starlark.Value
	var name string
	if err := starlark.UnpackPositionalArgs("getattr", args, kwargs, 2, &from, &name, &otherwise); err != nil {
		return nil, err
	}
	found, err := m.attr(from, name)
	if err != nil && otherwise != nil && m.failed == nil {
		return otherwise, nil
	}
	return found, err
}

// gone counts that all values are gone through, and that something of the size is made of each element.
func (m *machine) gone(size int64, values ...starlark.Value) error {
	for _, value := range values {
		if _, ok := value.(starlark.Iterable); !ok {
			continue // The function says what is wrong.
		}
		count := int64(starlark.Len(value))
		if count < 0 {
			return errors.New("it is not known how long this is")
		}
		if err := m.times(count, size); err != nil {
			return err
		}
	}
	return nil
}

// builtinChecks are those of the library's functions.
func builtinChecks() map[string]check {
	free := func(*machine, starlark.Tuple, []starlark.Tuple) error { return nil }
	// each is for functions that go through what they get; compared for those that compare it as well.
	each := func(size int64) check {
		return func(m *machine, args starlark.Tuple, _ []starlark.Tuple) error { return m.gone(size, args...) }
	}
	compared := func(size int64) check {
		return func(m *machine, args starlark.Tuple, kwargs []starlark.Tuple) error {
			args = whole(args, kwargs)
			if err := m.gone(size, args...); err != nil {
				return err
			}
			_, err := m.look(args...)
			return err
		}
	}
	written := func(m *machine, args starlark.Tuple, kwargs []starlark.Tuple) error {
		// What stands between the arguments is there as often as they are.
		for _, pair := range kwargs {
			if err := m.times(int64(len(args)), int64(len(word(pair[1])))); err != nil {
				return err
			}
		}
		return m.formatted("{", "{", whole(args, kwargs))
	}
	collected := func(pairs bool) check {
		return func(m *machine, args starlark.Tuple, kwargs []starlark.Tuple) error {
			if err := m.take(perDict + perEntry*int64(len(kwargs))); err != nil {
				return err
			}
			if err := m.gone(perEntry, args...); err != nil {
				return err
			}
			return m.keys(args, pairs)
		}
	}
	return map[string]check{
		"abs": free, "bool": free, "chr": free, "float": free, "hasattr": free, "hash": free, "len": free, "ord": free,
		"range": free, "type": free,
		"any": each(1), "all": each(1),
		"dir":       func(m *machine, _ starlark.Tuple, _ []starlark.Tuple) error { return m.take(100 * perValue * 2) },
		"enumerate": each(2 * perList), "zip": each(2 * perList),
		"list": each(2 * perValue), "tuple": each(2 * perValue), "reversed": each(2 * perValue),
		"sorted": compared(4 * perValue), "min": compared(1), "max": compared(1),
		"dict": collected(true), "set": collected(false),
		"str": written, "repr": written, "fail": written,
		"int": number,
		// In places of their own.
		"print": free, "getattr": free,
	}
}

// keys looks at keys that come as elements, or as the first parts of pairs.
func (m *machine) keys(args starlark.Tuple, pairs bool) error {
	for _, arg := range args {
		switch arg.(type) {
		case *starlark.Dict, *starlark.Set:
			continue // They are keys already.
		}
		if err := each(arg, func(element starlark.Value) error {
			if pair, ok := element.(starlark.Indexable); ok && pairs && pair.Len() > 0 {
				element = pair.Index(0)
			}
			return m.key(element)
		}); err != nil {
			return err
		}
	}
	return nil
}

// number refuses texts that are longer than any integer may be: reading one takes the square of its length.
func number(m *machine, args starlark.Tuple, kwargs []starlark.Tuple) error {
	for _, arg := range whole(args, kwargs) {
		if text, ok := arg.(starlark.String); ok && len(text) > maxBits+2 {
			return m.fail(fmt.Errorf("%w: a number has more than %d characters", ErrLimit, maxBits))
		}
	}
	return nil
}

// whole are all arguments, those that are given by name behind the others.
func whole(args starlark.Tuple, kwargs []starlark.Tuple) starlark.Tuple {
	for _, pair := range kwargs {
		args = append(slices.Clip(args), pair[1])
	}
	return args
}
