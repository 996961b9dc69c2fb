package engine

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// TestAClaimTakesTheHashes: a member that is to change has no hash, wherever in the release what is new stands.
func TestAClaimTakesTheHashes(t *testing.T) {
	t.Parallel()
	made := &render{keys: map[key]bool{}}
	for _, name := range []string{"new", "old"} {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		o.SetName(name)
		made.objects = append(made.objects, object{key: keyOfObject(o), hash: "second", Unstructured: o})
		made.keys[keyOfObject(o)] = true
	}
	members := []modulesv1.Member{{
		Version: "v1", Kind: "ConfigMap", Name: "old", UID: "uid", RenderHash: "first", Fingerprint: "seen", State: modulesv1.MemberApplied,
	}}
	for m := range every(claimed(members, made)) {
		if m.RenderHash != "" || m.Fingerprint != "" {
			t.Errorf("%s is claimed as it was: %+v", m.Name, m)
		}
	}
}
