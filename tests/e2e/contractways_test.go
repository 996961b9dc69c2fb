package e2e

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

func proxySecretRef(name string) change {
	return func(spec *sourcev1.GitRepositorySpec) {
		spec.ProxySecretRef = &meta.LocalObjectReference{Name: name}
	}
}

// trusting has the program trust an authority as it trusts the system's.
func (s *scene) trusting(ca *upstream.CA) {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, ca.PEM(), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.prepare = func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "SSL_CERT_FILE="+file) }
}

// newSecureProxy is a proxy that is itself spoken to over TLS.
func newSecureProxy(t *testing.T, ca *upstream.CA, target, user, password string) *proxy {
	t.Helper()
	identity, err := ca.Server("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{target: target, login: base64.StdEncoding.EncodeToString([]byte(user + ":" + password))}
	p.Server = httptest.NewUnstartedServer(p)
	p.TLS = &tls.Config{Certificates: []tls.Certificate{identity.TLS}, MinVersion: tls.VersionTLS12}
	p.StartTLS()
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

// TestGitGoesThroughEachKindOfProxy, over HTTPS and over SSH. Nothing but the proxy knows where the server of that name is.
func TestGitGoesThroughEachKindOfProxy(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const name, word = "git.proxied.invalid", "canary-git-proxy-password-7be1"
	commit := s.upstream.Repository("app").Commit("main", "First", oneFile("replicas: 1\n"))
	ca := s.upstream.CA()
	s.trusting(ca)
	identity, err := ca.Server(name)
	if err != nil {
		t.Fatal(err)
	}
	web := s.upstream.HTTP(upstream.HTTPOptions{Identity: &identity})
	shell := s.upstream.SSH(upstream.SSHOptions{})
	hosts := strings.ReplaceAll(string(shell.KnownHosts()), hostOf(shell.KnownHosts()), name)
	s.secret("web", map[string]string{"ca.crt": string(ca.PEM())})
	s.secret("shell", map[string]string{"identity": s.pem(shell.Key(), ""), "known_hosts": hosts})
	s.start()

	passed := map[string]func() int64{}
	for over, at := range map[string]struct{ address, url string }{
		"web":   {web.Address(), "https://" + name + "/app.git"},
		"shell": {shell.Address(), "ssh://" + url.PathEscape(shell.User()) + "@" + name + "/app.git"},
	} {
		plain, secure, by := newProxy(t, at.address, false, word), newSecureProxy(t, ca, at.address, "out", word), newSocks(t, at.address, "out", word)
		for kind, way := range map[string]struct {
			url    string
			passed func() int64
		}{"connect": {plain.URL, plain.passed}, "https": {secure.URL, secure.passed}, "socks5": {by.url(), by.passed}} {
			object := fmt.Sprintf("%s-%s", over, kind)
			passed[object] = way.passed
			s.secret(object, map[string]string{"address": way.url, "username": "out", "password": word})
			s.create(object, at.url, secretRef(over), proxySecretRef(object))
		}
	}
	for object, passed := range passed {
		s.ready(object, mainAt(commit))
		if passed() == 0 {
			t.Errorf("%s: the proxy passed nothing on", object)
		}
	}
}

// hostOf is the host that the lines of a known_hosts file are about.
func hostOf(knownHosts []byte) string {
	host, _, _ := strings.Cut(string(knownHosts), " ")
	return host
}

// TestAlgorithmsForSSHAreTheOperators: the flags say which are used, whatever else both sides know.
func TestAlgorithmsForSSHAreTheOperators(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		flag  string
		hosts []upstream.KeyType
		says  string // empty for none
	}{
		"kex":          {"--ssh-kex-algos=curve25519-sha256", nil, ""},
		"kex-unknown":  {"--ssh-kex-algos=diffie-hellman-group14-sha1", nil, "no common algorithm for key exchange"},
		"host":         {"--ssh-hostkey-algos=ecdsa-sha2-nistp256", []upstream.KeyType{upstream.ECDSA}, ""},
		"host-unknown": {"--ssh-hostkey-algos=ecdsa-sha2-nistp256", []upstream.KeyType{upstream.Ed25519}, "host key is not trusted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRunning(t, tc.flag)
			commit := s.upstream.Repository("app").Commit("main", "First", oneFile("replicas: 1\n"))
			server := s.upstream.SSH(upstream.SSHOptions{})
			s.secret("ssh", map[string]string{"identity": s.pem(server.Key(), ""), "known_hosts": string(server.KnownHosts(tc.hosts...))})
			s.create("app", server.URL("app"), secretRef("ssh"))
			if tc.says == "" {
				s.ready("app", mainAt(commit))
				return
			}
			s.failing("app", fetchFailed(tc.says))
		})
	}
}
