package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
	"unicode"
)

// named checks that an error of a parser is one that callers can ask for.
func named(t *testing.T, err error) {
	t.Helper()
	for _, sentinel := range []error{ErrProtocol, ErrLimit, ErrUnsafeTree, ErrURL, io.EOF} {
		if err == nil || errors.Is(err, sentinel) {
			return
		}
	}
	t.Errorf("nameless error: %v", err)
}

func checkRefs(t *testing.T, refs []Ref, limit int) {
	t.Helper()
	if len(refs) > limit {
		t.Errorf("%d refs", len(refs))
	}
	for _, ref := range refs {
		if !validRefName(ref.Name) || ref.Symref != "" && !validRefName(ref.Symref) || len(ref.Target()) != 40 {
			t.Errorf("took %+v", ref)
		}
	}
}

func FuzzReadRefs(f *testing.F) {
	id := strings.Repeat("ab", 20)
	f.Add([]byte("0000"))
	f.Add(appendFlush(appendLine(nil, "%s refs/heads/main", id)))
	f.Add(appendFlush(appendLine(appendLine(nil, "%s HEAD symref-target:refs/heads/main", id), "%s refs/tags/v1 peeled:%s", id, id)))
	f.Add(appendLine(nil, "ERR no"))
	f.Add([]byte("0003"))
	f.Add([]byte("fff0"))
	f.Fuzz(func(t *testing.T, wire []byte) {
		refs, err := readRefs(t.Context(), newPacketReader(strings.NewReader(string(wire))), nil, 10)
		named(t, err)
		checkRefs(t, refs, 10)
	})
}

func FuzzReadAdvert(f *testing.F) {
	id := strings.Repeat("ab", 20)
	head := appendFlush(appendLine(nil, "# service=git-upload-pack"))
	f.Add(appendFlush(appendLine(appendLine(head, "version 2"), "fetch=shallow filter")))
	f.Add(appendFlush(appendLine(appendLine(head, "version 2"), "object-format=sha256")))
	f.Add(appendFlush(appendLine(appendLine(nil, "version 1"), "%s HEAD\x00multi_ack symref=HEAD:refs/heads/main agent=git/2", id)))
	f.Add(appendFlush(appendLine(appendLine(nil, "%s refs/tags/v1\x00side-band-64k", id), "%s refs/tags/v1^{}", id)))
	f.Add(appendFlush(appendLine(nil, "%s capabilities^{}\x00shallow", strings.Repeat("0", 40))))
	f.Add([]byte("0000"))
	f.Fuzz(func(t *testing.T, wire []byte) {
		a, err := readAdvert(t.Context(), newPacketReader(strings.NewReader(string(wire))), uploadPack, 10)
		named(t, err)
		if err == nil {
			checkRefs(t, a.refs, 10)
			if len(a.caps) > maxPacket {
				t.Errorf("%d capabilities", len(a.caps))
			}
		}
	})
}

func FuzzPacketReader(f *testing.F) {
	f.Add([]byte("0000000100020004000aERR no0008data"))
	f.Add([]byte("fff1"))
	f.Add([]byte("0003"))
	f.Fuzz(func(t *testing.T, wire []byte) {
		in, read := newPacketReader(bytes.NewReader(wire)), 0
		for {
			kind, payload, err := in.next()
			if read += 4 + len(payload); err != nil {
				named(t, err)
				return
			}
			if read > len(wire) || kind != dataPacket && len(payload) > 0 {
				t.Fatalf("packet of kind %d with %d bytes: %d out of %d", kind, len(payload), read, len(wire))
			}
		}
	})
}

// saying is a peer that answers any question with the same bytes.
type saying struct {
	advertise *advert
	wire      []byte
}

func (s saying) advert() *advert { return s.advertise }

func (s saying) remembered() bool { return false }

func (s saying) close(bool) {}

func (s saying) ask(_ context.Context, _ []byte, limit int64) (*packetReader, error) {
	return newPacketReader(newBounded(bytes.NewReader(s.wire), limit, &meter{})), nil
}

func (s saying) send(ctx context.Context, _ message, limit int64) (*packetReader, error) {
	return s.ask(ctx, nil, limit)
}

// FuzzFetchAnswer reads up to the pack, and through it, in each version, with and without what a server may offer.
func FuzzFetchAnswer(f *testing.F) {
	pack := "0012\x01PACK and so on0000"
	f.Add(true, true, []byte("0011shallow-info\n0035shallow "+strings.Repeat("ab", 20)+"0001000dpackfile\n"+pack))
	f.Add(true, true, []byte("0014acknowledgments\n0008NAK\n0001000dpackfile\n"+pack))
	f.Add(true, true, []byte("0010ERR not here\n"))
	f.Add(false, true, []byte("0035shallow "+strings.Repeat("ab", 20)+"00000008NAK\n"+pack))
	f.Add(false, true, []byte("00000031ACK "+strings.Repeat("ab", 20)+"\n"+pack))
	f.Add(false, false, []byte("0008NAK\nPACK and so on"))
	f.Fuzz(func(t *testing.T, version2, able bool, wire []byte) {
		a := &advert{caps: capabilities{"fetch": ""}}
		if version2 {
			a.version = 2
		}
		if able {
			a.caps = capabilities{"fetch": "shallow filter", "shallow": "", "side-band-64k": "", "thin-pack": "", "multi_ack": ""}
		}
		q := question{wants: []string{strings.Repeat("ab", 20)}, haves: []string{strings.Repeat("cd", 20)}, thin: true, depth: 1, bytes: 1 << 20}
		content, err := (&Client{}).request(t.Context(), saying{a, wire}, q)
		named(t, err)
		if err != nil {
			return
		}
		got, err := io.ReadAll(content)
		named(t, err)
		if len(got) > len(wire) {
			t.Errorf("%d bytes out of %d", len(got), len(wire))
		}
	})
}

