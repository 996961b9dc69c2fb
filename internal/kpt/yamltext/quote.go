package yamltext

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// isPrintable says whether the text may stand in YAML as it is, line feeds aside.
func isPrintable(text string) bool {
	for _, r := range text {
		if !printable(r) && r != '\n' {
			return false
		}
	}
	return true
}

// printable is the specification's c-printable without the line breaks, the byte order mark, and what is not shown.
func printable(r rune) bool {
	switch {
	case r == '\t', r >= 0x20 && r < 0x7f, r >= 0xa0 && r <= 0xd7ff, r >= 0xe000 && r <= 0xfffd, r >= 0x10000:
		return r != '\u2028' && r != '\u2029' && r != '\ufeff'
	}
	return false
}

// isPlainText says whether the text may stand without quotes, whatever type that gives it.
func isPlainText(text string, flow bool) bool {
	if text == "" || !isPrintable(text) || strings.ContainsAny(text, "\t\n") || text != strings.Trim(text, " ") ||
		strings.Contains(text, " #") || strings.Contains(text, ": ") || strings.HasSuffix(text, ":") ||
		strings.HasPrefix(text, "---") || strings.HasPrefix(text, "...") {
		return false
	}
	if flow && strings.ContainsAny(text, ",[]{}:?") {
		return false
	}
	switch text[0] {
	case '-':
		return len(text) > 1 && text[1] != ' '
	case '?', ':':
		return !flow && len(text) > 1 && text[1] != ' '
	}
	return !strings.ContainsRune(",[]{}#&*!|>'\"%@`", rune(text[0]))
}

// doubleQuoted is the text in double quotes, on one line.
func doubleQuoted(text string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			out.WriteByte('\\')
			out.WriteRune(r)
		case r == '\n':
			out.WriteString(`\n`)
		case r == '\t':
			out.WriteString(`\t`)
		case r == '\r':
			out.WriteString(`\r`)
		case printable(r) && r != utf8.RuneError:
			out.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&out, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			fmt.Fprintf(&out, `\U%08x`, r)
		}
	}
	out.WriteByte('"')
	return out.String()
}
