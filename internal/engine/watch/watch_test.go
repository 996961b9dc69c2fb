package watch_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/watch"
	"sluice.dev/sluice/tests/testenv"
)

func TestEventsReachTheOwnerOfTheLabel(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	watcher, tap, ears := newWatcher(t, nil)
	was := apply(t, member(configMaps, namespace, "a", "one", data("1")), manager)

	subject := watch.Subject{GVK: configMaps, Namespace: namespace}
	watcher.Want("one", "one", []watch.Subject{subject})
	ears.until(t, "one synced ConfigMap")
	watcher.Want("two", "two", []watch.Subject{subject})
	found, known := watcher.State("two", ref(configMaps, namespace, "a"))
	if found != nil || !known {
		t.Errorf("another owner's object is not this one's: %v, known %v", found, known)
	}
	if lists, watches, _ := tap.counts(); lists != 1 || watches != 1 || watcher.Stats().Watches != 1 {
		t.Errorf("the owners share one list and one watch, not %d and %d", lists, watches)
	}

	found, _ = watcher.State("one", ref(configMaps, namespace, "a"))
	if found == nil || found.UID != was.GetUID() || found.ResourceVersion != was.GetResourceVersion() ||
		found.Fingerprint != cluster.Fingerprint(was, manager) || found.Fingerprint == "" || found.PartOf != "one" {
		t.Fatalf("what is remembered is what was listed, got %+v", found)
	}

	apply(t, member(configMaps, namespace, "b", "two", data("1")), manager)
	ears.until(t, "two added ConfigMap b")

	drifted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}}
	patch(t, drifted, `{"data":{"key":"drift"}}`)
	ears.until(t, "one modified ConfigMap a")
	patch(t, drifted, `{"metadata":{"annotations":{"another":"tool"}}}`)
	ears.until(t, "one touched ConfigMap a")

	patch(t, drifted, `{"metadata":{"labels":{"`+label+`":"two"}}}`)
	ears.until(t, "one deleted ConfigMap a", "two added ConfigMap a")
	patch(t, drifted, `{"metadata":{"labels":null}}`)
	ears.until(t, "two deleted ConfigMap a")

	if err := env.Client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "b"}}); err != nil {
		t.Fatal(err)
	}
	ears.until(t, "two deleted ConfigMap b")
	if found, known := watcher.State("two", ref(configMaps, namespace, "b")); found != nil || !known {
		t.Errorf("a deleted object is known to be gone: %v, %v", found, known)
	}
	if lists, _, _ := tap.counts(); lists != 1 {
		t.Errorf("changes cost no list, but there were %d", lists)
	}
}

func patch(t *testing.T, object client.Object, change string) {
	t.Helper()
	if err := env.Client.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(change)), client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
}

func TestOwnWritesAreKnownAtOnce(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	watcher, _, ears := newWatcher(t, nil)
	watcher.Want("one", "one", []watch.Subject{{GVK: configMaps, Namespace: namespace}})
	ears.until(t, "one synced ConfigMap")

	object := ref(configMaps, namespace, "a")
	for _, value := range []string{"1", "2"} {
		now := apply(t, member(configMaps, namespace, "a", "one", data(value)), manager)
		watcher.Wrote("one", object, cluster.Seen{
			UID: now.GetUID(), ResourceVersion: now.GetResourceVersion(), Generation: now.GetGeneration(),
			Fingerprint: cluster.Fingerprint(now, manager),
		})
		found, known := watcher.State("one", object)
		if !known || found == nil || found.ResourceVersion != now.GetResourceVersion() || found.Fingerprint != cluster.Fingerprint(now, manager) {
			t.Errorf("State is not behind our own write, got %+v", found)
		}
	}
	watcher.Wrote("one", object, cluster.Seen{ResourceVersion: "1", Fingerprint: "stale"})
	if found, _ := watcher.State("one", object); found == nil || found.Fingerprint == "stale" {
		t.Errorf("an older answer does not replace a newer one")
	}
}

