package e2e

import (
	"testing"

	"sluice.dev/sluice/tests/upstream"
)

// pem is a private key as a Secret holds it, under the passphrase unless that is empty.
func (s *scene) pem(key *upstream.SSHKey, passphrase string) string {
	s.t.Helper()
	text, err := key.PEM()
	if passphrase != "" {
		text, err = key.EncryptedPEM(passphrase)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

func TestSSHKeysBringTheCommit(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	repository := s.upstream.Repository("team/app")
	commit := repository.Commit("main", "First", oneFile("replicas: 1\n"))
	server := s.upstream.SSH(upstream.SSHOptions{})
	hosts := string(server.KnownHosts())

	cases := map[string]struct {
		reason string
		secret map[string]string
	}{
		"plain":  {reason: "A key without a passphrase logs in.", secret: map[string]string{"identity": s.pem(server.Key(), ""), "known_hosts": hosts}},
		"sealed": {reason: "The passphrase stands under password.", secret: map[string]string{"identity": s.pem(server.Key(), passphrase), "password": passphrase, "known_hosts": hosts}},
		"hashed": {reason: "Host names may be hashed.", secret: map[string]string{"identity": s.pem(server.Key(), ""), "known_hosts": string(server.HashedKnownHosts())}},
	}
	for name, c := range cases {
		s.secret(name, c.secret)
		s.create(name, server.URL("team/app"), secretRef(name))
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(c.reason)
			s.holds(s.ready(name, mainAt(commit)).Status.Artifact, repository.Tree(commit))
		})
	}
}

func TestSSHHostKeysAreAlwaysChecked(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	repository := s.upstream.Repository("app")
	first := repository.Commit("main", "First", oneFile("replicas: 1\n"))
	server := s.upstream.SSH(upstream.SSHOptions{})
	other := s.upstream.SSH(upstream.SSHOptions{})
	identity := s.pem(server.Key(), "")
	refused := fetchFailed("host key is not trusted")

	// The file knows a host, but not this one.
	s.secret("ssh", map[string]string{"identity": identity, "known_hosts": string(other.KnownHosts())})
	s.create("app", server.URL("app"), secretRef("ssh"))
	s.failing("app", refused)
	if commands, _ := server.Commands(); len(commands) != 0 {
		t.Errorf("an unknown host was given the commands %+v", commands)
	}
	s.secret("ssh", map[string]string{"identity": identity, "known_hosts": string(server.KnownHosts())})
	good := s.ready("app", mainAt(first))

	// The host has another key than yesterday.
	if err := server.RotateHostKeys(); err != nil {
		t.Fatal(err)
	}
	server.Cut()
	second := repository.Commit("main", "Second", oneFile("replicas: 2\n"))
	s.request("app")
	sameArtifact(t, good, s.failing("app", refused))
	s.download(good.Status.Artifact)
	s.secret("ssh", map[string]string{"identity": identity, "known_hosts": string(server.KnownHosts())})
	s.ready("app", mainAt(second))
}

func TestAKeyThatTheServerDoesNotKnowIsRefused(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	commit := s.upstream.Repository("app").Commit("main", "First", oneFile("replicas: 1\n"))
	server := s.upstream.SSH(upstream.SSHOptions{})
	key := s.upstream.Key(upstream.Ed25519)
	s.secret("ssh", map[string]string{"identity": s.pem(key, ""), "known_hosts": string(server.KnownHosts())})
	s.create("app", server.URL("app"), secretRef("ssh"))
	s.failing("app", fetchFailed("authentication failed"))
	if err := server.Authorize(key); err != nil {
		t.Fatal(err)
	}
	s.ready("app", mainAt(commit))
}
