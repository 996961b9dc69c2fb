package yamltext

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// scalar goes behind a scalar's text.
func (l *locator) scalar(node *yaml.Node, outer int) error {
	switch {
	case node.Style&yaml.DoubleQuotedStyle != 0:
		return l.doubleQuoted()
	case node.Style&yaml.SingleQuotedStyle != 0:
		return l.singleQuoted()
	case node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return l.blockScalar(outer)
	default:
		return l.plain(node.Value)
	}
}

func (l *locator) doubleQuoted() error {
	if l.peek() != '"' {
		return errLost
	}
	for l.at++; l.at < len(l.src); l.at++ {
		switch l.src[l.at] {
		case '\\':
			l.at++
		case '"':
			l.at++
			return nil
		}
	}
	return errLost
}

func (l *locator) singleQuoted() error {
	if l.peek() != '\'' {
		return errLost
	}
	for l.at++; l.at < len(l.src); l.at++ {
		if l.src[l.at] != '\'' {
			continue
		}
		l.at++
		if l.peek() != '\'' {
			return nil
		}
	}
	return errLost
}

// plain goes behind a plain scalar: its text is its value, but for line breaks, which are folded.
func (l *locator) plain(value string) error {
	for value != "" {
		if l.at >= len(l.src) {
			return errLost
		}
		if !isSpace(l.src, l.at) {
			if l.src[l.at] != value[0] {
				return errLost
			}
			l.at++
			value = value[1:]
			continue
		}
		rest, ok := strings.CutPrefix(value, l.folded())
		if !ok {
			return errLost
		}
		value = rest
	}
	return nil
}

// folded goes behind blanks and line breaks inside a plain scalar and says what they mean.
func (l *locator) folded() string {
	start, breaks := l.at, 0
	for l.at < len(l.src) && isSpace(l.src, l.at) {
		width := breakWidth(l.src, l.at)
		if width > 0 {
			breaks++
		}
		l.at += max(width, 1)
	}
	switch breaks {
	case 0:
		return string(l.src[start:l.at])
	case 1:
		return " "
	default:
		return strings.Repeat("\n", breaks-1)
	}
}

// blockScalar goes behind a literal or folded scalar: to the end of its last line of text or, if the empty lines below that
// are part of the value, to the end of the last of those.
func (l *locator) blockScalar(outer int) error {
	if l.peek() != '|' && l.peek() != '>' {
		return errLost
	}
	indent, keep := 0, false
	for l.at++; l.at < len(l.src) && !isSpace(l.src, l.at); l.at++ {
		switch c := l.src[l.at]; {
		case c == '+':
			keep = true
		case c >= '1' && c <= '9':
			indent = int(c-'0') + max(outer, 0)
		}
	}
	end := l.at
	line := nextLine(l.src, l.at)
	if indent == 0 {
		indent = l.detectIndent(line, outer)
	}
	for line < len(l.src) {
		column, over := l.spaces(line, indent), lineEnd(l.src, line)
		blank := line+column == over
		if !blank && column < indent {
			break
		}
		// Blanks that the text ends with, without a break, are no line.
		if over < len(l.src) && keep || !blank {
			end = over
		}
		line = over + max(breakWidth(l.src, over), 1)
	}
	l.at = end
	return nil
}

// detectIndent is how far the text of a block scalar is indented that does not say so itself.
func (l *locator) detectIndent(line, outer int) int {
	deepest := 0
	for line < len(l.src) {
		column := l.spaces(line, len(l.src))
		deepest = max(deepest, column)
		if breakWidth(l.src, line+column) == 0 {
			break
		}
		line = nextLine(l.src, line)
	}
	return max(deepest, outer+1, 1)
}

// spaces counts the spaces that the line begins with, up to the limit.
func (l *locator) spaces(line, limit int) int {
	count := 0
	for count < limit && line+count < len(l.src) && l.src[line+count] == ' ' {
		count++
	}
	return count
}
