package event

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestClean(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason, message, want string
	}{
		"plain":    {"Plain text stays.", "stored artifact for commit 'Füge 🚢 hinzu'", "stored artifact for commit 'Füge 🚢 hinzu'"},
		"joined":   {"The joiner inside an emoji is no control character.", "by 👩‍🚀", "by 👩‍🚀"},
		"ansi":     {"A terminal must not be steered.", "\x1b[2Jgone", `\x1b[2Jgone`},
		"c1":       {"The 8-bit control sequence introducer steers terminals too.", "a\u009b2Jb", `a\u009b2Jb`},
		"lines":    {"A second line could pass for another event.", "one\r\ntwo\tthree", `one\r\ntwo\tthree`},
		"ends":     {"White space round the text says nothing.", "  remote: denied\n", "remote: denied"},
		"bidi":     {"Text that reads backwards hides what it says.", "a\u202eb\u2066c", `a\u202eb\u2066c`},
		"invalid":  {"Bytes that are no characters are shown as bytes.", "a\xffb", `a\xffb`},
		"nul":      {"NUL ends strings in many programs.", "a\x00b", `a\x00b`},
		"password": {"A password in a URL is taken out.", "get https://me:s3cret@host/x: 401", "get https://host/x: 401"},
		"token":    {"Hosts take a token for a user.", "get 'https://ghp_s3cret@host/x'", "get 'https://host/x'"},
		"query":    {"Signed URLs have their secret in the query.", "get https://host/x?sig=s3cret 403", "get https://host/x 403"},
		"digest":   {"The @ of a digest is no userinfo.", "oci://host/app@sha256:aa", "oci://host/app@sha256:aa"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, clean(tc.message)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{"", "plain", "\x1b[31m", "https://a:b@c", "\xff\xfe", strings.Repeat("\x00", 20000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		got := clean(message)
		if len(got) > maxReceiverMessage || !utf8.ValidString(got) || strings.IndexFunc(got, unicode.IsControl) >= 0 {
			t.Errorf("clean(%q) = %q", message, got)
		}
	})
}
