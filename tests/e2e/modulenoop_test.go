package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"sluice.dev/sluice/tests/testenv"
)

// metric is the sum of a metric's samples whose line begins with the text.
func (s moduleScene) metric(ctx context.Context, name string) (float64, error) {
	got, err := endpoint(ctx, s.manager, "/metrics")
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, sample := range regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(name)+`.*? (\S+)$`).FindAllStringSubmatch(string(got.body), -1) {
		value, err := strconv.ParseFloat(sample[1], 64)
		if err != nil {
			return 0, err
		}
		sum += value
	}
	return sum, nil
}

// rounds waits for so many more rounds over installations.
func (s moduleScene) rounds(more float64) {
	s.t.Helper()
	const counter = `controller_runtime_reconcile_total{controller="moduleinstallation"`
	before := -1.0
	s.eventually(fmt.Sprintf("%g more rounds", more), func(ctx context.Context) (bool, string) {
		now, err := s.metric(ctx, counter)
		if err == nil && before < 0 {
			before = now
		}
		return err == nil && now >= before+more, fmt.Sprint(before, now, err)
	})
}

// rests waits until so many rounds in a row make no request, neither by the audit log nor by the metric. What follows an
// installation may bring some at first, and not for ever.
func (s moduleScene) rests(rounds float64) {
	s.t.Helper()
	var news string
	for range 10 {
		before, calls := len(s.requests()), s.calls()
		s.rounds(rounds)
		more, counted := asked(s.requests()[before:]), s.calls()-calls
		if len(more) == 0 && counted == 0 {
			return
		}
		news = fmt.Sprintf("%g by the metric, and by the audit log\n%s", counted, lines(more))
	}
	s.t.Errorf("rounds without anything to do go on making requests: %s", news)
}

// asked are the requests that are not for leases, and not the beginning or end of a watch.
func asked(requests []testenv.Request) []testenv.Request {
	var found []testenv.Request
	for _, r := range requests {
		if r.Verb != "watch" && r.Object.Resource != "leases" && r.Object.Resource != "" {
			found = append(found, r)
		}
	}
	return found
}

func TestModuleThatIsAsPublishedCostsNothing(t *testing.T) {
	t.Parallel()
	front := newFront(t)
	s := newModuleScene(t, append([]string{front.flag}, withEndpoints...)...)
	s.start()
	front.manager.Store(s.manager)
	s.release("1.0.0", fooFiles("1.0.0"))
	s.install("app", installEvery(time.Second))
	s.ready("app", "1.0.0")
	s.exact("app", fooMembers("app", "1.0.0")...)
	installing := s.memberCalls()
	if applied := only(installing, verbPatch); len(applied) != 4 {
		t.Errorf("installing four objects took\n%s", lines(applied))
	}
	s.rests(4)
	// Verified in full only when asked to.
	before := len(s.memberCalls())
	s.reconcile("app")
	if verified := only(s.memberCalls()[before:], verbPatch); len(verified) != 4 {
		t.Errorf("a requested reconcile verified with\n%s", lines(verified))
	}

	inventory, err := s.inventory(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	obj := s.get("app")
	s.stop()
	before = len(s.memberCalls())
	s.start()
	front.manager.Store(s.manager)
	s.rounds(4)
	after := s.memberCalls()[before:]
	lists := map[string]int{}
	for _, call := range after {
		switch {
		case call.Verb == verbList || call.Verb == "watch" && call.Stage == "ResponseStarted":
			lists[call.Verb+" "+call.Object.Resource]++
		case call.Verb != "watch":
			t.Errorf("after a restart, %s %s", call.Verb, call.URI)
		}
	}
	for _, resource := range []string{"configmaps", "serviceaccounts", "roles"} {
		if lists["list "+resource] != 1 || lists["watch "+resource] != 1 {
			t.Errorf("after a restart, %s are listed and watched %v times, want once each", resource, lists)
		}
	}
	if now, err := s.inventory(t.Context(), "app"); err != nil || now.ResourceVersion != inventory.ResourceVersion {
		t.Errorf("the inventory was written for nothing: %v", err)
	}
	if now := s.get("app"); now.ResourceVersion != obj.ResourceVersion {
		t.Errorf("the installation was written for nothing: %s became %s", asJSON(obj.Status), asJSON(now.Status))
	}
}

// calls is how many requests for members the program has counted.
func (s moduleScene) calls() float64 {
	s.t.Helper()
	sum, err := s.metric(s.t.Context(), "sluice_member_calls_total{")
	if err != nil {
		s.t.Fatal(err)
	}
	return sum
}
