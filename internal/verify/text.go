package verify

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPrintable is how many bytes of words from outside an error or a signer's name repeats.
const maxPrintable = 320

// printable makes words from outside one line of bounded length: what does not print is escaped as Go does it.
func printable(text string) string {
	var out strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		escaped := text[:size]
		if r == utf8.RuneError && size == 1 || r != ' ' && !unicode.IsPrint(r) {
			quoted := strconv.Quote(escaped)
			escaped = quoted[1 : len(quoted)-1]
		}
		if out.Len()+len(escaped) > maxPrintable {
			out.WriteString("…")
			break
		}
		out.WriteString(escaped)
		text = text[size:]
	}
	return out.String()
}