func TestClosedWatchesLeaveNothingBehind(t *testing.T) {
	namespace := env.NewNamespace(t)
	watcher, tap, ears := newWatcher(t, nil)
	before := goroutines()
	secrets := configMaps
	secrets.Kind = "Secret"
	both := []watch.Subject{{GVK: configMaps, Namespace: namespace}, {GVK: secrets, Namespace: namespace}}
	watcher.Want("one", "one", both)
	watcher.Want("two", "two", both[:1])
	ears.until(t, "one synced ConfigMap", "one synced Secret", "two synced ConfigMap")

	watcher.Want("one", "one", nil)
	testenv.Eventually(t, "close the watch that nobody wants", func(context.Context) (bool, string) {
		_, _, open := tap.counts()
		return open == 1 && watcher.Stats().Watches == 1, fmt.Sprint(open)
	})
	if _, known := watcher.State("one", ref(configMaps, namespace, "a")); known {
		t.Error("an owner that wants nothing knows nothing")
	}
	watcher.Close()
	watcher.Want("one", "one", both)
	if _, _, open := tap.counts(); open != 0 || watcher.Stats().Watches > 1 {
		t.Errorf("%d watches are open after Close", open)
	}
	testenv.Eventually(t, "end all goroutines", func(context.Context) (bool, string) {
		now := goroutines()
		return now <= before, fmt.Sprintf("%d, before %d", now, before)
	})
}

// goroutines counts those that belong to watches.
func goroutines() int {
	stacks := make([]byte, 1<<22)
	count := 0
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(stack, "engine/watch.(*subjectWatch)") || strings.Contains(stack, "watch.(*StreamWatcher)") {
			count++
		}
	}
	return count
}

func TestFewObjectsOfOthersAreKept(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	for i := range 5 {
		apply(t, member(configMaps, namespace, fmt.Sprint("one-", i), "one", data("1")), manager)
		apply(t, member(configMaps, namespace, fmt.Sprint("two-", i), "two", data("1")), manager)
	}
	tests := map[string]struct {
		reason         string
		spare          int64
		objects, lists int
	}{
		"Room":   {"objects of others are kept while there is room, so that they may join without a list", 100, 10, 1},
		"NoRoom": {"without room they are not kept, and who joins is served by another list", 0, 5, 2},
		"Some":   {"the bound holds for what is in between as well", 2, 7, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			watcher, tap, ears := newWatcher(t, nil)
			watcher.Limit(1, test.spare)
			subject := []watch.Subject{{GVK: configMaps, Namespace: namespace}}
			watcher.Want("one", "one", subject)
			ears.until(t, "one synced ConfigMap")
			if objects := watcher.Stats().Objects; objects != test.objects {
				t.Errorf("%s: want %d objects, got %d", test.reason, test.objects, objects)
			}
			watcher.Want("two", "two", subject)
			for i := range 5 {
				if found := known(t, watcher, "two", ref(configMaps, namespace, fmt.Sprint("two-", i))); found == nil {
					t.Errorf("%s: two-%d is not there", test.reason, i)
				}
			}
			if lists, _, _ := tap.counts(); lists != test.lists {
				t.Errorf("%s: want %d lists, got %d", test.reason, test.lists, lists)
			}
			watcher.Want("one", "one", nil)
			if objects, most := watcher.Stats().Objects, 5+max(0, test.objects-5); objects > most {
				t.Errorf("%s: want at most %d objects, got %d", test.reason, most, objects)
			}
		})
	}
}

func TestOwnersHaveSoManySubjects(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	watcher, _, _ := newWatcher(t, nil)
	watcher.Limit(2, 0)
	set := make([]watch.Subject, 4)
	for i := range set {
		set[i] = watch.Subject{GVK: configMaps, Namespace: fmt.Sprint(namespace, "-", i)}
	}
	watcher.Want("one", "one", set)
	if problems := watcher.Problems("one"); len(problems) != 2 || problems[0].Subject != set[2] || problems[0].Reason != watch.Beyond ||
		!strings.Contains(problems[0].Message, "at most 2") {
		t.Errorf("what is beyond is told, got %v", problems)
	}
	watcher.Want("two", "two", set[2:])
	if stats := watcher.Stats(); stats.Watches != 4 || len(watcher.Problems("two")) != 0 {
		t.Errorf("each owner has its own bound: %+v, %v", stats, watcher.Problems("two"))
	}
	known(t, watcher, "one", ref(configMaps, set[1].Namespace, "a"))
	known(t, watcher, "two", ref(configMaps, set[2].Namespace, "a"))
	if _, known := watcher.State("one", ref(configMaps, set[2].Namespace, "a")); known {
		t.Error("an owner knows nothing of what is beyond, even if others have it watched")
	}
	watcher.Want("one", "one", set[2:])
	known(t, watcher, "one", ref(configMaps, set[2].Namespace, "a"))
	if problems := watcher.Problems("one"); len(problems) != 0 {
		t.Errorf("with fewer subjects all are watched, got %v", problems)
	}
}

func TestOptionsAreComplete(t *testing.T) {
	t.Parallel()
	if watcher, err := watch.New(watch.Options{}); err == nil {
		t.Errorf("a Watcher needs a connection, got %v", watcher)
	}
}
