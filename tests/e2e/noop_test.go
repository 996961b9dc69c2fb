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
	if all, polls := server.Count(), server.Count(upstream.LsRefs); all != polls {
		t.Errorf("%d polls cost %d requests", polls, all)
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
	all, err := env.Requests(user)
	if err != nil {
		t.Fatal(err)
	}
	secrets := 0
	for _, request := range only(all[len(before):], "get", "list", "create", "update", "patch") {
		switch request.Object.Resource {
		case "secrets":
			secrets++
		case "gitrepositories":
			t.Errorf("a poll without news made the request %s %s", request.Verb, request.URI)
		}
	}
	// Some are under way at either end.
	if polled := closed.Count(upstream.LsRefs) - polls; secrets < polled-3 || secrets > polled+3 {
		t.Errorf("%d polls read %d Secrets", polled, secrets)
	}
}
