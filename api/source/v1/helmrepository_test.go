package v1_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
)

func TestDefaultsOfUnsetHelmRepositoryFields(t *testing.T) {
	t.Parallel()
	type defaults struct {
		interval, timeout time.Duration
		kind, provider    string
	}
	cases := map[string]struct {
		reason string
		spec   sourcev1.HelmRepositorySpec
		want   defaults
	}{
		"Unset": {
			reason: "The schema has no default for interval and timeout; a minute is meant.",
			want:   defaults{time.Minute, time.Minute, "default", "generic"},
		},
		"Set": {
			reason: "What is set counts.",
			spec: sourcev1.HelmRepositorySpec{
				Interval: metav1.Duration{Duration: time.Hour}, Timeout: &metav1.Duration{Duration: 5 * time.Second},
				Type: "oci", Provider: "gcp",
			},
			want: defaults{time.Hour, 5 * time.Second, "oci", "gcp"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := &sourcev1.HelmRepository{Spec: tc.spec}
			got := defaults{repo.GetRequeueAfter(), repo.Spec.GetTimeout(), repo.Spec.GetType(), repo.Spec.GetProvider()}
			if got != tc.want {
				t.Errorf("%s\nwant %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

// TestHelmRepositoryIsWrittenAsRead: every field has its name on the wire, and comes back under it.
func TestHelmRepositoryIsWrittenAsRead(t *testing.T) {
	t.Parallel()
	want := `{"kind":"HelmRepository","apiVersion":"source.toolkit.fluxcd.io/v1","metadata":{"name":"app","namespace":"default"},` +
		`"spec":{"url":"https://charts.example.com","secretRef":{"name":"login"},"certSecretRef":{"name":"tls"},` +
		`"passCredentials":true,"interval":"1m0s","insecure":true,"timeout":"5s","suspend":true,` +
		`"accessFrom":{"namespaceSelectors":[{"matchLabels":{"a":"b"}}]},"type":"oci","provider":"aws"},` +
		`"status":{"observedGeneration":2,` +
		`"conditions":[{"type":"Ready","status":"True","lastTransitionTime":null,"reason":"Succeeded","message":"m"}],` +
		`"url":"http://sluice/index.yaml",` +
		`"artifact":{"digest":"sha256:1","path":"p","url":"u","revision":"sha256:0","lastUpdateTime":null},` +
		`"contentConfigChecksum":"sha256:2","lastHandledReconcileAt":"now"}}`
	var repo sourcev1.HelmRepository
	if err := json.Unmarshal([]byte(want), &repo); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(repo)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("object written back (-want +got):\n%s", diff)
	}
}

func TestHelmRepositoryGivesItsParts(t *testing.T) {
	t.Parallel()
	artifact := &meta.Artifact{Path: "helmrepository/default/app/index-1.yaml", Revision: "sha256:1"}
	repo := &sourcev1.HelmRepository{Status: sourcev1.HelmRepositoryStatus{Artifact: artifact}}
	repo.SetConditions([]metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionTrue}})
	if got := repo.GetConditions(); len(got) != 1 || got[0].Type != meta.ReadyCondition {
		t.Errorf("conditions: got %v", got)
	}
	if repo.GetArtifact() != artifact {
		t.Errorf("artifact: got %v", repo.GetArtifact())
	}
}
