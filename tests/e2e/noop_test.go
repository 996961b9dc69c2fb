package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

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
