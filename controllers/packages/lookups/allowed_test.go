package lookups_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sluice.dev/sluice/controllers/packages/lookups"
)

var clusterKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Cluster"}

// allow is a list with the fields of a kind.
func allow(fields ...string) string {
	text, _ := json.Marshal(fields)
	return "- {apiVersion: example.com/v1, kind: Cluster, fields: " + string(text) + "}\n"
}

const manifest = `{
  "spec": {"region": "north", "secret": "s", "a.b": {"c": 1}, "nodes": [{"name": "one", "ip": "x"}, {"ip": "y"}, "text"], "long": "` + "%s" + `"},
  "status": {"phase": "Ready"}, "data": {"spec": "no"}
}`

func TestOnlyAllowedFieldsAreKept(t *testing.T) {
	t.Parallel()
	var object map[string]any
	if err := json.Unmarshal(fmt.Appendf(nil, manifest, strings.Repeat("a", 2000)), &object); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		reason string
		fields []string
		want   map[string]any
	}{
		{"a field, and nothing beside it", []string{"spec.region"}, map[string]any{"spec": map[string]any{"region": "north"}}},
		{"fields of both", []string{"spec.region", "status.phase"}, map[string]any{"spec": map[string]any{"region": "north"}, "status": map[string]any{"phase": "Ready"}}},
		{"all that is below, but what is too long", []string{"spec"}, map[string]any{"spec": map[string]any{
			"region": "north", "secret": "s", "a.b": map[string]any{"c": 1.0},
			"nodes": []any{map[string]any{"name": "one", "ip": "x"}, map[string]any{"ip": "y"}, "text"},
		}}},
		{"a shorter path has what a longer one has", []string{"status.phase", "status", "status.other"}, map[string]any{"status": map[string]any{"phase": "Ready"}}},
		{"a field of each element", []string{"spec.nodes.name"}, map[string]any{"spec": map[string]any{"nodes": []any{map[string]any{"name": "one"}, map[string]any{}}}}},
		{"a name with a dot", []string{`spec.a\.b.c`}, map[string]any{"spec": map[string]any{"a.b": map[string]any{"c": 1.0}}}},
		{"a field that is not there", []string{"spec.nothing.more", "status.phase.more"}, map[string]any{"spec": map[string]any{}, "status": map[string]any{}}},
	} {
		allowed, problems := lookups.ReadAllowed(map[string]string{"a": allow(test.fields...)})
		got, err := lookups.Seen(allowed, clusterKind, object)
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil || len(problems) > 0 {
			t.Errorf("%s: %v %v (-want +got):\n%s", test.reason, err, problems, diff)
		}
	}
	object["spec"] = map[string]any{"many": slicesOf(2000)}
	allowed, _ := lookups.ReadAllowed(map[string]string{"a": allow("spec")})
	if got, err := lookups.Seen(allowed, clusterKind, object); err == nil || got != nil {
		t.Errorf("an object with more than may be kept: %v", err)
	}
}

// TestWhatIsKeptOfAnObjectIsBounded: its annotations are as many as whoever makes it likes, and are kept for each selector.
func TestWhatIsKeptOfAnObjectIsBounded(t *testing.T) {
	t.Parallel()
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"wave": "first"}, Annotations: map[string]string{"healthy": "yes"}}}
	if got := lookups.Kept(object); got.Err != nil || got.Annotations["healthy"] != "yes" {
		t.Errorf("a common object: %v", got)
	}
	for i := range 200 {
		object.Annotations[fmt.Sprint(i)] = strings.Repeat("a", 1000)
	}
	got := lookups.Kept(object)
	if got.Err == nil || got.Labels["wave"] != "first" || len(got.Annotations) > 0 {
		t.Errorf("of an object with 200,000 bytes, %d annotations are kept: %v", len(got.Annotations), got.Err)
	}
}

func slicesOf(count int) []any {
	all := make([]any, count)
	for i := range all {
		all[i] = int64(i)
	}
	return all
}

// TestMistakesAreNamedAndTheRestCounts: one bad line of an allow list takes nothing from the others.
func TestMistakesAreNamedAndTheRestCounts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ reason, text, want string }{
		{"no YAML", "- {", "data[bad]: "},
		{"no list", "a: b", "data[bad]: "},
		{"a field that is not known", "- {apiVersion: v1, kind: Pod, paths: [spec.a]}", "data[bad]: "},
		{"no kind", "- {apiVersion: v1, fields: [spec.a]}", "data[bad][0]: apiVersion and kind have to be set"},
		{"half a version", "- {apiVersion: a/b/c, kind: Pod, fields: [spec.a]}", "data[bad][0]: apiVersion"},
		{"a Secret", "- {apiVersion: v1, kind: Secret, fields: [spec]}", "data[bad][0]: nothing of a Secret is ever seen"},
		{"a Secret of another version", "- {apiVersion: v2, kind: Secret, fields: [spec]}", "nothing of a Secret is ever seen"},
		{"somewhere else", "- {apiVersion: v1, kind: Pod, fields: [data.a]}", `data[bad][0]: field "data.a": a path begins with 'spec' or 'status'`},
		{"no name", "- {apiVersion: v1, kind: Pod, fields: [spec..a]}", "a name in it is empty"},
		{"too deep", "- {apiVersion: v1, kind: Pod, fields: [spec" + strings.Repeat(".a", 20) + "]}", "at most 16 names"},
		{"too long", "- {apiVersion: v1, kind: Pod, fields: [spec." + strings.Repeat("a", 600) + "]}", "at most 512 bytes"},
		{"too many", "- {apiVersion: v1, kind: Pod, fields: [" + strings.Repeat("spec.a,", 65) + "]}", "at most 64 are allowed"},
	} {
		allowed, problems := lookups.ReadAllowed(map[string]string{"bad": test.text, "good": allow("spec.region")})
		if len(problems) != 1 || !strings.Contains(problems[0].Error(), test.want) {
			t.Errorf("%s: %v", test.reason, problems)
		}
		if got, _ := lookups.Seen(allowed, clusterKind, map[string]any{"spec": map[string]any{"region": "north"}}); len(got) == 0 {
			t.Errorf("%s: what is right does not count", test.reason)
		}
	}
}

// FuzzReadAllowed: whatever an allow list says, nothing beside spec and status is seen, and little of these.
func FuzzReadAllowed(f *testing.F) {
	for _, field := range []string{"spec.region", `spec.a\.b.c`, "status", "spec.nodes.name", "metadata.name", "spec..", `\.`} {
		f.Add(allow(field))
	}
	f.Fuzz(func(t *testing.T, text string) {
		allowed, _ := lookups.ReadAllowed(map[string]string{"a": text})
		var object map[string]any
		if err := json.Unmarshal(fmt.Appendf(nil, manifest, ""), &object); err != nil {
			t.Fatal(err)
		}
		before := maps.Clone(object)
		got, err := lookups.Seen(allowed, clusterKind, object)
		if err != nil || cmp.Diff(before, object) != "" {
			t.Fatalf("%v", err)
		}
		delete(got, "spec")
		delete(got, "status")
		if len(got) > 0 {
			t.Errorf("it sees %v", got)
		}
	})
}
