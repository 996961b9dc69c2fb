package cluster_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/engine/cluster"
)

func TestMadeBy(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	entry := func(name string, operation metav1.ManagedFieldsOperationType, subresource string, after time.Duration) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(created.Add(after))
		return metav1.ManagedFieldsEntry{Manager: name, Operation: operation, Subresource: subresource, Time: &at}
	}
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	for name, tc := range map[string]struct {
		reason  string
		entries []metav1.ManagedFieldsEntry
		want    bool
	}{
		"Alone":      {"nobody else wrote", []metav1.ManagedFieldsEntry{entry(manager, apply, "", 0)}, true},
		"Wiped":      {"nothing is known", nil, false},
		"Later":      {"it was there before", []metav1.ManagedFieldsEntry{entry(manager, apply, "", time.Second)}, false},
		"Updated":    {"what was not applied proves nothing", []metav1.ManagedFieldsEntry{entry(manager, update, "", 0)}, false},
		"Status":     {"a status is no creation", []metav1.ManagedFieldsEntry{entry(manager, apply, "", 0), entry("kubelet", update, "status", 0)}, true},
		"SameSecond": {"either may have been first", []metav1.ManagedFieldsEntry{entry(manager, apply, "", 0), entry("kubectl", update, "", 0)}, false},
		"Slow": {
			"admission took its time, and somebody wrote since",
			[]metav1.ManagedFieldsEntry{entry(manager, apply, "", -time.Second), entry("kubectl", update, "", time.Hour)},
			true,
		},
		"Restored": {"a backup was restored, and who had made the object is not known", []metav1.ManagedFieldsEntry{entry(manager, apply, "", -time.Hour)}, false},
		"Other":    {"another manager is none of ours", []metav1.ManagedFieldsEntry{entry(other, apply, "", 0)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := &metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created), ManagedFields: tc.entries}
			if got := cluster.MadeBy(object, manager); got != tc.want {
				t.Errorf("%s: %v", tc.reason, got)
			}
		})
	}
}
