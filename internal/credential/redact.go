package credential

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/printable"
)

// minimumRedacted is the shortest secret that is searched for in texts. Shorter ones would blank out ordinary
// words and so tell more than they hide.
const minimumRedacted = 4

// urlPattern finds URLs inside a text; quotes and white space end them.
var urlPattern = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'<>` + "`" + `]+`)

// CleanURL returns the URL without what may be secret in it: user, password, query, fragment.
// What does not parse as a URL is cut by hand, so that it keeps nothing before an "@" or after a "?" or "#".
func CleanURL(raw string) string {
	parsed, err := url.Parse(raw)
	if err != nil || parsed.Opaque != "" {
		return cutURL(raw)
	}
	parsed.User, parsed.RawQuery, parsed.Fragment, parsed.RawFragment = nil, "", "", ""
	parsed.ForceQuery = false
	return parsed.String()
}

func cutURL(raw string) string {
	if i := strings.IndexAny(raw, "?#"); i >= 0 {
		raw = raw[:i]
	}
	scheme, rest, found := strings.Cut(raw, "://")
	if !found {
		scheme, rest = "", raw
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = rest[i+1:]
	}
	if !found {
		return rest
	}
	return scheme + "://" + rest
}

// Redact cleans every URL in the text and replaces every secret, in the spellings a protocol may give it:
// as it is, percent-encoded, in base64 and hexadecimal, and escaped for printing. A secret that the text was cut short
// in counts too.
func Redact(text string, secrets ...Secret) string {
	for _, secret := range secrets {
		for _, spelling := range spellings(secret.Reveal()) {
			text = redactCut(strings.ReplaceAll(text, spelling, redacted), spelling)
		}
	}
	return urlPattern.ReplaceAllStringFunc(text, CleanURL)
}

// spellings gives each way to write the secret once, longer ones first: they may hold a shorter one.
func spellings(secret string) []string {
	trimmed := strings.TrimSpace(secret)
	if len(trimmed) < minimumRedacted {
		return nil
	}
	printed := printable.Line(trimmed, math.MaxInt) // Words of a server are shown so.
	quoted := strconv.Quote(trimmed)
	all := []string{
		secret, trimmed, url.QueryEscape(trimmed), url.PathEscape(trimmed), url.UserPassword("", trimmed).String()[1:],
		printed, strings.ReplaceAll(printed, `"`, `\"`), quoted[1 : len(quoted)-1],
	}
	for _, encoding := range []*base64.Encoding{
		base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding,
	} {
		all = append(all, encoding.EncodeToString([]byte(trimmed)))
	}
	digits := hex.EncodeToString([]byte(trimmed))
	all = append(all, digits, strings.ToUpper(digits))

	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	return slices.Compact(all)
}

// cutMark stands where a text was cut short.
const cutMark = "…"

// redactCut replaces the beginning of a secret that the text was cut short in.
func redactCut(text, spelling string) string {
	for from := 0; ; {
		found := strings.Index(text[from:], cutMark)
		if found < 0 {
			return text
		}
		end := from + found
		from = end + len(cutMark)
		for n := min(len(spelling)-1, end); n >= minimumRedacted; n-- {
			if strings.HasSuffix(text[:end], spelling[:n]) {
				text = text[:end-n] + redacted + text[end:]
				from += len(redacted) - n
				break
			}
		}
	}
}
