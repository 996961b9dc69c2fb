package git

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseEndpoint(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, raw, want string }{
		"https":       {"A plain URL.", "https://host/a/b.git", "https://host/a/b.git"},
		"http port":   {"A port is kept.", "http://host:8080/a", "http://host:8080/a"},
		"userinfo":    {"Userinfo is taken out.", "https://u:p@host/a", "https://host/a u p"},
		"ssh":         {"A user is taken out.", "ssh://git@host:2222/a", "ssh://host:2222/a git "},
		"ipv6":        {"Addresses are hosts.", "https://[::1]:8443/a", "https://[::1]:8443/a"},
		"file":        {"No files.", "file:///etc/passwd", ""},
		"ext":         {"No commands.", "ext::sh -c id", ""},
		"git":         {"No unencrypted git protocol.", "git://host/a", ""},
		"path":        {"No bare path.", "/srv/git/a.git", ""},
		"scp":         {"Not the scp form.", "git@host:a.git", ""},
		"option":      {"No option in place of a host.", "ssh://-oProxyCommand=id/a", ""},
		"user":        {"No option in place of a user.", "ssh://-l@host/a", ""},
		"option url":  {"No option in place of a URL.", "--upload-pack=id", ""},
		"line feed":   {"No control characters.", "https://host/a\nb", ""},
		"escaped":     {"Nor escaped ones.", "ssh://host/a%0ab", ""},
		"nul":         {"Nor NUL.", "ssh://host/a%00b", ""},
		"user nul":    {"Nor in the user.", "https://u%0d%0a:p@host/b", ""},
		"query":       {"A query would be sent on.", "https://host/a?token=x", ""},
		"empty query": {"A bare question mark too.", "https://host/a?", ""},
		"fragment":    {"A fragment means nothing.", "https://host/a#b", ""},
		"no host":     {"A host is needed.", "https:///a", ""},
		"opaque":      {"Slashes are needed.", "https:host/a", ""},
		"no path":     {"A path is needed.", "https://host/", ""},
		"password":    {"SSH has no password here.", "ssh://u:p@host/a", ""},
		"long":        {"There is an end.", "https://host/" + strings.Repeat("a", maxURLBytes), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseEndpoint(c.raw)
			if c.want == "" {
				if !errors.Is(err, ErrURL) {
					t.Errorf("%s want %v, got %v, %v", c.reason, ErrURL, got, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s %v", c.reason, err)
			}
			text := got.url.String()
			if got.username != "" {
				text += " " + got.username + " " + got.password
			}
			if text != c.want {
				t.Errorf("%s want %q, got %q", c.reason, c.want, text)
			}
		})
	}
}

func TestShellQuoteIsGits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/a/b.git": "'/a/b.git'", "a'b;id": `'a'\''b;id'`, "a!b": `'a'\!'b'`, "": "''", "$(id) `id`": "'$(id) `id`'",
	} {
		if got := shellQuote(text); got != want {
			t.Errorf("want %s, got %s", want, got)
		}
	}
}

func TestRepositoryPath(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"ssh://host/a.git": "/a.git", "ssh://host/~user/a": "~user/a", "ssh://host/~/a": "~/a",
		"ssh://host/a%20b": "/a b", "ssh://host/a'b;id": "/a'b;id",
	} {
		e, err := parseEndpoint(raw)
		if err != nil || e.repositoryPath() != want {
			t.Errorf("%s: want %s, got %s, %v", raw, want, e.repositoryPath(), err)
		}
	}
}

func TestValidRefName(t *testing.T) {
	t.Parallel()
	good := []string{"HEAD", "refs/heads/main", "refs/pull/1/head", "refs/heads/a.b", "refs/heads/ünï", "refs/x/@"}
	bad := []string{
		"", "main", "refs/", "refs/heads/", "refs//x", "refs/heads/../../config", "refs/heads/.x", "refs/heads/x.lock",
		"refs/heads/x.lock/y", "refs/heads/a..b", "refs/heads/a@{1}", "refs/heads/a b", "refs/heads/a\x00", "refs/heads/a\n",
		"refs/heads/a~1", "refs/heads/a^{}", "refs/heads/a:b", "refs/heads/a?", "refs/heads/a*", "refs/heads/a[", `refs/heads/a\b`,
		"refs/heads/x.", "refs/heads/" + strings.Repeat("x", 4096), "/refs/heads/x", "FETCH_HEAD",
	}
	for _, name := range good {
		if !validRefName(name) {
			t.Errorf("%q must be valid", name)
		}
	}
	for _, name := range bad {
		if validRefName(name) {
			t.Errorf("%q must not be valid", name)
		}
	}
}

