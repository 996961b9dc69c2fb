package credential_test

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/credential"
)

func TestCleanURL(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, raw, want string }{
		"plain":        {"A URL without secrets stays as it is.", "https://host/a/b.git", "https://host/a/b.git"},
		"userinfo":     {"User and password go.", "https://u:p@host:8443/a", "https://host:8443/a"},
		"token":        {"A user name alone may be a token.", "https://tok@host/a", "https://host/a"},
		"query":        {"A query may carry a token.", "https://host/a?private_token=x#y", "https://host/a"},
		"ssh":          {"The user of an ssh URL goes as well.", "ssh://git@host/a", "ssh://host/a"},
		"unparsable":   {"What is no URL is cut by hand.", "https://u:p%zz@host/a?x=y", "https://host/a"},
		"scp":          {"The scp form keeps what follows the at sign.", "u:p@host:a", "host:a"},
		"control":      {"A line feed makes it unparsable.", "https://u:p@host/\n", "https://host/\n"},
		"opaque":       {"An opaque URL keeps nothing before the at sign.", "https:u:p@host", "host"},
		"at in secret": {"The last at sign ends the userinfo.", "https://u:p@w%@host/a", "https://host/a"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := credential.CleanURL(c.raw); got != c.want {
				t.Errorf("%s\nwant %q\n got %q", c.reason, c.want, got)
			}
		})
	}
}

func TestRedactKnowsTheSpellings(t *testing.T) {
	t.Parallel()
	value := "p/ss w&rd\n"
	trimmed := strings.TrimSpace(value)
	text := strings.Join([]string{
		"plain " + trimmed, "query " + url.QueryEscape(trimmed), "path " + url.PathEscape(trimmed),
		"base64 " + base64.StdEncoding.EncodeToString([]byte(trimmed)),
		`get "https://tok:` + url.PathEscape(trimmed) + `@host/x?token=abc": refused`,
	}, ", ")
	got := credential.Redact(text, credential.NewSecret(value), credential.NewSecret("a"))
	want := `plain [redacted], query [redacted], path [redacted], base64 [redacted], get "https://host/x": refused`
	if got != want {
		t.Errorf("want %s\n got %s", want, got)
	}
}

func TestRedactKnowsTheEncodings(t *testing.T) {
	t.Parallel()
	// One of these lengths needs two "=", one needs one, one none; the bytes make "+" and "/" in standard base64.
	for _, value := range []string{"\xfb\xef\xbe\xff\xfe pass", "\xfb\xef\xbe\xff\xfe passw", "\xfb\xef\xbe\xff\xfe passwo"} {
		raw := []byte(value)
		for name, spelling := range map[string]string{
			"base64":         base64.StdEncoding.EncodeToString(raw),
			"base64 raw":     base64.RawStdEncoding.EncodeToString(raw),
			"base64 url":     base64.URLEncoding.EncodeToString(raw),
			"base64 raw url": base64.RawURLEncoding.EncodeToString(raw),
			"hex":            hex.EncodeToString(raw),
			"upper hex":      strings.ToUpper(hex.EncodeToString(raw)),
		} {
			if got, want := credential.Redact("got <"+spelling+">", credential.NewSecret(value)), "got <[redacted]>"; got != want {
				t.Errorf("%s of %q: want %q, got %q", name, value, want, got)
			}
			cut := spelling[:len(spelling)-3]
			if got, want := credential.Redact("got "+cut+"…", credential.NewSecret(value)), "got [redacted]…"; got != want {
				t.Errorf("%s of %q, cut short: want %q, got %q", name, value, want, got)
			}
		}
	}
}
