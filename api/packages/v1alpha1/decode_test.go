package v1alpha1_test

import (
	"encoding/json"
	"strings"
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
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

func repositories(l *packagesv1.RepositoryList) (all []decoded) {
	for _, o := range l.Items {
		all = append(all, decoded{o.Name, o.Undecodable, o.UnreadableStatus, o.Status.ObservedGeneration})
	}
	return all
}

func variants(l *packagesv1.PackageVariantList) (all []decoded) {
	for _, o := range l.Items {
		all = append(all, decoded{o.Name, o.Undecodable, o.UnreadableStatus, o.Status.ObservedGeneration})
	}
	return all
}

func revisions(l *packagesv1.PackageRevisionList) (all []decoded) {
	for _, o := range l.Items {
		all = append(all, decoded{o.Name, o.Undecodable, o.UnreadableStatus, o.Status.ObservedGeneration})
	}
	return all
}

// TestNoObjectFailsItsList: what one object holds hides no other one from an informer.
func TestNoObjectFailsItsList(t *testing.T) {
	t.Parallel()
	const (
		good      = `{"metadata":{"name":"good"},"spec":{},"status":{"observedGeneration":3}}`
		seen      = `"status":{"observedGeneration":7}`
		badStatus = `"status":{"observedGeneration":7,"conditions":[{"type":"Ready","lastTransitionTime":"2020-01-01t00:00:00z"}]}`
	)
	cases := map[string]struct {
		reason string
		bad    string
		read   func(*testing.T, string) []decoded
		want   decoded
	}{
		"RepositorySpec": {
			"an interval passes the pattern and overflows", `"spec":{"interval":"9999999999999999h"},` + seen,
			func(t *testing.T, s string) []decoded { t.Helper(); return listed(t, s, repositories) },
			decoded{"bad", "spec", false, 7},
		},
		"RepositoryStatus": {
			"a status that Go cannot hold counts as unseen", `"spec":{},"status":{"lastSyncTime":"2020-01-01t00:00:00z"}`,
			func(t *testing.T, s string) []decoded { t.Helper(); return listed(t, s, repositories) },
			decoded{"bad", "", true, -1},
		},
		"VariantSpec": {
			"a spec that Go cannot hold is left empty", `"spec":{"timeout":"9999999999999999h"},` + seen,
			func(t *testing.T, s string) []decoded { t.Helper(); return listed(t, s, variants) },
			decoded{"bad", "spec", false, 7},
		},
		"VariantBoth": {
			"both may be bad", `"spec":{"upstream":[]},` + badStatus,
			func(t *testing.T, s string) []decoded { t.Helper(); return listed(t, s, variants) },
			decoded{"bad", "spec", true, -1},
		},
		"RevisionSpec": {
			"a spec that Go cannot hold is left empty", `"spec":{"workspace":{}},` + seen,
			func(t *testing.T, s string) []decoded { t.Helper(); return listed(t, s, revisions) },
			decoded{"bad", "spec", false, 7},
		},
		"RevisionStatus": {
			"an artifact's time may be forged", `"spec":{},"status":{"observedGeneration":7,"artifact":{"lastUpdateTime":"2020-01-01t00:00:00z"}}`,
			func(t *testing.T, s string) []decoded { t.Helper(); return listed(t, s, revisions) },
			decoded{"bad", "", true, -1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := tc.read(t, `{"items":[{"metadata":{"name":"bad"},`+tc.bad+`},`+good+`]}`)
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
