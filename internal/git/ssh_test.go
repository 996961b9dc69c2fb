package git_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/upstream"
)

// serveSSH starts a server and the credential that it takes.
func serveSSH(t *testing.T, f *upstream.Fixture, options upstream.SSHOptions) (*upstream.GitSSH, credential.SSH) {
	t.Helper()
	server, err := upstream.ServeSSH(t.Context(), f.Root, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server, credential.SSH{PrivateKey: keyPEM(t, server.Key()), KnownHosts: server.KnownHosts()}
}

func keyPEM(t *testing.T, key *upstream.SSHKey) credential.Secret {
	t.Helper()
	content, err := key.PEM()
	if err != nil {
		t.Fatal(err)
	}
	return credential.NewSecret(content)
}

func over(url string, as credential.SSH) git.Remote {
	return git.Remote{URL: url, Credential: credential.Git{SSH: &as}}
}

func TestSSH(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	for _, version2 := range []bool{true, false} {
		server, as := serveSSH(t, h.Fixture, upstream.SSHOptions{WithoutV2: !version2})
		client := newClient(t)
		remote := over(server.URL("app"), as)
		refs, err := client.ListRefs(t.Context(), remote, "refs/tags/", "HEAD")
		want := []git.Ref{
			{Name: "HEAD", Hash: h.tip, Symref: "refs/heads/main"},
			{Name: "refs/tags/v1.0.0", Hash: h.annotation, Peeled: h.tagged},
		}
		if diff := cmp.Diff(want, refs); err != nil || diff != "" {
			t.Errorf("v2 %t: %v %s", version2, err, diff)
		}
		for _, wanted := range []git.Want{
			{Hash: h.tip, Ref: "refs/heads/main"},
			{Hash: h.tagged, Ref: "refs/tags/v1.0.0"},
			{Hash: h.pull, Ref: "refs/pull/1/head"},
			{Hash: h.old, Branch: "main"},
			{Hash: h.side},
		} {
			commit := fetch(t, client, remote, wanted)
			if diff := cmp.Diff(expected(h.repository.Tree(wanted.Hash)), files(t, commit.Tree())); diff != "" {
				t.Errorf("v2 %t: %s", version2, diff)
			}
		}
		_, err = client.Fetch(t.Context(), remote, git.Want{Hash: strings.Repeat("ab", 20)})
		checkError(t, "absent", err, git.ErrRefNotFound)
		_, err = client.ListRefs(t.Context(), over(server.URL("nope"), as))
		checkError(t, "no repository", err, git.ErrNotFound)
	}
}

func TestSSHPathIsOneWord(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	name := "it's; id $(id) `id` !x"
	server, as := serveSSH(t, f, upstream.SSHOptions{})
	// The server takes no such path; what counts is what it was asked.
	_, err := newClient(t).ListRefs(t.Context(), over(server.URL(name), as))
	checkError(t, "path", err, git.ErrProtocol)
	commands, err := server.Commands()
	if err != nil {
		t.Fatal(err)
	}
	want := []upstream.SSHCommand{{Line: `git-upload-pack '/it'\''s; id $(id) ` + "`id`" + ` '\!'x.git'`, Protocol: "version=2"}}
	if diff := cmp.Diff(want, commands); diff != "" {
		t.Error(diff)
	}
}

func TestSSHKeys(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	f.Repository("app").Commit("main", "m", upstream.Text(map[string]string{"a": "a"}))
	server, as := serveSSH(t, f, upstream.SSHOptions{})
	stranger, err := upstream.GenerateKey(upstream.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	locked, err := server.Key().EncryptedPEM(canary)
	if err != nil {
		t.Fatal(err)
	}
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	weak := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(short)})
	secret := credential.NewSecret[string]
	cases := map[string]struct {
		reason          string
		key, passphrase credential.Secret
		want            error
		word            string
	}{
		"open":             {"A key.", as.PrivateKey, credential.Secret{}, nil, ""},
		"needless":         {"A passphrase that nothing needs.", as.PrivateKey, secret(canary), nil, ""},
		"locked":           {"An encrypted key.", credential.NewSecret(locked), secret(canary), nil, ""},
		"wrong passphrase": {"Another passphrase.", credential.NewSecret(locked), secret("x" + canary), git.ErrCredential, "passphrase"},
		"no passphrase":    {"None.", credential.NewSecret(locked), credential.Secret{}, git.ErrCredential, "password"},
		"stranger":         {"A key that the server does not know.", keyPEM(t, stranger), credential.Secret{}, git.ErrAuthentication, ""},
		"garbage":          {"No key.", secret(canary), credential.Secret{}, git.ErrCredential, "identity"},
		"missing":          {"Nothing.", credential.Secret{}, credential.Secret{}, git.ErrCredential, "identity"},
		"weak":             {"A key that is too short.", credential.NewSecret(weak), credential.Secret{}, git.ErrCredential, "2048"},
	}
	for name, c := range cases {
		as := as
		as.PrivateKey, as.Passphrase = c.key, c.passphrase
		_, err := newClient(t).ListRefs(t.Context(), over(server.URL("app"), as))
		if c.want == nil {
			if err != nil {
				t.Errorf("%s %s: %v", name, c.reason, err)
			}
			continue
		}
		checkError(t, name, err, c.want)
		if err != nil && !strings.Contains(err.Error(), c.word) {
			t.Errorf("%s: the error must say %q: %v", name, c.word, err)
		}
	}
	_, err = newClient(t).ListRefs(t.Context(), git.Remote{URL: server.URL("app")})
	checkError(t, "anonymous", err, git.ErrCredential)
}

