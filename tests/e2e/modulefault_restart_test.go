package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

// address is a front for programs that have other endpoints, too.
type address struct {
	flag    string
	manager atomic.Pointer[testenv.Manager]
}

func newAddress(t *testing.T) *address {
	t.Helper()
	a := &address{}
	a.flag = publish(t, a)
	return a
}

// ServeHTTP implements http.Handler.
func (a *address) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	manager := a.manager.Load()
	if manager == nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	got, err := endpoint(r.Context(), manager, r.URL.Path)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	w.WriteHeader(got.status)
	_, _ = w.Write(got.body)
}

// looks counts the lists of members by resource, and fails the test for every other request for a member but watches.
func (s moduleScene) looks(calls []testenv.Request, allowed ...string) map[string]int {
	s.t.Helper()
	lists := map[string]int{}
	for _, call := range calls {
		switch what := call.Verb + " " + call.Object.Resource + "/" + call.Object.Name; {
		case call.Verb == verbList:
			lists[call.Object.Resource]++
		case call.Verb != "watch" && !slices.Contains(allowed, what):
			s.t.Errorf("after a start, %s %s", call.Verb, call.URI)
		}
	}
	return lists
}

// TestModuleKilledAtRestAsksOnlyHowThingsAre: a program that is killed while nothing is going on asks once for each kind
// when it is back, and writes nothing. What somebody changed or deleted meanwhile is healed, with a request each.
func TestModuleKilledAtRestAsksOnlyHowThingsAre(t *testing.T) {
	t.Parallel()
	a := newAddress(t) // It has to outlive the program.
	s := newModuleScene(t, append([]string{a.flag}, withEndpoints...)...)
	start := func() {
		s.start()
		a.manager.Store(s.manager)
	}
	start()
	s.release("1.0.0", fooFiles("1.0.0"))
	names := []string{"one", "two", "three"}
	versions, before := map[string]string{}, map[string]*modulesv1.ModuleInstallation{}
	for _, name := range names {
		s.install(name, installEvery(time.Second))
	}
	for _, name := range names {
		s.ready(name, "1.0.0")
		s.exact(name, fooMembers(name, "1.0.0")...)
	}
	for _, name := range names {
		inventory, err := s.inventory(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		versions[name], before[name] = inventory.ResourceVersion, s.get(name)
	}
	s.manager.Kill()
	made := len(s.memberCalls())
	start()
	s.eventually("every kind is watched", func(context.Context) (bool, string) {
		watched := map[string]bool{}
		for _, call := range s.memberCalls()[made:] {
			if call.Verb == "watch" && call.Stage == "ResponseStarted" {
				watched[call.Object.Resource] = true
			}
		}
		return len(watched) == 3, fmt.Sprint(watched)
	})
	s.rounds(3)
	lists := s.looks(s.memberCalls()[made:])
	for _, resource := range []string{"configmaps", "serviceaccounts", "roles"} {
		if lists[resource] != 1 {
			t.Errorf("after a kill at rest, the lists are %v, want one of %s", lists, resource)
		}
	}
	for _, name := range names {
		inventory, err := s.inventory(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if inventory.ResourceVersion != versions[name] {
			t.Errorf("the inventory of %s was written for nothing", name)
		}
		if now := s.get(name); now.ResourceVersion != before[name].ResourceVersion {
			t.Errorf("%s was written for nothing (-before +now):\n%s", name, cmp.Diff(before[name], now))
		}
	}

	s.manager.Kill()
	s.drop("settings-one")
	changed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "settings-two"}}
	patch(s, changed, func() { changed.Data["version"] = "changed" })
	made = len(s.memberCalls())
	start()
	s.becomes("settings-one", "1.0.0")
	s.becomes("settings-two", "1.0.0")
	for _, name := range names {
		s.exact(name, fooMembers(name, "1.0.0")...)
		s.ready(name, "1.0.0")
	}
	s.looks(s.memberCalls()[made:], "patch configmaps/settings-one", "patch configmaps/settings-two")
	s.told("two", corev1.EventTypeNormal, modulesv1.DriftHealedReason, "settings-two")
}

// TestModuleStandbyTakesOver: of two processes one works. When that is killed in the middle of an upgrade, the other one
// brings it to its end, and heals what was changed in between; no object is applied twice without need.
func TestModuleStandbyTakesOver(t *testing.T) {
	t.Parallel()
	a := newAddress(t) // It has to outlive the program.
	s := newModuleScene(t, append([]string{
		a.flag, "--enable-leader-election", "--leader-election-lease-duration=20s", "--leader-election-renew-deadline=15s", "--leader-election-retry-period=300ms",
	}, withEndpoints...)...)
	s.lease()
	s.start()
	a.manager.Store(s.manager)
	s.answers(s.manager, "/readyz", http.StatusOK)
	standby := s.another()
	s.answers(standby, "/healthz", http.StatusOK)
	s.release("1.0.0", fooFiles("1.0.0"))
	s.install("app")
	s.ready("app", "1.0.0")
	s.breaks("app", "1.0.0")
	s.exact("app", fooMembers("app", "1.0.0")...)
	if applied := only(s.memberCalls(), verbPatch); len(applied) != 5 {
		t.Errorf("two processes installed four objects and healed one with\n%s", lines(applied))
	}

	// One object of the new release cannot be applied, so that the leader is killed in the middle.
	next := fooFiles("1.1.0")
	next["inner.yaml"] = "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: late\n  namespace: " + s.namespace + "-late\n"
	s.release("1.1.0", next)
	s.failing("app", modulesv1.AppliedCondition, modulesv1.ApplyFailedReason, s.namespace+"-late")
	s.manager.Kill()
	s.manager = standby
	s.drop("settings-app")
	s.make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-late"}})
	before := len(s.memberCalls())
	s.answers(standby, "/readyz", http.StatusOK)
	a.manager.Store(standby)
	s.ready("app", "1.1.0")
	s.becomes("settings-app", "1.1.0")
	s.exact("app", append(fooMembers("app", "1.1.0"), "ServiceAccount/late")...)
	count := map[string]int{}
	for _, call := range only(s.memberCalls()[before:], verbPatch, verbDelete) {
		count[call.Verb+" "+call.Object.Resource+"/"+call.Object.Name]++
	}
	if count["delete configmaps/only-1.0.0-app"] != 1 || count["patch serviceaccounts/late"] == 0 {
		t.Errorf("the standby made the requests %v", count)
	}
	for _, settled := range []string{"patch serviceaccounts/foo-app", "patch roles/foo-app"} {
		if count[settled] != 0 {
			t.Errorf("the standby applied what both releases have alike: %v", count)
		}
	}
}

// lease lets the program's user elect a leader in its namespace.
func (s moduleScene) lease() {
	s.t.Helper()
	name := "leader"
	s.make(
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update", "patch", "watch", "list"}},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: s.user}},
		},
	)
}
