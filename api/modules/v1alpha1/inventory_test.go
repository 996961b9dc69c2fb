package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

// TestInventorySize: as many members as an installation may well have fit into 1 MiB as the API server stores them,
// its own bookkeeping included, also after edits; and as many as the schema allows are still taken.
func TestInventorySize(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason         string
		members, bytes int
	}{
		{"a large installation", 5000, 1 << 20},
		{"the largest", modulesv1.MaxMembers, 3 << 19},
	} {
		object := inventory(t, tc.members)
		if err := env.Client.Create(t.Context(), object, testenv.Strict()); err != nil {
			t.Fatalf("%s: %v", tc.reason, err)
		}
		object.SetLabels(map[string]string{"edited": "true"})
		if err := env.Client.Update(t.Context(), object, testenv.Strict()); err != nil {
			t.Fatalf("%s: %v", tc.reason, err)
		}
		stored, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d members take %d bytes, %d each", tc.members, len(stored), len(stored)/tc.members)
		if len(stored) > tc.bytes {
			t.Errorf("%s: %d members take %d bytes, more than %d", tc.reason, tc.members, len(stored), tc.bytes)
		}
	}
	if err := env.Client.Create(t.Context(), inventory(t, modulesv1.MaxMembers+1), testenv.Strict()); err == nil {
		t.Error("more members than there may be were taken")
	}
}

func inventory(t *testing.T, count int) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&modulesv1.Inventory{
		TypeMeta:   metav1.TypeMeta{APIVersion: modulesv1.GroupVersion.String(), Kind: modulesv1.InventoryKind},
		ObjectMeta: metav1.ObjectMeta{Name: "many", Namespace: env.NewNamespace(t)},
		Data:       modulesv1.InventoryData{InstallationUID: "u", Phase: modulesv1.PhaseInstalled, Members: members(count)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: fields}
}

// members are as long as those of real installations: kinds, names and namespaces of usual length.
func members(count int) []modulesv1.Member {
	kinds := []modulesv1.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"},
		{Version: "v1", Kind: "ServiceAccount"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
		{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"},
	}
	hash := strings.Repeat("A", 22)
	all := make([]modulesv1.Member, 0, count)
	for i := range count {
		kind := kinds[i%len(kinds)]
		all = append(all, modulesv1.Member{
			Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: "redis-system",
			Name: fmt.Sprintf("redis-operator-metrics-%04d", i), UID: fmt.Sprintf("4c3f3a0e-0000-4000-8000-%012d", i),
			RenderHash: hash, Fingerprint: hash,
		})
	}
	return all
}
