package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"sluice.dev/sluice/tests/upstream"
)

func TestPollsWithoutNewsWriteNothing(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	commit := s.upstream.Repository("app").Commit("main", "First", oneFile("replicas: 1\n"))
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	s.create("app", server.URL("app"), every(100*time.Millisecond))
	s.ready("app", mainAt(commit))
	s.toldNewArtifact("app", mainAt(commit))
	before, events := s.get("app"), s.eventNames("app")

	server.Reset()
	s.eventually("upstream is polled ten times", func(context.Context) (bool, string) {
		return server.Count(upstream.LsRefs) >= 10, fmt.Sprint(server.Count())
	})
	after := s.get("app")
	if before.ResourceVersion != after.ResourceVersion {
		t.Errorf("polls wrote to the API server: %s became %s", asJSON(before), asJSON(after))
	}
	if now := s.eventNames("app"); now != events {
		t.Errorf("polls told events: %s became %s", events, now)
	}
	for _, request := range server.Requests() {
		if request.Kind != upstream.LsRefs {
			t.Errorf("a poll without news asked for %+v", request)
		}
	}

	// A reconcile that is asked for is answered in status, and changes nothing else there.
	asked := s.reconcile("app")
	asked.Status.LastHandledReconcileAt = before.Status.LastHandledReconcileAt
	if asJSON(asked.Status) != asJSON(before.Status) {
		t.Errorf("a reconcile without news turned status %s into %s", asJSON(before.Status), asJSON(asked.Status))
	}
}

// TestPollsWithoutNewsReadSecretsAlone: an unchanged object asks the API server nothing, and for its Secret once a poll, as the
// program keeps none in memory.
func TestPollsWithoutNewsReadSecretsAlone(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	user := "sluice-" + s.namespace
	kubeconfig, err := env.KubeconfigAs(user)
	if err != nil {
		t.Fatal(err)
	}
	s.kubeconfig = kubeconfig
	s.bind(rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}, "cluster-admin")
	s.start()
	commit := s.upstream.Repository("app").Commit("main", "First", oneFile("replicas: 1\n"))
	open, closed := s.upstream.HTTP(upstream.HTTPOptions{}), s.upstream.HTTP(upstream.HTTPOptions{Access: upstream.Access{Username: "ada", Password: password}})
	s.secret("login", map[string]string{"username": "ada", "password": password})
	s.create("open", open.URL("app"), every(100*time.Millisecond))
	s.create("closed", closed.URL("app"), every(100*time.Millisecond), secretRef("login"))
	for _, name := range []string{"open", "closed"} {
		s.ready(name, mainAt(commit))
		s.toldNewArtifact(name, mainAt(commit))
	}
	before, err := env.Requests(user)
	if err != nil {
		t.Fatal(err)
	}
	polls := closed.Count(upstream.LsRefs)
	open.Reset()
	s.eventually("both are polled ten times", func(context.Context) (bool, string) {
		return open.Count(upstream.LsRefs) >= 10 && closed.Count(upstream.LsRefs) >= polls+10, fmt.Sprint(open.Count(), closed.Count())
	})
	after, err := env.Requests(user)
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range only(after[len(before):], "get", "list", "create", "update", "patch") {
		if request.Object.Resource == "gitrepositories" {
			t.Errorf("a poll without news made the request %s %s", request.Verb, request.URI)
		}
	}
	// Polls go on while the log is read, which may take long; what has ended can be counted. The first fetch reads it twice more,
	// and one poll may have been broken off.
	s.stop()
	all, err := env.Requests(user)
	if err != nil {
		t.Fatal(err)
	}
	secrets := 0
	for _, request := range only(all, "get", "list") {
		if request.Object.Resource == "secrets" {
			secrets++
		}
	}
	if polled := closed.Count(upstream.LsRefs); secrets < polled || secrets > polled+3 {
		t.Errorf("%d polls read %d Secrets", polled, secrets)
	}
}
