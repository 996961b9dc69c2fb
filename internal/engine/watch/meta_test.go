package watch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sluice.dev/sluice/internal/engine/cluster"
)

const mine = "sluice-1"

// remembering is a Watcher that reads objects and has no API server.
func remembering(t *testing.T) *Watcher {
	t.Helper()
	options := Options{ManagerPrefix: "sluice-", Fingerprint: func(object metav1.Object, manager string) string {
		return string(object.GetUID()) + manager
	}}
	options.setDefaults()
	return &Watcher{options: options, root: t.Context(), owners: map[string]*owner{}, watches: map[Subject]*subjectWatch{}}
}

func entry(manager, version, subresource string, operation metav1.ManagedFieldsOperationType) metav1.ManagedFieldsEntry {
	when := metav1.NewTime(time.Unix(1, 0))
	return metav1.ManagedFieldsEntry{Manager: manager, APIVersion: version, Subresource: subresource, Operation: operation, Time: &when}
}

func partial(version string, entries ...metav1.ManagedFieldsEntry) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "a", UID: "uid", ResourceVersion: version, Labels: map[string]string{cluster.PartOf: "one"}, ManagedFields: entries,
	}}
}

func TestOnlyOurOwnEntriesAreFingerprinted(t *testing.T) {
	t.Parallel()
	remembered := remembering(t).remember(partial("1",
		entry(mine, "v1", "", metav1.ManagedFieldsOperationApply), entry("sluice-2", "v1", "status", metav1.ManagedFieldsOperationApply),
		entry("sluice-3", "v1", "", metav1.ManagedFieldsOperationUpdate), entry("kubectl", "v1", "", metav1.ManagedFieldsOperationApply),
	), "")
	if got := remembered.Fingerprint(mine); got != "uid"+mine {
		t.Errorf("our entry is fingerprinted, got %q", got)
	}
	for _, other := range []string{"sluice-2", "sluice-3", "kubectl", ""} {
		if got := remembered.Fingerprint(other); got != "" {
			t.Errorf("%q applied no fields of the object, got %q", other, got)
		}
	}
}

// crowd are made-up entries of so many managers whose names begin as ours, half of them in another version.
func crowd(count int) []metav1.ManagedFieldsEntry {
	entries := make([]metav1.ManagedFieldsEntry, count)
	for i := range entries {
		entries[i] = entry(fmt.Sprintf("sluice-forged-%d", i), fmt.Sprintf("a/v%d", i%2), "", metav1.ManagedFieldsOperationApply)
	}
	return entries
}

// Whoever may write an object may put thousands of entries into its managedFields. What one event costs must not grow
// with their square.
func TestForgedManagersCostNothing(t *testing.T) {
	forged, asked := crowd(3000), 0
	watcher := remembering(t)
	watcher.options.Fingerprint = func(metav1.Object, string) string { asked++; return "print" }
	of := func(manager string, entries ...metav1.ManagedFieldsEntry) *Meta {
		asked = 0
		return watcher.remember(partial("1", entries...), manager)
	}

	all := append(slices.Clone(forged), entry(mine, "a/v1", "", metav1.ManagedFieldsOperationApply))
	if found := of(mine, all...); asked != 1 || found.Fingerprint(mine) != "print" || len(found.prints) != 1 {
		t.Errorf("of an owner that is here the one manager is asked for: %d fingerprints, %d kept", asked, len(found.prints))
	}
	if found := of("", all...); asked != 0 || len(found.prints) != 0 || !found.crowded {
		t.Errorf("of other objects with too many managers none is kept: %d fingerprints, %d kept", asked, len(found.prints))
	}
	if found := of("", forged[:maxManagers]...); asked != maxManagers || found.crowded || found.Fingerprint(forged[0].Manager) == "" {
		t.Errorf("%d managers are all kept: %d fingerprints, %d kept", maxManagers, asked, len(found.prints))
	}
	twice := slices.Repeat(forged[:1], 2*maxManagers)
	if found := of("", twice...); asked != 1 || len(found.prints) != 1 {
		t.Errorf("a manager counts once: %d fingerprints, %d kept", asked, len(found.prints))
	}
}

