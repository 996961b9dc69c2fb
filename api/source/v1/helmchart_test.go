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

func TestDefaultsOfUnsetHelmChartFields(t *testing.T) {
	t.Parallel()
	type defaults struct {
		version, strategy string
		values            []string
	}
	cases := map[string]struct {
		reason string
		spec   sourcev1.HelmChartSpec
		want   defaults
	}{
		"Unset": {
			reason: "An object that is not from an API server has none of the schema's defaults.",
			want:   defaults{"*", "ChartVersion", nil},
		},
		"Set": {
			reason: "What is set counts.",
			spec:   sourcev1.HelmChartSpec{Version: "1.x", ReconcileStrategy: "Revision", ValuesFiles: []string{"values.yaml", "b"}},
			want:   defaults{"1.x", "Revision", []string{"values.yaml", "b"}},
		},
		"OwnValues": {
			reason: "The chart's own values alone are no change to the package.",
			spec:   sourcev1.HelmChartSpec{ValuesFiles: []string{"values.yaml"}},
			want:   defaults{"*", "ChartVersion", nil},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := defaults{tc.spec.GetVersion(), tc.spec.GetReconcileStrategy(), tc.spec.GetValuesFiles()}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(defaults{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestHelmChartIsWrittenAsRead: every field has its name on the wire, and comes back under it.
func TestHelmChartIsWrittenAsRead(t *testing.T) {
	t.Parallel()
	want := `{"kind":"HelmChart","apiVersion":"source.toolkit.fluxcd.io/v1","metadata":{"name":"app","namespace":"default"},` +
		`"spec":{"chart":"app","version":"1.x","sourceRef":{"apiVersion":"source.toolkit.fluxcd.io/v1","kind":"HelmRepository","name":"r"},` +
		`"interval":"1m0s","reconcileStrategy":"Revision","valuesFiles":["a.yaml"],"ignoreMissingValuesFiles":true,"suspend":true,` +
		`"verify":{"provider":"cosign","secretRef":{"name":"keys"},"matchOIDCIdentity":[{"issuer":"^i$","subject":"^s$"}]}},` +
		`"status":{"observedGeneration":2,"observedSourceArtifactRevision":"sha256:3","observedChartName":"app","observedValuesFiles":["a.yaml"],` +
		`"conditions":[{"type":"Ready","status":"True","lastTransitionTime":null,"reason":"ChartPullSucceeded","message":"m"}],` +
		`"url":"http://sluice/latest.tar.gz",` +
		`"artifact":{"digest":"sha256:1","path":"p","url":"u","revision":"1.0.0","lastUpdateTime":null},` +
		`"contentConfigChecksum":"sha256:2","lastHandledReconcileAt":"now"}}`
	var chart sourcev1.HelmChart
	if err := json.Unmarshal([]byte(want), &chart); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(chart)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("object written back (-want +got):\n%s", diff)
	}
}

func TestHelmChartGivesItsParts(t *testing.T) {
	t.Parallel()
	artifact := &meta.Artifact{Path: "helmchart/default/app/app-1.0.0.tgz", Revision: "1.0.0"}
	chart := &sourcev1.HelmChart{
		Spec:   sourcev1.HelmChartSpec{Interval: metav1.Duration{Duration: time.Hour}},
		Status: sourcev1.HelmChartStatus{Artifact: artifact},
	}
	chart.SetConditions([]metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionTrue}})
	if got := chart.GetConditions(); len(got) != 1 || got[0].Type != meta.ReadyCondition {
		t.Errorf("conditions: got %v", got)
	}
	if chart.GetRequeueAfter() != time.Hour || chart.GetArtifact() != artifact {
		t.Errorf("got interval %s, artifact %v", chart.GetRequeueAfter(), chart.GetArtifact())
	}
}
