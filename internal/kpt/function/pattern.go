package function

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// maxNames bounds how many setters one pattern names.
	maxNames = 16
	// maxRead bounds the value that setters are recovered from.
	maxRead = 4096
)

// pattern is text with setters in it: ${image}:${tag}.
type pattern []token

// token is a setter's name, or text as it stands.
type token struct {
	name, literal string
}

// parsePattern takes a pattern apart. Whatever is not in ${} is text, but for a ${ that nothing closes.
func parsePattern(from string) (pattern, error) {
	p, rest, names := pattern{}, from, 0
	for rest != "" {
		literal, behind, found := strings.Cut(rest, "${")
		if literal != "" {
			p = append(p, token{literal: literal})
		}
		if !found {
			break
		}
		name, after, closed := strings.Cut(behind, "}")
		if !closed || name == "" || strings.ContainsAny(name, "${ \t") {
			return nil, fmt.Errorf("the pattern %q of the comment is wrong: a setter is written ${name}", from)
		}
		if names++; names > maxNames {
			return nil, fmt.Errorf("the comment names more than %d setters", maxNames)
		}
		p = append(p, token{name: name})
		rest = after
	}
	return p, nil
}

// names are the setters of the pattern, each once, in their order.
func (p pattern) names() []string {
	names := []string{}
	for _, t := range p {
		if t.name != "" && !slices.Contains(names, t.name) {
			names = append(names, t.name)
		}
	}
	return names
}

// single is the name of the setter that is all of the pattern.
func (p pattern) single() (string, bool) {
	if len(p) == 1 && p[0].name != "" {
		return p[0].name, true
	}
	return "", false
}

// with replaces setters by what is known of them.
func (p pattern) with(known map[string]string) pattern {
	out := pattern{}
	for _, t := range p {
		if value, found := known[t.name]; found && t.name != "" {
			t = token{literal: value}
		}
		out = append(out, t)
	}
	return out
}

// fill is the value that the pattern stands for. Setters that there is no value for keep what they have in the current value;
// it is an error if that cannot be told for certain: a guess would be a wrong value somewhere, some day, without a word.
func (p pattern) fill(values map[string]string, current string) (string, error) {
	filled := p.with(values)
	missing := filled.names()
	if len(missing) == 0 {
		return filled.text(), nil
	}
	// What has the values already stays as it is. Without this a value with a separator in it would grow each time.
	if filled.spread(current).whole {
		return current, nil
	}
	if len(current) > maxRead {
		return "", fmt.Errorf("values for the setters %s must be provided: what is there is too long to be read as %s",
			strings.Join(missing, ", "), p)
	}
	recovered, ambiguous := p.recover(current, missing)
	switch {
	case len(ambiguous) > 0:
		return "", fmt.Errorf("values for the setters %s must be provided: what is there can be read as %s in several ways",
			strings.Join(ambiguous, ", "), p)
	case recovered == nil:
		return "", errMissing(missing, p)
	}
	value := filled.with(recovered).text()
	if len(value) > maxRead {
		// The next time it could not be read any more.
		return "", fmt.Errorf("the value becomes longer than %d bytes", maxRead)
	}
	return value, nil
}

func errMissing(missing []string, p pattern) error {
	return fmt.Errorf("values for the setters %s must be provided: what is there is not of the form %s", strings.Join(missing, ", "), p)
}

// recover finds what setters have in the value: nothing if it is not of the pattern's form. It names those that could have more
// than one value.
func (p pattern) recover(value string, wanted []string) (recovered map[string]string, ambiguous []string) {
	recovered = map[string]string{}
	for {
		s := p.with(recovered).spread(value)
		if !s.whole {
			return nil, nil // Or a setter that is there twice has two values.
		}
		before := len(recovered)
		ambiguous = nil
		for _, name := range wanted {
			if _, known := recovered[name]; known {
				continue
			}
			if found, certain := s.only(name); certain {
				recovered[name] = found
				continue
			}
			ambiguous = append(ambiguous, name)
		}
		// With each one that is known there is less to choose for the others.
		if len(recovered) == before {
			return recovered, ambiguous
		}
	}
}

// text is the pattern, if it is all text.
func (p pattern) text() string {
	out := strings.Builder{}
	for _, t := range p {
		out.WriteString(t.literal)
	}
	return out.String()
}

// String is the pattern as it is written in comments.
func (p pattern) String() string {
	out := strings.Builder{}
	for _, t := range p {
		if t.name != "" {
			out.WriteString("${" + t.name + "}")
		}
		out.WriteString(t.literal)
	}
	return out.String()
}
