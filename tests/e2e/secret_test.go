package e2e

import (
	"testing"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

func TestBadSecretsAreNamedAndTheArtifactStays(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	repository := s.upstream.Repository("app")
	first := repository.Commit("main", "First", oneFile("replicas: 1\n"))
	ca := s.upstream.CA()
	clients := s.upstream.CA()
	identity, err := clients.Client("sluice")
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := clients.Client("stranger")
	if err != nil {
		t.Fatal(err)
	}
	https := s.upstream.HTTP(upstream.HTTPOptions{CA: ca, ClientCA: clients})
	ssh := s.upstream.SSH(upstream.SSHOptions{})
	overTLS := map[string]string{"ca.crt": string(ca.PEM()), "tls.crt": string(identity.CertPEM), "tls.key": string(identity.KeyPEM)}
	overSSH := map[string]string{"identity": s.pem(ssh.Key(), ""), "known_hosts": string(ssh.KnownHosts())}
	const noKey = "canary-not-a-key-4a4a"

	cases := map[string]struct {
		reason    string
		url       string
		good, bad map[string]string
		text      string
	}{
		"gone":          {"A Secret that is missing is named.", https.URL("app"), overTLS, nil, "not found; create it"},
		"empty":         {"A Secret without anything to log in with.", https.URL("app"), overTLS, map[string]string{"user": "canary-unused-2e2e"}, "has no value under 'username'"},
		"ca-no-pem":     {"The authority has to be PEM.", https.URL("app"), overTLS, with(overTLS, "ca.crt", "no certificate"), "bad 'ca.crt'"},
		"cert-no-pem":   {"The certificate has to be PEM.", https.URL("app"), overTLS, with(overTLS, "tls.crt", "no certificate"), "bad 'tls.crt'"},
		"key-no-pem":    {"The key has to be PEM.", https.URL("app"), overTLS, with(overTLS, "tls.key", noKey), "bad 'tls.key'"},
		"key-of-others": {"Key and certificate have to belong together.", https.URL("app"), overTLS, with(overTLS, "tls.key", string(stranger.KeyPEM)), "bad 'tls.key'"},
		"key-missing":   {"A certificate is nothing without its key.", https.URL("app"), overTLS, with(overTLS, "tls.key", ""), "only one of 'tls.crt' and 'tls.key'"},
		"ssh-no-key":    {"The identity has to be a private key.", ssh.URL("app"), overSSH, with(overSSH, "identity", noKey), "bad 'identity'"},
		"ssh-sealed":    {"A sealed key needs its passphrase.", ssh.URL("app"), overSSH, with(overSSH, "identity", s.pem(ssh.Key(), passphrase)), "encrypted 'identity'"},
		"ssh-wrong-passphrase": {
			"A passphrase that does not fit.", ssh.URL("app"), overSSH,
			with(with(overSSH, "identity", s.pem(ssh.Key(), passphrase)), "password", "canary-wrong-0f0f"), "does not open 'identity'",
		},
		"ssh-no-hosts":  {"Without known hosts nothing is trusted.", ssh.URL("app"), overSSH, with(overSSH, "known_hosts", ""), "no 'known_hosts'"},
		"ssh-bad-hosts": {"A line that is no known host is named.", ssh.URL("app"), overSSH, with(overSSH, "known_hosts", "localhost"), "bad 'known_hosts'"},
	}
	good := map[string]*sourcev1.GitRepository{}
	for name, c := range cases {
		s.secret(name, c.good)
		s.create(name, c.url, secretRef(name))
	}
	for name := range cases {
		good[name] = s.ready(name, mainAt(first))
	}
	second := repository.Commit("main", "Second", oneFile("replicas: 2\n"))
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(c.reason)
			s := s.in(t)
			s.dropSecret(name)
			if c.bad != nil {
				s.secret(name, c.bad)
			}
			s.request(name)
			bad := s.failing(name, loginFailed(c.text))
			s.failing(name, loginFailed("secret '"+s.namespace+"/"+name+"'"))
			sameArtifact(t, good[name], bad)
			s.holds(bad.Status.Artifact, repository.Tree(first))
			s.secret(name, c.good)
			s.ready(name, mainAt(second))
		})
	}
}

// with is the data with one value replaced, or taken out when the new one is empty.
func with(data map[string]string, key, value string) map[string]string {
	changed := map[string]string{}
	for k, v := range data {
		if k != key {
			changed[k] = v
		}
	}
	if value != "" {
		changed[key] = value
	}
	return changed
}
