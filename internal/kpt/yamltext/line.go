package yamltext

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
