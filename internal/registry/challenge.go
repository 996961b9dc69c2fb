package registry

import (
	"net/http"
	"strings"
)

// maxChallenges bounds the ways to authenticate that are looked at.
const maxChallenges = 8

// challenge is one way to authenticate that a server offers, see RFC 9110, 11.6.1.
type challenge struct {
	scheme string // in lower case
	params map[string]string
	// twice says that a parameter was given more than once, so that readers may disagree about it.
	twice bool
}

// choose returns the Bearer challenge, or else the Basic one.
func choose(header http.Header) (challenge, bool) {
	var offered []challenge
	for _, value := range header.Values("Www-Authenticate") {
		offered = append(offered, parseChallenges(value)...)
	}
	for _, wanted := range []string{"bearer", "basic"} {
		for _, c := range offered[:min(len(offered), maxChallenges)] {
			if c.scheme == wanted {
				return c, true
			}
		}
	}
	return challenge{}, false
}

// parseChallenges reads as far as the header is well-formed.
func parseChallenges(header string) []challenge {
	var found []challenge
	for rest := strings.TrimLeft(header, " \t,"); rest != "" && len(found) <= maxChallenges; {
		name, after := cutToken(rest)
		if name == "" {
			return found
		}
		after = strings.TrimLeft(after, " \t")
		if !strings.HasPrefix(after, "=") || len(found) == 0 {
			found = append(found, challenge{scheme: strings.ToLower(name), params: map[string]string{}})
			rest = strings.TrimLeft(after, " \t,")
			continue
		}
		value, remaining, ok := cutValue(strings.TrimLeft(after[1:], " \t"))
		if !ok {
			// What the parameter would have said is unknown, so nothing of this challenge is relied on.
			return found[:len(found)-1]
		}
		current, key := &found[len(found)-1], strings.ToLower(name)
		_, known := current.params[key]
		current.twice = current.twice || known
		current.params[key] = value
		rest = strings.TrimLeft(remaining, " \t,")
	}
	return found
}

func cutToken(text string) (token, rest string) {
	end := strings.IndexFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
	if end < 0 {
		return text, ""
	}
	return text[:end], text[end:]
}

// cutValue reads a token or a quoted string.
func cutValue(text string) (value, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		value, rest = cutToken(text)
		return value, rest, value != ""
	}
	var out strings.Builder
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return out.String(), text[i+1:], true
		case '\\':
			if i++; i == len(text) {
				return "", "", false
			}
		}
		out.WriteByte(text[i])
	}
	return "", "", false
}
