package function

import (
	"fmt"
	"slices"
	"strconv"
)

// ValueAt is what a path leads to in a value as JSON decodes it, and the keys and places that lead there. It is written as in
// functions: spec.hosts.0, metadata.labels.[a.b/c] and containers.[name=app].image. What leads nowhere, or to several, is an error,
// and the keys end with the one that is missing.
func ValueAt(value any, path string) (found any, at []string, err error) {
	steps, err := parsePath(path)
	if err != nil {
		return nil, nil, err
	}
	for i, s := range steps {
		keys, values := s.in(value)
		switch {
		case s.every:
			return nil, at, fmt.Errorf("the path %q: '*' stands for several values", path)
		case len(values) == 0:
			if !s.where {
				at = append(at, s.key)
			}
			return nil, at, fmt.Errorf("the path %q leads nowhere: nothing is at part %d", path, i+1)
		case len(values) > 1:
			return nil, at, fmt.Errorf("the path %q leads to %d values at part %d", path, len(values), i+1)
		}
		value, at = values[0], append(at, keys[0])
	}
	return value, at, nil
}

// CheckPath says what is wrong with a path that is to lead to one value, whatever it is in.
func CheckPath(path string) error {
	steps, err := parsePath(path)
	if err == nil && slices.ContainsFunc(steps, func(s step) bool { return s.every }) {
		err = fmt.Errorf("the path %q: '*' stands for several values", path)
	}
	return err
}

// in are the values that the step leads to, and the keys or places at which they are.
func (s step) in(value any) (keys []string, values []any) {
	switch value := value.(type) {
	case map[string]any:
		if found, there := value[s.key]; there && !s.where {
			return []string{s.key}, []any{found}
		}
	case []any:
		for i, element := range value {
			if s.selects(i, element) {
				keys, values = append(keys, strconv.Itoa(i)), append(values, element)
			}
		}
	}
	return keys, values
}

// selects tells whether the step leads to the element of a list.
func (s step) selects(i int, element any) bool {
	if !s.where {
		return s.key == strconv.Itoa(i)
	}
	if s.key != "" {
		fields, _ := element.(map[string]any)
		element = fields[s.key]
	}
	return element != nil && fmt.Sprint(element) == s.value
}
