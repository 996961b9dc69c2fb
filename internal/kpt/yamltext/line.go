package yamltext

import "bytes"

const byteOrderMark = "\ufeff"

// breakWidth is the length of the line break at the offset, in bytes, or 0 if there is none. Besides CR and LF these are what
// YAML 1.1 counts as breaks, because the parser does: NEL, LS and PS.
func breakWidth(src []byte, at int) int {
	if at >= len(src) {
		return 0
	}
	switch src[at] {
	case '\n':
		return 1
	case '\r':
		if at+1 < len(src) && src[at+1] == '\n' {
			return 2
		}
		return 1
	case 0xc2:
		if at+1 < len(src) && src[at+1] == 0x85 {
			return 2
		}
	case 0xe2:
		if at+2 < len(src) && src[at+1] == 0x80 && (src[at+2] == 0xa8 || src[at+2] == 0xa9) {
			return 3
		}
	}
	return 0
}

// lineEnd is where the line that holds the offset ends, before its break.
func lineEnd(src []byte, at int) int {
	for at < len(src) && breakWidth(src, at) == 0 {
		at++
	}
	return at
}

// nextLine is where the line after the one that holds the offset begins, or the end of the text.
func nextLine(src []byte, at int) int {
	end := lineEnd(src, at)
	return end + breakWidth(src, end)
}

// lineStart is where the line that holds the offset begins, behind the byte order mark.
func lineStart(src []byte, at int) int {
	for at > 0 && !endsWithBreak(src[:at]) {
		at--
	}
	if at == 0 && bytes.HasPrefix(src, []byte(byteOrderMark)) {
		return len(byteOrderMark)
	}
	return at
}

// endsWithBreak says whether the text ends with a line break. An offset between CR and LF does not begin a line.
func endsWithBreak(text []byte) bool {
	switch text[len(text)-1] {
	case '\n', '\r':
		return true
	case 0x85:
		return len(text) > 1 && text[len(text)-2] == 0xc2
	case 0xa8, 0xa9:
		return len(text) > 2 && text[len(text)-2] == 0x80 && text[len(text)-3] == 0xe2
	}
	return false
}

// isSpace says whether there is a blank or a line break at the offset.
func isSpace(src []byte, at int) bool {
	return src[at] == ' ' || src[at] == '\t' || breakWidth(src, at) > 0
}

func isSpaceOrEnd(src []byte, at int) bool { return at >= len(src) || isSpace(src, at) }

// isComment says whether the line that begins at the offset is a comment, and how far it is indented.
func isComment(src []byte, at int) (indent int, ok bool) {
	first := at
	for first < len(src) && (src[first] == ' ' || src[first] == '\t') {
		first++
	}
	return first - at, first < len(src) && src[first] == '#'
}

// isEmpty says whether the line that begins at the offset holds nothing but blanks.
func isEmpty(src []byte, at int) bool {
	for at < len(src) && (src[at] == ' ' || src[at] == '\t') {
		at++
	}
	return at >= len(src) || breakWidth(src, at) > 0
}
