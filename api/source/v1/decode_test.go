package v1_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	sourcev1 "sluice.dev/sluice/api/source/v1"
)

func TestNoObjectFailsItsList(t *testing.T) {
	t.Parallel()
	good := `{"metadata":{"name":"good"},"spec":{"url":"https://x/y","interval":"1m"},"status":{"observedGeneration":3}}`
	cases := map[string]struct {
		reason      string
		object      string
		undecodable string
		generation  int64
	}{
		"HugeInterval": {
			"an interval that passes the pattern and overflows",
			`{"metadata":{"name":"bad"},"spec":{"url":"https://x/y","interval":"9999999999999999h"},"status":{"observedGeneration":7}}`, "spec", 7,
		},
		"ForgedTime": {
			"a time that passes the format and that Go does not parse is dropped with its status",
			`{"metadata":{"name":"bad"},"spec":{"url":"https://x/y","interval":"1m"},"status":{"observedGeneration":7,"artifact":{"path":"p","url":"u","revision":"r","lastUpdateTime":"2020-01-01t00:00:00z"}}}`, "", -1,
		},
		"Both": {
			"both parts may be bad",
			`{"metadata":{"name":"bad"},"spec":{"interval":"9999999999999999h"},"status":{"conditions":[{"type":"Ready","lastTransitionTime":"2020-01-01t00:00:00z"}]}}`, "spec", -1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var list sourcev1.GitRepositoryList
			if err := json.Unmarshal([]byte(`{"items":[`+tc.object+`,`+good+`]}`), &list); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			bad, other := list.Items[0], list.Items[1]
			if bad.Name != "bad" || (bad.Undecodable != "") != (tc.undecodable != "") || !strings.Contains(bad.Undecodable, tc.undecodable) {
				t.Errorf("%s: got %+v", tc.reason, bad)
			}
			if bad.Status.ObservedGeneration != tc.generation {
				t.Errorf("%s: got generation %d", tc.reason, bad.Status.ObservedGeneration)
			}
			if other.Undecodable != "" || other.Spec.Interval.Duration != time.Minute || other.Status.ObservedGeneration != 3 {
				t.Errorf("%s: the other object is hurt: %+v", tc.reason, other)
			}
		})
	}
}