func TestSSHKeyKinds(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	f.Repository("app").Commit("main", "m", upstream.Text(map[string]string{"a": "a"}))
	server, _ := serveSSH(t, f, upstream.SSHOptions{})
	for _, kind := range []upstream.KeyType{upstream.Ed25519, upstream.ECDSA, upstream.RSA} {
		key, err := upstream.GenerateKey(kind)
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Authorize(key); err != nil {
			t.Fatal(err)
		}
		as := credential.SSH{PrivateKey: keyPEM(t, key), KnownHosts: server.KnownHosts()}
		if _, err := newClient(t).ListRefs(t.Context(), over(server.URL("app"), as)); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestHostKeys(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	f.Repository("app").Commit("main", "m", upstream.Text(map[string]string{"a": "a"}))
	kinds := []upstream.KeyType{upstream.Ed25519, upstream.ECDSA, upstream.RSA}
	server, as := serveSSH(t, f, upstream.SSHOptions{HostKeys: kinds})
	host := knownhosts.Normalize(server.Address())
	line := func(prefix string, key ssh.PublicKey) []byte {
		return fmt.Appendf(nil, "%s %s", prefix, ssh.MarshalAuthorizedKey(key))
	}
	join := func(lines ...[]byte) []byte { return bytes.Join(lines, nil) }
	mine := server.HostKey(upstream.Ed25519)
	stranger, err := upstream.GenerateKey(upstream.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	other := stranger.Signer.PublicKey()
	cases := map[string]struct {
		reason string
		file   []byte
		want   error
	}{
		"one kind":         {"Only the known kind of key is negotiated.", server.KnownHosts(upstream.ECDSA), nil},
		"rsa":              {"An RSA key is proved with SHA-2.", server.KnownHosts(upstream.RSA), nil},
		"hashed":           {"Host names may be hashed.", server.HashedKnownHosts(), nil},
		"comments":         {"Comments and empty lines are skipped.", join([]byte("# x\n\n"), server.KnownHosts()), nil},
		"wildcard":         {"Patterns.", line("[127.0.0.*]:*", mine), nil},
		"question mark":    {"Patterns of one character.", line("[12?.0.0.1]:*", mine), nil},
		"list":             {"Several names.", line("example.com,"+host, mine), nil},
		"several keys":     {"One of several keys.", join(line(host, other), line(host, mine)), nil},
		"other key":        {"Another key than known.", line(host, other), git.ErrHostKey},
		"other host":       {"The key of another host.", line("example.com", mine), git.ErrHostKey},
		"other port":       {"The key of port 22.", line("127.0.0.1", mine), git.ErrHostKey},
		"negated":          {"A pattern that excludes the host.", line("*,!"+host, mine), git.ErrHostKey},
		"revoked":          {"A revoked key.", join(line(host, mine), line("@revoked *", mine)), git.ErrHostKey},
		"revoked for host": {"A key revoked for this host.", join(line(host, mine), line("@revoked "+host, mine)), git.ErrHostKey},
		"revoked other":    {"Another key is revoked.", join(line(host, mine), line("@revoked *", other)), nil},
		"authority":        {"An authority does not vouch for a plain key.", line("@cert-authority "+host, mine), git.ErrHostKey},
		"empty":            {"No entry at all.", nil, git.ErrCredential},
		"garbage":          {"No known_hosts.", []byte("a b c d"), git.ErrCredential},
		"unknown marker":   {"A marker that nobody knows.", line("@trusted "+host, mine), git.ErrCredential},
	}
	for name, c := range cases {
		as := as
		as.KnownHosts = c.file
		_, err := newClient(t).ListRefs(t.Context(), over(server.URL("app"), as))
		if c.want == nil {
			if err != nil {
				t.Errorf("%s %s: %v", name, c.reason, err)
			}
			continue
		}
		checkError(t, name, err, c.want)
	}
	if err := server.RotateHostKeys(); err != nil {
		t.Fatal(err)
	}
	_, err = newClient(t).ListRefs(t.Context(), over(server.URL("app"), as))
	checkError(t, "rotated", err, git.ErrHostKey)
}

func TestSSHAlgorithmsAreRestricted(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	f.Repository("app").Commit("main", "m", upstream.Text(map[string]string{"a": "a"}))
	server, as := serveSSH(t, f, upstream.SSHOptions{})
	cases := map[string]struct {
		change func(*git.Options)
		works  bool
	}{
		"host key":       {func(o *git.Options) { o.HostKeyAlgorithms = []string{ssh.KeyAlgoECDSA256} }, true},
		"no host key":    {func(o *git.Options) { o.HostKeyAlgorithms = []string{ssh.KeyAlgoECDSA521} }, false},
		"key exchange":   {func(o *git.Options) { o.KexAlgorithms = []string{ssh.KeyExchangeCurve25519} }, true},
		"other exchange": {func(o *git.Options) { o.KexAlgorithms = []string{"diffie-hellman-group1-sha1"} }, false},
	}
	for name, c := range cases {
		if _, err := newClient(t, c.change).ListRefs(t.Context(), over(server.URL("app"), as)); (err == nil) != c.works {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSSHFaults(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	hash := f.Repository("app").Commit("main", "m", upstream.Files{"noise": {Content: noise(200_000)}})
	server, as := serveSSH(t, f, upstream.SSHOptions{})
	remote := over(server.URL("app"), as)

	server.Always(upstream.HangSSH())
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := newClient(t).ListRefs(ctx, remote)
	checkError(t, "hang", err, context.DeadlineExceeded)

	for name, fault := range map[string]upstream.SSHFault{
		"drop": upstream.DropSSH(), "cut handshake": upstream.CutSSHAfter(500), "cut pack": upstream.CutSSHAfter(50_000),
	} {
		server.Heal()
		server.Always(fault)
		_, err = newClient(t).Fetch(t.Context(), remote, git.Want{Hash: hash})
		checkError(t, name, err, nil)
	}

	server.Heal()
	server.Always(upstream.HangSSHAfter(50_000))
	stalling := newClientOver(t, transport.Options{AllowLoopback: true, StallTimeout: time.Second})
	_, err = stalling.Fetch(t.Context(), remote, git.Want{Hash: hash})
	checkError(t, "stall", err, transport.ErrStalled)

	server.Heal()
	if _, err := newClient(t).Fetch(t.Context(), remote, git.Want{Hash: strings.Repeat("ab", 20)}); !errors.Is(err, git.ErrRefNotFound) {
		t.Error(err)
	}
	limited := newClient(t, func(o *git.Options) { o.MaxPackBytes = 1000 })
	_, err = limited.Fetch(t.Context(), remote, git.Want{Hash: hash})
	checkError(t, "limit", err, git.ErrLimit)
}