func TestOwnersOfForgedObjectsAreServed(t *testing.T) {
	t.Parallel()
	watcher := remembering(t)
	watch := newSubjectWatch(watcher, Subject{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "ns"})
	watch.join("two", reader{"two", "sluice-2"})
	object := partial("5", append(crowd(100), entry(mine, "v1", "", metav1.ManagedFieldsOperationApply))...)
	watch.commit(map[string]*Meta{"a": watch.remember(object)}, "5")
	if len(watch.objects) != 0 {
		t.Error("an object with too many managers is not kept for an owner that is not here")
	}
	watch.join("one", reader{"one", mine})
	if _, known := watch.state("one", "a"); known || len(watch.again) != 1 {
		t.Error("the owner that joins asks for another list")
	}
	watch.commit(map[string]*Meta{"a": watch.remember(object)}, "5")
	found, known := watch.state("one", "a")
	if !known || found == nil || found.Fingerprint(mine) != "uid"+mine {
		t.Errorf("the owner's own manager is found among the others: %+v, known %v", found, known)
	}

	// The owner is another one of the same name now.
	<-watch.again
	watch.join("one", reader{"one", "sluice-3"})
	if _, known := watch.state("one", "a"); known || len(watch.again) != 1 {
		t.Error("what is kept is of another manager")
	}
}

func TestAnswerThatChangesNothingIsRemembered(t *testing.T) {
	t.Parallel()
	watcher := remembering(t)
	watch := newSubjectWatch(watcher, Subject{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "ns"})
	watch.join("one", reader{"one", mine})
	watcher.owners["one"] = &owner{value: "one", watches: map[Subject]*subjectWatch{watch.subject: watch}}
	ref := cluster.Ref{GVK: watch.subject.GVK, Namespace: "ns", Name: "a"}
	watch.commit(map[string]*Meta{"a": {UID: "uid", ResourceVersion: "5", PartOf: "one", Deleting: true}}, "5")

	watcher.Wrote("one", ref, mine, cluster.Applied{UID: "other", ResourceVersion: "5", Fingerprint: "print"})
	if found, _ := watch.state("one", "a"); found.Fingerprint(mine) != "" {
		t.Error("an answer about another object says nothing")
	}
	watcher.Wrote("one", ref, mine, cluster.Applied{UID: "uid", ResourceVersion: "5", Fingerprint: "print", Deleting: true})
	if found, _ := watch.state("one", "a"); found.Fingerprint(mine) != "print" || !found.Deleting {
		t.Errorf("the answer says what the API server keeps, got %+v", found)
	}
}

func TestOwnWritesWakeNobody(t *testing.T) {
	t.Parallel()
	watcher := remembering(t)
	watch := newSubjectWatch(watcher, Subject{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "ns"})
	watch.join("one", reader{"one", mine})
	watch.commit(nil, "5")
	watcher.owners["one"] = &owner{value: "one", watches: map[Subject]*subjectWatch{watch.subject: watch}}
	ref := cluster.Ref{GVK: watch.subject.GVK, Namespace: "ns", Name: "a"}
	own := entry(mine, "v1", "", metav1.ManagedFieldsOperationApply)

	watcher.Wrote("one", ref, mine, cluster.Applied{UID: "uid", ResourceVersion: "10", Fingerprint: "uid" + mine})
	steps := []struct {
		reason string
		object *metav1.PartialObjectMetadata
		gone   bool
		want   []Event
	}{
		{"the event before our write is old", partial("9"), false, nil},
		{"the event of our write is no news", partial("10", own), false, nil},
		{"the next is, but touches nothing of ours", partial("11", own), false, []Event{Touched}},
		{"a deletion before another life is old", partial("8"), true, nil},
		{"our fields changed", partial("12"), false, []Event{Modified}},
		{"the object is gone", partial("13"), true, []Event{Deleted}},
		{"it is made anew", partial("14", own), false, []Event{Added}},
	}
	for _, step := range steps {
		got := watch.change(step.object, step.gone)
		if len(got) != len(step.want) || len(got) == 1 && (got[0].event != step.want[0] || got[0].owner != "one" || got[0].ref.Name != "a") {
			t.Errorf("%s: want %v, got %v", step.reason, step.want, got)
		}
	}
	// A list of an older version than our write knows nothing of it.
	watcher.Wrote("one", cluster.Ref{GVK: ref.GVK, Namespace: "ns", Name: "b"}, mine, cluster.Applied{UID: "b", ResourceVersion: "20"})
	if got := watch.commit(nil, "19"); len(got) != 1 || got[0].event != Deleted || got[0].ref.Name != "a" {
		t.Errorf("want a deleted and b kept, got %v", got)
	}
}

func TestVersionsAreCompared(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		a, b string
		want bool
	}{
		"Newer": {"10", "9", true}, "Older": {"9", "10", false}, "Same": {"9", "9", false},
		"Opaque": {"b", "a", false}, "Half": {"9", "a", false}, "Huge": {"18446744073709551615", "1", true}, "Empty": {"", "", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := newer(test.a, test.b); got != test.want {
				t.Errorf("newer(%q, %q) is %v", test.a, test.b, got)
			}
		})
	}
}
