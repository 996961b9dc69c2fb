package index

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// errUnusual says that a text is not in the style that the quick reader knows. Whether it is right, the YAML library knows.
var errUnusual = errors.New("unusual YAML")

// usual tells whether a text has nothing in it but what YAML takes for printable, line breaks written as \n, and no tabs
// outside of values: all else means more than it seems to.
func usual(text []byte) bool {
	ascii := true
	for _, c := range text {
		if c < ' ' && c != '\n' || c == 0x7f {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	if ascii {
		return true
	}
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1, r >= 0x80 && r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0xfffe, r == 0xffff:
			return false
		}
		text = text[size:]
	}
	return true
}

// isString tells whether a plain scalar is a string for sure. Numbers, booleans, nulls, and what could be one, are not: the
// rules are those of YAML 1.1 as the library reads it.
func isString(plain []byte) bool {
	if len(plain) == 0 {
		return false
	}
	switch c := plain[0]; {
	case c >= '0' && c <= '9':
		return !numeric(plain)
	case strings.IndexByte("yYnNtTfFoO", c) >= 0:
		switch strings.ToLower(string(plain[:min(len(plain), 6)])) {
		case "y", "yes", "true", "on", "n", "no", "false", "off", "null":
			return false
		}
		return true
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= utf8.RuneSelf:
		return true
	case strings.IndexByte("/(^$_;=", c) >= 0:
		return true
	}
	return false
}

// numeric tells whether what begins with a digit may be a number. A second dot, or a letter that is not an exponent's,
// makes it a string, unless the digits have a prefix.
func numeric(plain []byte) bool {
	if len(plain) > 1 && plain[0] == '0' && strings.IndexByte("xXoObB", plain[1]) >= 0 {
		return true
	}
	if bytes.Count(plain, []byte{'.'}) > 1 {
		return false
	}
	for _, c := range plain {
		if (c < '0' || c > '9') && strings.IndexByte("+-._eE", c) < 0 {
			return false
		}
	}
	return true
}

// plain reads a plain scalar whose first line begins at the cursor. Its next lines stand further in than the parent.
func (r *reader) plain(parent int) ([]byte, error) {
	if strings.IndexByte("&*!%@`{}[],#?-:|>'\"\t~<", r.text[r.pos]) >= 0 {
		return nil, errUnusual
	}
	value, err := r.plainLine()
	if err != nil {
		return nil, err
	}
	if r.indent() <= parent {
		return value, nil
	}
	folded := bytes.Clone(value)
	for r.indent() > parent {
		r.pos += r.indent()
		if r.text[r.pos] == '#' {
			return nil, errUnusual
		}
		if value, err = r.plainLine(); err != nil {
			return nil, err
		}
		folded = append(append(folded, ' '), value...)
	}
	return folded, nil
}

// plainLine is one line of a plain scalar.
func (r *reader) plainLine() ([]byte, error) {
	line := bytes.TrimRight(r.line(), " ")
	if len(line) == 0 || line[len(line)-1] == ':' || bytes.Contains(line, []byte(": ")) || bytes.Contains(line, []byte(" #")) {
		return nil, errUnusual
	}
	return line, nil
}

// quoted reads a scalar in single or double quotes, over as many lines as it has, and the end of its last line.
func (r *reader) quoted() ([]byte, error) {
	quote := r.text[r.pos]
	made := []byte{} // Not nil: an empty text is another value than none.
	for r.pos++; r.pos < len(r.text); {
		switch c := r.text[r.pos]; {
		case c == quote && quote == '\'' && r.pos+1 < len(r.text) && r.text[r.pos+1] == '\'':
			made = append(made, '\'')
			r.pos += 2
		case c == quote:
			r.pos++
			if len(r.line()) > 0 {
				return nil, errUnusual
			}
			return made, nil
		case c == '\\' && quote == '"':
			var err error
			if made, err = r.escape(made); err != nil {
				return nil, err
			}
		case c == '\n':
			before := bytes.TrimRight(r.text[:r.pos], " ")
			if before[len(before)-1] == '\\' {
				return nil, errUnusual // The space before the break may be an escaped one.
			}
			made = append(made[:len(made)-(r.pos-len(before))], r.fold()...)
		default:
			made = append(made, c)
			r.pos++
		}
	}
	return nil, errUnusual
}

// fold passes over a line break and the indentation behind it. One break stands for a space, more for one break less.
func (r *reader) fold() []byte {
	breaks := 0
	for ; r.pos < len(r.text) && (r.text[r.pos] == '\n' || r.text[r.pos] == ' '); r.pos++ {
		if r.text[r.pos] == '\n' {
			breaks++
		}
	}
	if breaks == 1 {
		return []byte{' '}
	}
	return bytes.Repeat([]byte{'\n'}, breaks-1)
}

// escape reads what begins with a backslash in double quotes.
func (r *reader) escape(made []byte) ([]byte, error) {
	if r.pos+1 >= len(r.text) {
		return nil, errUnusual
	}
	c := r.text[r.pos+1]
	r.pos += 2
	switch c {
	case '"', '\\', '/', ' ':
		return append(made, c), nil
	case 'n':
		return append(made, '\n'), nil
	case 't':
		return append(made, '\t'), nil
	case 'r':
		return append(made, '\r'), nil
	case '\n':
		r.pos += r.indent()
		if r.pos < len(r.text) && r.text[r.pos] == '\n' {
			return nil, errUnusual
		}
		return made, nil
	case 'x':
		return r.codePoint(made, 2)
	case 'u':
		return r.codePoint(made, 4)
	case 'U':
		return r.codePoint(made, 8)
	}
	return nil, errUnusual
}

// codePoint reads a character that is written as a number.
func (r *reader) codePoint(made []byte, digits int) ([]byte, error) {
	if r.pos+digits > len(r.text) {
		return nil, errUnusual
	}
	number, err := strconv.ParseUint(string(r.text[r.pos:r.pos+digits]), 16, 32)
	if err != nil || number > utf8.MaxRune || !utf8.ValidRune(rune(number)) {
		return nil, errUnusual
	}
	r.pos += digits
	return utf8.AppendRune(made, rune(number)), nil
}

// literal reads a block scalar whose lines stand further in than the parent, from its header on.
func (r *reader) literal(parent int) ([]byte, error) {
	header := string(r.line())
	if header != "|" && header != "|-" && header != "|+" {
		return nil, errUnusual
	}
	indent := 0
	made := []byte{} // Not nil: an empty text is another value than none.
	for r.pos < len(r.text) {
		in := r.indent()
		blank := r.text[r.pos+in] == '\n'
		switch {
		case blank && in <= indent:
			made = append(made, '\n')
			r.line()
			continue
		case !blank && in <= parent:
			return chomp(made, header), nil
		case !blank && indent == 0:
			indent = in
		case in < indent, indent == 0: // The second: spaces before the line that the indentation is taken from.
			return nil, errUnusual
		}
		r.pos += indent
		made = append(append(made, r.line()...), '\n')
	}
	return chomp(made, header), nil
}

// chomp takes away the line breaks at the end that the header does not keep.
func chomp(made []byte, header string) []byte {
	if header == "|+" {
		return made
	}
	trimmed := bytes.TrimRight(made, "\n")
	if header == "|" && len(trimmed) > 0 && len(trimmed) < len(made) {
		return made[:len(trimmed)+1]
	}
	return trimmed
}
