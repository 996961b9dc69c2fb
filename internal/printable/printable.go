// Package printable makes words from outside fit for errors, logs and conditions.
// It does not know whose words they are.
package printable

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ellipsis stands where some is left out.
const ellipsis = "…"

// Line makes text one line of at most limit bytes, and an ellipsis: what does not print is escaped as Go does it, and what
// is too long is cut.
func Line(text string, limit int) string {
	return Escape(text, limit, func(r rune) bool { return r != ' ' && !unicode.IsPrint(r) })
}

// Escape is Line for other characters that are not shown.
func Escape(text string, limit int, hidden func(rune) bool) string {
	var out strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		escaped := text[:size]
		if r == utf8.RuneError && size == 1 || hidden(r) {
			quoted := strconv.Quote(escaped)
			escaped = quoted[1 : len(quoted)-1]
		}
		if out.Len()+len(escaped) > limit {
			out.WriteString(ellipsis)
			break
		}
		out.WriteString(escaped)
		text = text[size:]
	}
	return out.String()
}

// List writes the first few of the names, and how many are left out.
func List(names []string, few int) string {
	text := strings.Join(names[:min(len(names), few)], ", ")
	if more := len(names) - few; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Cut makes text at most limit bytes, with an ellipsis where some are left out, and no character in two.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.TrimRight(strings.ToValidUTF8(text[:limit-len(ellipsis)], ""), " ") + ellipsis
}
