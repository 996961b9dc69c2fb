package watch

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"sluice.dev/sluice/internal/engine/cluster"
)

const mine = "sluice-1"

// remembering is a Watcher that reads objects and has no API server.
func remembering(t *testing.T) *Watcher {
	t.Helper()
	watcher, err := New(Options{Connect: func(cluster.Identity, schema.GroupVersionKind) (metadata.Interface, *meta.RESTMapping, error) {
		return nil, nil, errors.ErrUnsupported
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watcher.Close)
	return watcher
}

func entry(manager, version, subresource string, operation metav1.ManagedFieldsOperationType) metav1.ManagedFieldsEntry {
	when := metav1.NewTime(time.Unix(1, 0))
	return metav1.ManagedFieldsEntry{
		Manager: manager, APIVersion: version, Subresource: subresource, Operation: operation, Time: &when, FieldsV1: metav1.NewFieldsV1(`{}`),
	}
}

func partial(version string, entries ...metav1.ManagedFieldsEntry) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "a", UID: "uid", ResourceVersion: version, Labels: map[string]string{cluster.PartOf: "one"}, ManagedFields: entries,
	}}
}

func TestOnlyOurOwnEntriesAreFingerprinted(t *testing.T) {
	t.Parallel()
	own := entry(mine, "v1", "", metav1.ManagedFieldsOperationApply)
	others := []metav1.ManagedFieldsEntry{
		entry("sluice-2", "v1", "status", metav1.ManagedFieldsOperationApply),
		entry("sluice-3", "v1", "", metav1.ManagedFieldsOperationUpdate), entry("kubectl", "v1", "", metav1.ManagedFieldsOperationApply),
	}
	want := cluster.Fingerprint(partial("1", own), mine)
	if got := remember(partial("1", append(others, own)...)).Fingerprint; got != want || got == "" {
		t.Errorf("our entry is fingerprinted, want %q, got %q", want, got)
	}
	if got := remember(partial("1", others...)).Fingerprint; got != "" {
		t.Errorf("the others applied no fields of the object, got %q", got)
	}
}

// forged are made-up entries of many managers whose names begin as ours, half of them in another version.
func forged() []metav1.ManagedFieldsEntry {
	entries := make([]metav1.ManagedFieldsEntry, 3000)
	for i := range entries {
		entries[i] = entry(fmt.Sprintf("sluice-forged-%d", i), fmt.Sprintf("a/v%d", i%2), "", metav1.ManagedFieldsOperationApply)
	}
	return entries
}

// Whoever may write an object may put thousands of entries into its managedFields. What is kept of it must not grow with
// them, nor what one event costs with their square.
func TestForgedManagersCostNothing(t *testing.T) {
	t.Parallel()
	alone := remember(partial("5", forged()...)).Fingerprint
	among := remember(partial("5", append(forged(), entry(mine, "v1", "", metav1.ManagedFieldsOperationApply))...)).Fingerprint
	if single := remember(partial("5", forged()[0])).Fingerprint; len(alone) != len(single) || len(among) != len(single) {
		t.Errorf("many entries take as much as one: %q, %q, %q", alone, among, single)
	}
	if alone == among {
		t.Error("the owner's own manager counts among the others")
	}
}

func TestOwnersOfForgedObjectsAreServed(t *testing.T) {
	t.Parallel()
	watch := newSubjectWatch(remembering(t), Subject{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "ns"})
	watch.join("two", "two")
	object := remember(partial("5", append(forged(), entry(mine, "v1", "", metav1.ManagedFieldsOperationApply))...))
	watch.commit(map[string]*Meta{"a": object}, "5")
	watch.join("one", "one")
	if found, known := watch.state("one", "a"); !known || found != object || len(watch.again) != 0 {
		t.Errorf("the owner that joins knows its object without another list: %+v, known %v", found, known)
	}
}

func TestAnswerThatChangesNothingIsRemembered(t *testing.T) {
	t.Parallel()
	watcher := remembering(t)
	watch := newSubjectWatch(watcher, Subject{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "ns"})
	watch.join("one", "one")
	watcher.owners["one"] = owner{value: "one", watches: map[Subject]*subjectWatch{watch.subject: watch}}
	ref := cluster.Ref{GVK: watch.subject.GVK, Namespace: "ns", Name: "a"}
	watch.commit(map[string]*Meta{"a": {Seen: cluster.Seen{UID: "uid", ResourceVersion: "5", Deleting: true}, PartOf: "one"}}, "5")

	watcher.Wrote("one", ref, cluster.Seen{UID: "other", ResourceVersion: "5", Fingerprint: "print"})
	if found, _ := watch.state("one", "a"); found.Fingerprint != "" {
		t.Error("an answer about another object says nothing")
	}
	watcher.Wrote("one", ref, cluster.Seen{UID: "uid", ResourceVersion: "5", Fingerprint: "print", Deleting: true})
	if found, _ := watch.state("one", "a"); found.Fingerprint != "print" || !found.Deleting {
		t.Errorf("the answer says what the API server keeps, got %+v", found)
	}
}

func TestOwnWritesWakeNobody(t *testing.T) {
	t.Parallel()
	watcher := remembering(t)
	watch := newSubjectWatch(watcher, Subject{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "ns"})
	watch.join("one", "one")
	watch.commit(nil, "5")
	watcher.owners["one"] = owner{value: "one", watches: map[Subject]*subjectWatch{watch.subject: watch}}
	ref := cluster.Ref{GVK: watch.subject.GVK, Namespace: "ns", Name: "a"}
	own := entry(mine, "v1", "", metav1.ManagedFieldsOperationApply)

	watcher.Wrote("one", ref, cluster.Seen{UID: "uid", ResourceVersion: "10", Fingerprint: remember(partial("10", own)).Fingerprint})
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
	watcher.Wrote("one", cluster.Ref{GVK: ref.GVK, Namespace: "ns", Name: "b"}, cluster.Seen{UID: "b", ResourceVersion: "20"})
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
