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

func TestDefaultsOfUnsetOCIFields(t *testing.T) {
	t.Parallel()
	type defaults struct {
		timeout                        time.Duration
		provider, mediaType, operation string
	}
	selector := func(mediaType, operation string) sourcev1.OCIRepositorySpec {
		return sourcev1.OCIRepositorySpec{LayerSelector: &sourcev1.OCILayerSelector{MediaType: mediaType, Operation: operation}}
	}
	cases := map[string]struct {
		reason string
		spec   sourcev1.OCIRepositorySpec
		want   defaults
	}{
		"Unset": {
			reason: "An object that is not from an API server has none of the schema's defaults.",
			want:   defaults{time.Minute, "generic", "", "extract"},
		},
		"Set": {
			reason: "What is set counts.",
			spec:   sourcev1.OCIRepositorySpec{Timeout: &metav1.Duration{Duration: 5 * time.Second}, Provider: "gcp"},
			want:   defaults{5 * time.Second, "gcp", "", "extract"},
		},
		"EmptySelector": {
			reason: "An empty selector is like none.",
			spec:   selector("", ""),
			want:   defaults{time.Minute, "generic", "", "extract"},
		},
		"MediaType": {
			reason: "A selector without operation unpacks.",
			spec:   selector("application/x", ""),
			want:   defaults{time.Minute, "generic", "application/x", "extract"},
		},
		"Copy": {
			reason: "A selector may choose the operation alone.",
			spec:   selector("", "copy"),
			want:   defaults{time.Minute, "generic", "", "copy"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := &sourcev1.OCIRepository{Spec: tc.spec}
			got := defaults{repo.Spec.GetTimeout(), repo.Spec.GetProvider(), repo.GetLayerMediaType(), repo.GetLayerOperation()}
			if got != tc.want {
				t.Errorf("%s\nwant %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

// TestOCIObjectIsWrittenAsRead: every field has its name on the wire, and comes back under it.
func TestOCIObjectIsWrittenAsRead(t *testing.T) {
	t.Parallel()
	want := `{"kind":"OCIRepository","apiVersion":"source.toolkit.fluxcd.io/v1","metadata":{"name":"app","namespace":"default"},` +
		`"spec":{"url":"oci://registry.example.com/app",` +
		`"ref":{"digest":"sha256:0","semver":"1.x","semverFilter":".*","tag":"v1"},` +
		`"layerSelector":{"mediaType":"application/x","operation":"copy"},` +
		`"provider":"aws","secretRef":{"name":"login"},` +
		`"verify":{"provider":"cosign","secretRef":{"name":"keys"},` +
		`"matchOIDCIdentity":[{"issuer":"^i$","subject":"^s$"}],"trustedRootSecretRef":{"name":"root"}},` +
		`"serviceAccountName":"puller","certSecretRef":{"name":"tls"},"proxySecretRef":{"name":"proxy"},` +
		`"interval":"1m0s","timeout":"5s","ignore":"","insecure":true,"suspend":true},` +
		`"status":{"observedGeneration":2,` +
		`"conditions":[{"type":"Ready","status":"True","lastTransitionTime":null,"reason":"Succeeded","message":"m"}],` +
		`"url":"http://sluice/latest.tar.gz",` +
		`"artifact":{"digest":"sha256:1","path":"p","url":"u","revision":"v1@sha256:0","lastUpdateTime":null,"metadata":{"a":"b"}},` +
		`"contentConfigChecksum":"sha256:2","observedIgnore":"",` +
		`"observedLayerSelector":{"mediaType":"application/x","operation":"copy"},"lastHandledReconcileAt":"now"}}`
	var repo sourcev1.OCIRepository
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

func TestOCIObjectGivesItsParts(t *testing.T) {
	t.Parallel()
	artifact := &meta.Artifact{Path: "ocirepository/default/app/1.tar.gz", Revision: "latest@sha256:1"}
	repo := &sourcev1.OCIRepository{
		Spec:   sourcev1.OCIRepositorySpec{Interval: metav1.Duration{Duration: time.Hour}},
		Status: sourcev1.OCIRepositoryStatus{Artifact: artifact},
	}
	repo.SetConditions([]metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionTrue}})
	if got := repo.GetConditions(); len(got) != 1 || got[0].Type != meta.ReadyCondition {
		t.Errorf("conditions: got %v", got)
	}
	if repo.GetRequeueAfter() != time.Hour || repo.GetArtifact() != artifact {
		t.Errorf("got interval %s, artifact %v", repo.GetRequeueAfter(), repo.GetArtifact())
	}
}
