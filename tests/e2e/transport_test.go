package e2e

import (
	"testing"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

const (
	password   = "canary-password-8c1f"
	passphrase = "canary-passphrase-77aa"
	token      = "canary-token-51de"
)

func TestEveryTransportBringsTheCommit(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	repository := s.upstream.Repository("team/app")
	commit := repository.Commit("main", "First", oneFile("replicas: 1\n"))
	ca, clients := s.upstream.CA(), s.upstream.CA()
	identity, err := clients.Client("sluice")
	if err != nil {
		t.Fatal(err)
	}
	basic := upstream.Access{Username: "ada", Password: password}

	cases := map[string]struct {
		reason  string
		options upstream.HTTPOptions
		secret  map[string]string
	}{
		"http":      {reason: "A public repository needs no Secret."},
		"http-v0":   {reason: "Servers that know only the oldest protocol are served too.", options: upstream.HTTPOptions{WithoutV2: true}},
		"https":     {reason: "The Secret's authority is trusted.", options: upstream.HTTPOptions{CA: ca}, secret: map[string]string{"ca.crt": string(ca.PEM())}},
		"basic":     {reason: "Name and password log in.", options: upstream.HTTPOptions{Access: basic}, secret: map[string]string{"username": "ada", "password": password}},
		"bearer":    {reason: "A token logs in.", options: upstream.HTTPOptions{Access: upstream.Access{BearerToken: token}}, secret: map[string]string{"bearerToken": token}},
		"basic-tls": {reason: "A password goes over TLS.", options: upstream.HTTPOptions{CA: ca, Access: basic}, secret: map[string]string{"ca.crt": string(ca.PEM()), "username": "ada", "password": password}},
		"client-certificate": {
			reason: "A certificate logs in.", options: upstream.HTTPOptions{CA: ca, ClientCA: clients},
			secret: map[string]string{"ca.crt": string(ca.PEM()), "tls.crt": string(identity.CertPEM), "tls.key": string(identity.KeyPEM)},
		},
	}
	for name, c := range cases {
		var changes []change
		if c.secret != nil {
			s.secret(name, c.secret)
			changes = append(changes, secretRef(name))
		}
		s.create(name, s.upstream.HTTP(c.options).URL("team/app"), changes...)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(c.reason)
			s.holds(s.ready(name, mainAt(commit)).Status.Artifact, repository.Tree(commit))
		})
	}
}

func TestUntrustedServersAndClientsAreRefused(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	commit := s.upstream.Repository("app").Commit("main", "First", oneFile("replicas: 1\n"))
	ca, clients := s.upstream.CA(), s.upstream.CA()
	identity, err := clients.Client("sluice")
	if err != nil {
		t.Fatal(err)
	}
	server := s.upstream.HTTP(upstream.HTTPOptions{CA: ca, ClientCA: clients})

	s.create("app", server.URL("app"))
	s.failing("app", trouble{sourcev1.FetchFailedCondition, sourcev1.GitOperationFailedReason, "certificate signed by unknown authority"})

	s.secret("tls", map[string]string{"ca.crt": string(ca.PEM())})
	s.edit("app", func(obj *sourcev1.GitRepository) { secretRef("tls")(&obj.Spec) })
	s.failing("app", trouble{sourcev1.FetchFailedCondition, sourcev1.GitOperationFailedReason, "certificate required"})

	s.secret("tls", map[string]string{"ca.crt": string(ca.PEM()), "tls.crt": string(identity.CertPEM), "tls.key": string(identity.KeyPEM)})
	s.ready("app", mainAt(commit))
}
