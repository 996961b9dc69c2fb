package v1_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// decoded is what the test looks at, of an object of any kind.
type decoded struct {
	name, undecodable string
	unreadable        bool
	interval          time.Duration
	generation        int64
}

func gitRepositories(t *testing.T, list string) []decoded {
	t.Helper()
	var repos sourcev1.GitRepositoryList
	if err := json.Unmarshal([]byte(list), &repos); err != nil {
		t.Fatal(err)
	}
	var all []decoded
	for _, r := range repos.Items {
		all = append(all, decoded{r.Name, r.Undecodable, r.UnreadableStatus, r.GetRequeueAfter(), r.Status.ObservedGeneration})
	}
	return all
}

func ociRepositories(t *testing.T, list string) []decoded {
	t.Helper()
	var repos sourcev1.OCIRepositoryList
	if err := json.Unmarshal([]byte(list), &repos); err != nil {
		t.Fatal(err)
	}
	var all []decoded
	for _, r := range repos.Items {
		all = append(all, decoded{r.Name, r.Undecodable, r.UnreadableStatus, r.GetRequeueAfter(), r.Status.ObservedGeneration})
	}
	return all
}

func buckets(t *testing.T, list string) []decoded {
	t.Helper()
	var found sourcev1.BucketList
	if err := json.Unmarshal([]byte(list), &found); err != nil {
		t.Fatal(err)
	}
	var all []decoded
	for _, b := range found.Items {
		all = append(all, decoded{b.Name, b.Undecodable, b.UnreadableStatus, b.GetRequeueAfter(), b.Status.ObservedGeneration})
	}
	return all
}

func helmRepositories(t *testing.T, list string) []decoded {
	t.Helper()
	var objects sourcev1.HelmRepositoryList
	if err := json.Unmarshal([]byte(list), &objects); err != nil {
		t.Fatal(err)
	}
	var all []decoded
	for _, o := range objects.Items {
		all = append(all, decoded{o.Name, o.Undecodable, o.UnreadableStatus, o.GetRequeueAfter(), o.Status.ObservedGeneration})
	}
	return all
}

func helmCharts(t *testing.T, list string) []decoded {
	t.Helper()
	var objects sourcev1.HelmChartList
	if err := json.Unmarshal([]byte(list), &objects); err != nil {
		t.Fatal(err)
	}
	var all []decoded
	for _, o := range objects.Items {
		all = append(all, decoded{o.Name, o.Undecodable, o.UnreadableStatus, o.GetRequeueAfter(), o.Status.ObservedGeneration})
	}
	return all
}

func TestNoObjectFailsItsList(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(*testing.T, string) []decoded{
		"Git": gitRepositories, "OCI": ociRepositories, "Bucket": buckets, "Helm": helmRepositories, "Chart": helmCharts,
	}
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
		for kind, decode := range kinds {
			t.Run(kind+name, func(t *testing.T) {
				t.Parallel()
				all := decode(t, `{"items":[`+tc.object+`,`+good+`]}`)
				bad, other := all[0], all[1]
				if bad.name != "bad" || (bad.undecodable != "") != (tc.undecodable != "") || !strings.Contains(bad.undecodable, tc.undecodable) {
					t.Errorf("%s: got %+v", tc.reason, bad)
				}
				if bad.generation != tc.generation || bad.unreadable != (tc.generation == -1) {
					t.Errorf("%s: got %+v", tc.reason, bad)
				}
				if want := (decoded{name: "good", interval: time.Minute, generation: 3}); other != want {
					t.Errorf("%s: the other object is hurt: %+v", tc.reason, other)
				}
			})
		}
	}
}

// TestReasonIsBounded: a value is an attacker's choice, and ends up in a condition.
func TestReasonIsBounded(t *testing.T) {
	t.Parallel()
	list := `{"items":[{"spec":{"interval":"` + strings.Repeat("9", 10_000) + `h"}}]}`
	for kind, decode := range map[string]func(*testing.T, string) []decoded{"Git": gitRepositories, "OCI": ociRepositories, "Bucket": buckets} {
		if got := decode(t, list)[0].undecodable; got == "" || len(got) > 600 {
			t.Errorf("%s: %d bytes of reason", kind, len(got))
		}
	}
}

// TestDecodingReplacesTheObject: nothing of what an object held before shows through.
func TestDecodingReplacesTheObject(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"spec":{"interval":"1m"}}`, `{"spec":{"interval":"9999999999999999h"}}`} {
		want, got := sourcev1.OCIRepository{}, sourcev1.OCIRepository{Undecodable: "old", UnreadableStatus: true}
		got.Spec.URL, got.Status.URL, got.Name = "old", "old", "old"
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// TestBrokenMetadataIsAnError: without a name there is no object to report to.
func TestBrokenMetadataIsAnError(t *testing.T) {
	t.Parallel()
	text := []byte(`{"metadata":{"name":7},"spec":{},"status":{}}`)
	if err := json.Unmarshal(text, &sourcev1.GitRepository{}); err == nil {
		t.Error("a GitRepository named 7 was decoded")
	}
	if err := json.Unmarshal(text, &sourcev1.OCIRepository{}); err == nil {
		t.Error("an OCIRepository named 7 was decoded")
	}
}