func TestParseTreeRefusesMalformedObjects(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("h", 20)
	for name, content := range map[string]string{
		"no octal": "1009 x\x00" + id, "no mode": " x\x00" + id, "no space": "100644x\x00" + id, "short id": "100644 x\x00hhh",
		"no nul": "100644 x", "device": "60644 x\x00" + id, "fifo": "10644 x\x00" + id, "negative": "-100644 x\x00" + id,
		"large": "7777777777777777777777 x\x00" + id, "trailing": "100644 x\x00" + id + "1",
	} {
		if err := parseTree([]byte(content), func(treeEntry) error { return nil }); !errors.Is(err, ErrUnsafeTree) {
			t.Errorf("%s: want %v, got %v", name, ErrUnsafeTree, err)
		}
	}
	if unsafeName("") == "" {
		t.Error("the empty name must be unsafe")
	}
	var modes []fs.FileMode
	all := "100644 a\x00" + id + "100664 b\x00" + id + "100755 c\x00" + id + "40000 d\x00" + id + "040000 e\x00" + id + "120000 f\x00" + id + "160000 g\x00" + id
	err := parseTree([]byte(all), func(entry treeEntry) error { modes = append(modes, entry.mode); return nil })
	want := []fs.FileMode{0o644, 0o644, 0o755, fs.ModeDir | 0o755, fs.ModeDir | 0o755, fs.ModeSymlink | 0o777, fs.ModeIrregular}
	if diff := cmp.Diff(want, modes); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestParseCommit(t *testing.T) {
	t.Parallel()
	const head = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nparent 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor A <a@x> 1 +0000\n"
	for name, c := range map[string]struct{ content, subject, when string }{
		"plain":   {head + "committer C <c@x> 1700000000 +0130\n\nhello\n\nbody\n", "hello", "2023-11-14T23:43:20+01:30"},
		"west":    {head + "committer C <c@x> 1700000000 -0800\n\nx", "x", "2023-11-14T14:13:20-08:00"},
		"signed":  {head + "committer C <c@x> 1700000000 +0000\ngpgsig -----BEGIN\n \n x\n\nmessage", "message", "2023-11-14T22:13:20Z"},
		"empty":   {head + "committer C <c@x> 1700000000 +0000\n\n", "", "2023-11-14T22:13:20Z"},
		"no time": {head + "committer C <c@x>\n\nx", "x", "1970-01-01T00:00:00Z"},
		"late":    {head + "committer C <c@x> 0 +0000\nparent y\n\n\n  x\nz", "x", "1970-01-01T00:00:00Z"},
		"endless": {head + "committer C <c@x> 0 +0000\n\n" + strings.Repeat("ä", maxSubject), strings.Repeat("ä", maxSubject/2), "1970-01-01T00:00:00Z"},
		"latin":   {head + "committer C <c@x> 0 +0000\nencoding latin1\n\n\xe4", "\ufffd", "1970-01-01T00:00:00Z"},
	} {
		got, err := parseCommit(c.content)
		if err != nil || got.subject != c.subject || len(got.parents) != 1 || got.committer.Format(time.RFC3339) != strings.Replace(c.when, "Z", "Z", 1) {
			t.Errorf("%s: %q %s %v", name, got.subject, got.committer.Format(time.RFC3339), err)
		}
	}
	for name, content := range map[string]string{
		"empty": "", "no tree": "parent x\n", "short tree": "tree 12\n", "short parent": head[:46] + "parent 12\n", "no committer": head + "\nx", "truncated": head,
	} {
		if _, err := parseCommit(content); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWhatIsRememberedOfAServerIsSmall: thousands of advertisements are remembered.
func TestWhatIsRememberedOfAServerIsSmall(t *testing.T) {
	t.Parallel()
	text := appendLine(nil, "version 2")
	for i := range 200 {
		text = appendLine(text, "%d=%s", i, strings.Repeat("x", 60_000))
	}
	in := newPacketReader(newBounded(bytes.NewReader(appendFlush(text)), maxAdvertBytes, &meter{}))
	if a, err := readAdvert(t.Context(), in, uploadPack, 10); !errors.Is(err, ErrLimit) {
		t.Errorf("%d capabilities of 60,000 bytes each, and %v", len(a.caps), err)
	}
}

func TestPacketReader(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   string
		want error
	}{
		"end": {"", io.EOF}, "cut length": {"00", ErrProtocol}, "cut payload": {"0009abc", ErrProtocol},
		"three": {"0003", ErrProtocol}, "no hex": {"zzzz", ErrProtocol}, "too long": {"fff1", ErrProtocol}, "html": {"<!DOCTYPE", ErrProtocol},
	} {
		if _, _, err := newPacketReader(strings.NewReader(c.in)).next(); !errors.Is(err, c.want) {
			t.Errorf("%s: want %v, got %v", name, c.want, err)
		}
	}
	in := newPacketReader(strings.NewReader("0004000Ahello\n000100020000" + "000cERR a\x1bc\n"))
	for _, want := range []struct {
		kind packetKind
		text string
	}{{dataPacket, ""}, {dataPacket, "hello"}, {delimPacket, ""}, {endPacket, ""}, {flushPacket, ""}} {
		if kind, text, err := in.line(); err != nil || kind != want.kind || text != want.text {
			t.Errorf("want %v, got %v %q %v", want, kind, text, err)
		}
	}
	if _, _, err := in.line(); !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), `server says "a\x1bc"`) {
		t.Errorf("ERR packet: %v", err)
	}
}

// TestEachPlaceHasAKeyOfItsOwn, and the same one however it is written.
func TestEachPlaceHasAKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, one, other string
		same               bool
	}{
		"slash":         {"A slash at the end changes nothing.", "https://host/a/b", "https://host/a/b/", true},
		"host":          {"Names of hosts are in any case.", "https://host/a", "https://HOST/a", true},
		"case":          {"Paths are not.", "https://host/a", "https://host/A", false},
		"escaped":       {"An escaped slash is part of a name.", "https://host/a/b", "https://host/a%2Fb", false},
		"escaped slash": {"It is with a slash at the end as well.", "https://host/a/b", "https://host/a%2Fb/", false},
		"both escaped":  {"The slash at the end still changes nothing.", "https://host/a%2Fb", "https://host/a%2Fb/", true},
	}
	for name, c := range cases {
		if got := (Remote{URL: c.one}).Key() == (Remote{URL: c.other}).Key(); got != c.same {
			t.Errorf("%s: %s got %t", name, c.reason, got)
		}
	}
}
