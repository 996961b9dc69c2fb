package cluster_test

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"sluice.dev/sluice/internal/engine/cluster"
)

// look is what one look at the API server's kinds costs.
const look = 2

func TestKindsAreAskedForOnceAndThenSparingly(t *testing.T) {
	// Alone: kinds that other tests bring and take away make a look cost more.
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0))
	connector, count := connect(t, cluster.Options{Looks: cluster.Looks(clock)})
	subject, err := connector.As(cluster.Identity{})
	if err != nil {
		t.Fatal(err)
	}
	unknown := schema.GroupVersionKind{Group: "unheard.example.com", Version: "v1", Kind: "Unheard"}
	miss := func() {
		if _, err := subject.Namespaced(unknown); !errors.Is(err, cluster.ErrNoKind) {
			t.Errorf("want ErrNoKind, got %v", err)
		}
	}
	looks := func(times int) map[string]int {
		if times == 0 {
			return map[string]int{}
		}
		return map[string]int{"discover": look * times}
	}
	count.wantCalls(t, looks(1), func() {
		for range 3 {
			if namespaced, err := subject.Namespaced(configMaps); err != nil || !namespaced {
				t.Errorf("ConfigMaps live in namespaces: %t, %v", namespaced, err)
			}
		}
	})
	count.wantCalls(t, looks(3), func() {
		for range 50 {
			miss()
		}
	})
	clock.SetTime(clock.Now().Add(4 * time.Second))
	count.wantCalls(t, looks(0), miss)
	clock.SetTime(clock.Now().Add(time.Second))
	count.wantCalls(t, looks(1), func() { miss(); miss() })
	connector.Refresh()
	count.wantCalls(t, looks(1), func() { miss(); miss() })
}

func TestKindAppearsAndGoes(t *testing.T) {
	// Alone: kinds that other tests bring and take away make a look cost more.
	connector, count := connect(t, cluster.Options{})
	subject := as(t, connector, cluster.Identity{})
	namespace := env.NewNamespace(t)
	thing := object(t, `{apiVersion: appears.example.com/v1, kind: Thing, metadata: {name: one, namespace: %s}, spec: {size: 1}}`, namespace)
	if _, err := subject.Apply(t.Context(), thing, cluster.ApplyOptions{Manager: manager}); !errors.Is(err, cluster.ErrNoKind) {
		t.Fatalf("before the CRD: want ErrNoKind, got %v", err)
	}
	definition := define(t, subject, "appears.example.com", "v1")
	connector.Refresh()
	count.wantCalls(t, map[string]int{"discover": look, "apply": 1}, func() {
		if applied := apply(t, subject, thing, cluster.ApplyOptions{Manager: manager}); !applied.Created {
			t.Errorf("want it created, got %+v", applied)
		}
	})
	thing.Object["spec"] = map[string]any{"size": int64(1), "colour": "red"}
	_, err := subject.Apply(t.Context(), thing, cluster.ApplyOptions{Manager: manager})
	if !errors.Is(err, cluster.ErrInvalid) {
		t.Errorf("a field that the CRD does not have: want ErrInvalid, got %v", err)
	}
	wantWords(t, err, ".spec.colour: field not declared in schema")
	thing.Object["spec"] = map[string]any{"size": int64(2)}
	if _, err = subject.Apply(t.Context(), thing, cluster.ApplyOptions{Manager: manager}); !errors.Is(err, cluster.ErrImmutable) {
		t.Errorf("a rule of the CRD that forbids a change: want ErrImmutable, got %v", err)
	}

	live, err := subject.Metadata(t.Context(), cluster.Ref{GVK: thing.GroupVersionKind(), Namespace: namespace, Name: "one"})
	if err != nil {
		t.Fatal(err)
	}
	undefine(t, subject, definition)
	// The list of kinds is out of date, then fresh: ErrNoKind either way, and an object of that kind is gone.
	retry(t, func() error {
		if _, err := subject.Apply(t.Context(), thing, cluster.ApplyOptions{Manager: manager}); !errors.Is(err, cluster.ErrNoKind) {
			return errors.Join(errors.New("the kind is still served"), err)
		}
		return nil
	})
	ref := cluster.Ref{GVK: thing.GroupVersionKind(), Namespace: namespace, Name: "one", UID: live.UID}
	if gone, err := subject.Delete(t.Context(), ref, ""); err != nil || !gone {
		t.Errorf("an object whose kind is deleted: gone %t, %v", gone, err)
	}
}
