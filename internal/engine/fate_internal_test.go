package engine

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestFate is the order of the rules: what belongs to nobody here is never touched, what is asked for comes before what
// is found, and only what nothing speaks for goes.
func TestFate(t *testing.T) {
	t.Parallel()
	var (
		config    = schema.GroupKind{Kind: "ConfigMap"}
		namespace = schema.GroupKind{Kind: "Namespace"}
		claimKind = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	)
	for name, tc := range map[string]struct {
		reason string
		facts  facts
		want   fate
	}{
		"Foreign":    {"whatever else is known of it", facts{kind: config, orphan: true, claimed: true}, foreign},
		"Plain":      {"nothing speaks for it", facts{kind: config, owned: true}, goes},
		"Orphan":     {"nothing is deleted in that mode", facts{kind: config, owned: true, orphan: true}, letGo},
		"Claimed":    {"another installation needs it", facts{kind: claimKind, owned: true, claimed: true, keptBy: "x"}, inherited},
		"Home":       {"the record is in it", facts{kind: namespace, owned: true, home: true}, letGo},
		"Kept":       {"somebody says so", facts{kind: config, owned: true, keptBy: "x"}, letGo},
		"Volume":     {"it is data", facts{kind: claimKind, owned: true}, letGo},
		"Adopted":    {"somebody else made it", facts{kind: config, owned: true, adopted: true}, letGo},
		"Empty":      {"nothing is in it", facts{kind: namespace, owned: true}, goes},
		"Inhabited":  {"something is in it", facts{kind: namespace, owned: true, holds: "x"}, letGo},
		"Definition": {"there are no objects of it", facts{kind: definitionKind(), owned: true}, goes},
		"Instances":  {"there are objects of it", facts{kind: definitionKind(), owned: true, holds: "x"}, held},
	} {
		got, why := tc.facts.fate()
		if got != tc.want || (why == "") != (got == goes || got == inherited || tc.facts.orphan && got == letGo) {
			t.Errorf("%s: %s: got %d, %q", name, tc.reason, got, why)
		}
	}
}

// TestAnnotationsAreNotQuoted: a variable in one may stand for what a Secret has, and the error is told to whoever sees the installation.
func TestAnnotationsAreNotQuoted(t *testing.T) {
	t.Parallel()
	for _, name := range []string{SSAAnnotation, ForceAnnotation} {
		obj := &unstructured.Unstructured{}
		obj.SetAnnotations(map[string]string{name: "canary-value"})
		if _, err := annotated(obj); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
