package git

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"sluice.dev/sluice/internal/credential"
)

func newSigner(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func TestHostCertificates(t *testing.T) {
	t.Parallel()
	authority, host, other := newSigner(t), newSigner(t), newSigner(t)
	certify := func(kind uint32, before uint64, principals ...string) *ssh.Certificate {
		certificate := &ssh.Certificate{Key: host.PublicKey(), CertType: kind, ValidPrincipals: principals, ValidBefore: before}
		if err := certificate.SignCert(rand.Reader, authority); err != nil {
			t.Fatal(err)
		}
		return certificate
	}
	line := func(prefix string, key ssh.PublicKey) string {
		return prefix + " " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + "\n"
	}
	good := certify(ssh.HostCert, ssh.CertTimeInfinity, "host.example.com")
	trusted := line("@cert-authority *.example.com", authority.PublicKey())
	cases := map[string]struct {
		reason string
		file   string
		key    ssh.PublicKey
		ok     bool
	}{
		"good":              {"Signed by the authority, for this host.", trusted, good, true},
		"other authority":   {"Signed by somebody else.", line("@cert-authority *", other.PublicKey()), good, false},
		"other hosts":       {"The authority is trusted for other hosts.", line("@cert-authority *.example.org", authority.PublicKey()), good, false},
		"other principal":   {"Signed for another host.", trusted, certify(ssh.HostCert, ssh.CertTimeInfinity, "x.example.com"), false},
		"user certificate":  {"Signed for a user.", trusted, certify(ssh.UserCert, ssh.CertTimeInfinity, "host.example.com"), false},
		"expired":           {"Not valid any more.", trusted, certify(ssh.HostCert, 1, "host.example.com"), false},
		"revoked authority": {"The authority is revoked.", trusted + line("@revoked *", authority.PublicKey()), good, false},
		"revoked key":       {"The host's key is revoked.", trusted + line("@revoked *", host.PublicKey()), good, false},
		"plain as cert":     {"The authority's key is no host key.", trusted, authority.PublicKey(), false},
		"cert for plain":    {"A plain entry does not vouch for certificates.", line("host.example.com", authority.PublicKey()), good, false},
	}
	for name, c := range cases {
		hosts, err := credential.SSH{KnownHosts: []byte(c.file)}.Hosts()
		if err != nil {
			t.Fatal(err)
		}
		err = knownHosts(hosts).callback()("host.example.com:22", &net.TCPAddr{}, c.key)
		if c.ok != (err == nil) || err != nil && !errors.Is(err, ErrHostKey) {
			t.Errorf("%s %s got %v", name, c.reason, err)
		}
	}
	hosts, err := credential.SSH{KnownHosts: []byte(trusted + line("plain.example.com", host.PublicKey()))}.Hosts()
	if err != nil {
		t.Fatal(err)
	}
	supported := []string{ssh.KeyAlgoED25519, ssh.KeyAlgoRSASHA256, ssh.CertAlgoED25519v01}
	for name, want := range map[string]string{
		"host.example.com":  fmt.Sprint([]string{ssh.CertAlgoED25519v01}),
		"plain.example.com": fmt.Sprint([]string{ssh.KeyAlgoED25519, ssh.CertAlgoED25519v01}),
		"elsewhere":         "[]",
	} {
		if got := fmt.Sprint(slices.Clip(knownHosts(hosts).algorithms(name, supported))); got != want {
			t.Errorf("%s: want %s, got %s", name, want, got)
		}
	}
}