func FuzzSideband(f *testing.F) {
	f.Add([]byte("0006\x01P0006\x02x0000"))
	f.Add([]byte("0006\x03x"))
	f.Add([]byte("0005\x010004"))
	f.Fuzz(func(t *testing.T, wire []byte) {
		data, err := io.ReadAll(&sideband{packets: newPacketReader(strings.NewReader(string(wire)))})
		named(t, err)
		if len(data) > len(wire) {
			t.Errorf("%d bytes out of %d", len(data), len(wire))
		}
	})
}

func FuzzParseEndpoint(f *testing.F) {
	for _, raw := range []string{
		"https://u:p@host:1/a%2fb.git", "ssh://git@[::1]:22/~u/a", "http://-x/a", "ext::sh -c id", "git@host:a", "https://h/%0a", "ssh://host/a'b!",
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		e, err := parseEndpoint(raw)
		named(t, err)
		if err != nil {
			if parsed, parseErr := url.Parse(raw); parseErr == nil && len(parsed.User.String()) > 20 && strings.Contains(err.Error(), parsed.User.String()) {
				t.Errorf("the error repeats the userinfo: %v", err)
			}
			return
		}
		if e.url.User != nil || e.url.RawQuery != "" || e.url.Hostname() == "" || e.url.Hostname()[0] == '-' {
			t.Errorf("took %q", raw)
		}
		for _, part := range []string{e.url.Host, e.username, e.repositoryPath(), join(e.url, "info/refs").String()} {
			if strings.ContainsFunc(part, unicode.IsControl) {
				t.Errorf("control characters in %q", part)
			}
		}
		quoted := shellQuote(e.repositoryPath())
		if plain := strings.NewReplacer(`'\''`, "", `'\!'`, "").Replace(quoted); strings.Count(plain, "'") != 2 || strings.Contains(plain, "!") {
			t.Errorf("badly quoted: %s", quoted)
		}
	})
}

func FuzzUnsafeName(f *testing.F) {
	for _, name := range []string{"", ".", "..", "a", ".git", ".GIT ", "git~1", ".g\u200cit", `a\..\b`, ".git:x", "nul.bin", "\xff.git", "a\x00b"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if unsafeName(name) != "" {
			return
		}
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
			t.Errorf("took %q", name)
		}
		lower := strings.ToLower(strings.TrimRight(name, " ."))
		if lower == ".git" || lower == "git~1" || strings.HasPrefix(lower, `.git\`) {
			t.Errorf("took %q", name)
		}
	})
}

func FuzzParseTree(f *testing.F) {
	f.Add([]byte("100644 a\x00" + strings.Repeat("h", 20)))
	f.Add([]byte("40000 a\x00" + strings.Repeat("h", 20) + "120000 b\x00" + strings.Repeat("h", 20)))
	f.Add([]byte("100644"))
	f.Fuzz(func(t *testing.T, content []byte) {
		total := 0
		named(t, parseTree(content, func(entry treeEntry) error {
			total += len(entry.name) + 20
			return nil
		}))
		if total > len(content) {
			t.Errorf("%d bytes out of %d", total, len(content))
		}
	})
}

func FuzzParseCommit(f *testing.F) {
	f.Add([]byte("tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor A <a> 1 +0000\ncommitter C <c> 1 +0000\n\nx"))
	f.Add([]byte("tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\ncommitter 99999999999999999999 +9999\n\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		header, err := parseCommit(string(content))
		named(t, err)
		if _, err := header.committer.MarshalText(); err != nil {
			t.Errorf("time: %v", err)
		}
	})
}

func FuzzKnownHosts(f *testing.F) {
	f.Add("[127.0.0.*]:*", "[127.0.0.1]:2222")
	f.Add("|1|c2FsdA==|aGFzaA==", "host")
	f.Add("*a*a*a*a*b", strings.Repeat("a", 50))
	f.Fuzz(func(t *testing.T, pattern, host string) {
		host = strings.ToLower(host)
		if !matchHost("*", host) || !matchHost("*"+host, host) && !strings.HasPrefix(host, "|1|") && !strings.HasSuffix(host, "]:22") {
			t.Errorf("a star must match %q", host)
		}
		if got := matchHost(pattern, host); got && !strings.ContainsAny(pattern, "*?|]") && !strings.EqualFold(pattern, host) {
			t.Errorf("%q matches %q", pattern, host)
		}
	})
}
