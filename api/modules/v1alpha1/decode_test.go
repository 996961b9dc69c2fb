package v1alpha1_test

import (
	"encoding/json"
	"strings"
	"testing"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// decoded is what the test looks at, of an object of any kind.
type decoded struct {
	name, undecodable string
	unreadable        bool
	generation        int64
}

// listed decodes a list of any kind.
func listed[List any](t *testing.T, text string, all func(*List) []decoded) []decoded {
	t.Helper()
	var list List
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	return all(&list)
}

func templates(l *modulesv1.ModuleTemplateList) (all []decoded) {
	for _, o := range l.Items {
		all = append(all, decoded{o.Name, o.Undecodable, o.UnreadableStatus, o.Status.ObservedGeneration})
	}
	return all
}

func modules(l *modulesv1.ModuleList) (all []decoded) {
	for _, o := range l.Items {
		all = append(all, decoded{o.Name, o.Undecodable, o.UnreadableStatus, o.Status.ObservedGeneration})
	}
	return all
}

func installations(l *modulesv1.ModuleInstallationList) (all []decoded) {
	for _, o := range l.Items {
		all = append(all, decoded{o.Name, o.Undecodable, o.UnreadableStatus, o.Status.ObservedGeneration})
	}
	return all
}

func inventories(l *modulesv1.InventoryList) (all []decoded) {
	for _, o := range l.Items {
		all = append(all, decoded{o.Name, o.Undecodable, false, 0})
	}
	return all
}

// TestNoObjectFailsItsList: what one object holds hides no other one from an informer.
func TestNoObjectFailsItsList(t *testing.T) {
	t.Parallel()
	const badTime = `"2020-01-01t00:00:00z"`
	badStatus := `"status":{"observedGeneration":7,"conditions":[{"type":"Ready","lastTransitionTime":` + badTime + `}]}`
	good := `{"metadata":{"name":"good"},"spec":{},"status":{"observedGeneration":3}}`
	cases := map[string]struct {
		reason string
		bad    string
		good   string
		read   func(*testing.T, string) []decoded
		want   decoded
	}{
		"TemplateSpec": {
			"a spec that Go cannot hold is left empty", `"spec":{"version":{}},"status":{"observedGeneration":7}`, good,
			func(t *testing.T, s string) []decoded { t.Helper(); return listed(t, s, templates) },
			decoded{"bad", "spec", false, 7},
		},
		"TemplateStatus": {
			"a status that Go cannot hold counts as unseen", `"spec":{},` + badStatus, good,
			func(t *testing.T, s string) []decoded { t.Helper(); return listed(t, s, templates) },
			decoded{"bad", "", true, -1},
		},
		"Module": {
			"both may be bad", `"spec":{"channels":{}},` + badStatus, good,
			func(t *testing.T, s string) []decoded { t.Helper(); return listed(t, s, modules) },
			decoded{"bad", "spec", true, -1},
		},
		"Installation": {
			"an interval passes the pattern and overflows", `"spec":{"interval":"9999999999999999h"},"status":{"observedGeneration":7}`, good,
			func(t *testing.T, s string) []decoded { t.Helper(); return listed(t, s, installations) },
			decoded{"bad", "spec", false, 7},
		},
		"Inventory": {
			"a record that cannot be read says so", `"data":{"phase":"Installed","current":{"appliedAt":` + badTime + `}}`, `{"metadata":{"name":"good"},"data":{}}`,
			func(t *testing.T, s string) []decoded { t.Helper(); return listed(t, s, inventories) },
			decoded{"bad", "data", false, 0},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := tc.read(t, `{"items":[{"metadata":{"name":"bad"},`+tc.bad+`},`+tc.good+`]}`)
			bad, other := all[0], all[1]
			if !strings.HasPrefix(bad.undecodable, tc.want.undecodable) || (bad.undecodable == "") != (tc.want.undecodable == "") {
				t.Errorf("%s: undecodable %q", tc.reason, bad.undecodable)
			}
			bad.undecodable = tc.want.undecodable
			if bad != tc.want || other.name != "good" || other.undecodable != "" || other.unreadable {
				t.Errorf("%s: got %+v and %+v", tc.reason, bad, other)
			}
		})
	}
}
