package kpt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt"
)

const points = `apiVersion: v1
kind: ConfigMap
metadata:
  name: net # of the site
  annotations:
    kpt.dev/config-injection: required
data:
  # Where it stands.
  site: none
  mtu: "1500"
  old: x
---
apiVersion: infra.example/v1
kind: Site
metadata:
  name: site
  annotations: {kpt.dev/config-injection: optional}
spec: {}
---
apiVersion: v1
kind: Secret
metadata:
  name: pass
  annotations:
    kpt.dev/config-injection: optional
type: Opaque
data:
  a: b
`

func pointsOf(t *testing.T, r *kpt.Resources) map[string]kpt.Point {
	t.Helper()
	found, err := r.Points()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]kpt.Point{}
	for _, point := range found {
		byName[point.ID.String()] = point
	}
	return byName
}

func TestInjectionTakesWhatTheObjectHolds(t *testing.T) {
	t.Parallel()
	held := map[string]map[string]any{
		"ConfigMap net": {"data": map[string]any{"site": "eu", "mtu": "1500", "on": "yes"}, "metadata": map[string]any{"name": "evil"}},
		"Site.infra.example site": {
			"spec":   map[string]any{"rank": int64(3), "ratio": 0.5, "zones": []any{"a", map[string]any{"b": nil}}, "up": true},
			"status": map[string]any{"up": true},
		},
		"Secret pass": {"type": "kubernetes.io/tls", "stringData": map[string]any{"x": "y"}},
	}
	resources := open(t, pkg(map[string]string{"points.yaml": points}))
	for id, point := range pointsOf(t, resources) {
		if err := point.Inject("from-"+point.ID.Name, held[id]); err != nil {
			t.Fatal(err)
		}
	}
	written, err := resources.Package()
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: v1
kind: ConfigMap
metadata:
  name: net # of the site
  annotations:
    kpt.dev/config-injection: required
    kpt.dev/injected-resource: from-net
data:
  # Where it stands.
  site: eu
  mtu: "1500"
  "on": "yes"
---
apiVersion: infra.example/v1
kind: Site
metadata:
  name: site
  annotations: {kpt.dev/config-injection: optional, kpt.dev/injected-resource: from-site}
spec:
  rank: 3
  ratio: 0.5
  up: true
  zones:
  - a
  - b: null
---
apiVersion: v1
kind: Secret
metadata:
  name: pass
  annotations:
    kpt.dev/config-injection: optional
    kpt.dev/injected-resource: from-pass
type: kubernetes.io/tls
`
	if diff := cmp.Diff(want, string(written["points.yaml"].Content)); diff != "" {
		t.Error(diff)
	}
	again := open(t, written)
	for id, point := range pointsOf(t, again) {
		if err := point.Inject(point.Injected, held[id]); err != nil {
			t.Fatal(err)
		}
		content, err := point.Content()
		if err != nil {
			t.Fatal(err)
		}
		if err := point.Inject(point.Injected, content); err != nil {
			t.Fatal(err)
		}
	}
	if same, err := again.Package(); err != nil || !same.Equal(written) {
		t.Errorf("the second time changes more: %v\n%s", err, cmp.Diff(contents(written), contents(same)))
	}
	for _, point := range pointsOf(t, again) {
		point.Release()
		point.Release()
	}
	released, err := again.Package()
	if err != nil || strings.Contains(string(released["points.yaml"].Content), "injected-resource") {
		t.Errorf("%v\n%s", err, released["points.yaml"].Content)
	}
}

func TestPointsAreMarkedInOneOfTwoWays(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, file, text, want string }{
		"word": {
			"Another word is a mistake.", "a.yaml", configMap("a") + "  annotations:\n    kpt.dev/config-injection: 'yes'\n",
			`a.yaml:6: kpt.dev/config-injection is "yes", and neither required nor optional`,
		},
		"kptfile": {
			"What a Kptfile says is not for others to replace.", "Kptfile", kptfile + "  annotations:\n    kpt.dev/config-injection: required\n",
			"Kptfile:6: a Kptfile cannot be a point of injection",
		},
	}
	for name, tc := range cases {
		_, err := open(t, pkg(map[string]string{tc.file: tc.text})).Points()
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s: %s: got %v", name, tc.reason, err)
		}
	}
}

// TestInjectionPointsAreBounded: each of them costs a question to the API server.
func TestInjectionPointsAreBounded(t *testing.T) {
	t.Parallel()
	many := ""
	for i := range 1_001 {
		many += point("", "", fmt.Sprint("p", i)) + "---\n"
	}
	if _, err := open(t, pkg(map[string]string{"a.yaml": many})).Points(); err == nil || !strings.Contains(err.Error(), "more than 1000 points of injection") {
		t.Errorf("got %v", err)
	}
}

func point(group, namespace, name string) string {
	text := "apiVersion: " + group + "v1\nkind: Site\nmetadata:\n  name: " + name + "\n"
	if namespace != "" {
		text += "  namespace: " + namespace + "\n"
	}
	return text + "  annotations:\n    kpt.dev/config-injection: required\n"
}

func TestConditionTypesAreUnambiguous(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   []string
		err    string
	}{
		"alone": {
			"A point that shares its kind and name with none has Porch's type.",
			map[string]string{"a.yaml": point("x.example/", "", "a") + "---\n" + point("x.example/", "", "b.c")},
			[]string{"config.injection.Site.a", "config.injection.Site.b.c"},
			"",
		},
		"shared": {
			"Points of the same kind and name in other groups, namespaces and subpackages have types of their own.",
			map[string]string{
				"a.yaml":     point("x.example/", "", "a") + "---\n" + point("y.example/", "", "a") + "---\n" + point("y.example/", "n", "a"),
				"sub/a.yaml": point("x.example/", "", "a"),
			},
			[]string{
				"config.injection.Site.a/x.example//a.yaml", "config.injection.Site.a/y.example//a.yaml",
				"config.injection.Site.a/y.example/n/a.yaml", "config.injection.Site.a/x.example//sub/a.yaml",
			},
			"",
		},
		"same": {
			"One object twice has no two conditions.",
			map[string]string{"a.yaml": point("", "", "a") + "---\n" + point("", "", "a")},
			nil, "a.yaml:8: there are two points of injection Site a",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := open(t, pkg(tc.files)).Points()
			if err != nil {
				t.Fatal(err)
			}
			got, err := kpt.ConditionTypes(found)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
			if tc.err != "" && (err == nil || err.Error() != tc.err) || tc.err == "" && err != nil {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}

func TestInjectionStatusComesAndGoes(t *testing.T) {
	t.Parallel()
	const mine, other = "config.injection.ConfigMap.mine", "config.injection.ConfigMap.other"
	before := kptfile + `info:
  readinessGates:
  - conditionType: people.asked # twice
  - conditionType: ` + other + `
status:
  conditions:
  - type: ` + mine + ` # ours
    status: "False"
    message: none
  - type: people.asked
    status: "True"
`
	k := readKptfile(t, before)
	k.SetInjectionStatus([]string{mine}, []kpt.Condition{{Type: mine, Status: "True", Reason: "ConfigInjected"}, {Type: other, Status: "False"}})
	want := kptfile + `info:
  readinessGates:
  - conditionType: people.asked # twice
  - conditionType: ` + mine + `
status:
  conditions:
  - type: ` + mine + ` # ours
    status: "True"
    reason: ConfigInjected
  - type: people.asked
    status: "True"
  - type: ` + other + `
    status: "False"
`
	if diff := cmp.Diff(want, bytesOf(t, k)); diff != "" {
		t.Error(diff)
	}
	k.SetInjectionStatus(nil, nil)
	want = kptfile + `info:
  readinessGates:
  - conditionType: people.asked # twice
status:
  conditions:
  - type: people.asked
    status: "True"
`
	if diff := cmp.Diff(want, bytesOf(t, k)); diff != "" {
		t.Error(diff)
	}
}
