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

func TestDefaultsOfUnsetBucketFields(t *testing.T) {
	t.Parallel()
	unset := sourcev1.BucketSpec{}
	if unset.GetTimeout() != time.Minute || unset.GetProvider() != "generic" {
		t.Errorf("an object that is not from an API server has none of the schema's defaults: %s, %s", unset.GetTimeout(), unset.GetProvider())
	}
	set := sourcev1.BucketSpec{Timeout: &metav1.Duration{Duration: 5 * time.Second}, Provider: "gcp"}
	if set.GetTimeout() != 5*time.Second || set.GetProvider() != "gcp" {
		t.Errorf("what is set counts: %s, %s", set.GetTimeout(), set.GetProvider())
	}
}

// TestBucketIsWrittenAsRead: every field has its name on the wire, and comes back under it.
func TestBucketIsWrittenAsRead(t *testing.T) {
	t.Parallel()
	want := `{"kind":"Bucket","apiVersion":"source.toolkit.fluxcd.io/v1","metadata":{"name":"app","namespace":"default"},` +
		`"spec":{"provider":"aws","bucketName":"b","endpoint":"s3.example.com:9000",` +
		`"sts":{"provider":"ldap","endpoint":"https://sts","secretRef":{"name":"user"},"certSecretRef":{"name":"ca"}},` +
		`"insecure":true,"region":"r","prefix":"p/","secretRef":{"name":"keys"},"serviceAccountName":"reader",` +
		`"certSecretRef":{"name":"tls"},"proxySecretRef":{"name":"proxy"},` +
		`"interval":"1m0s","timeout":"5s","ignore":"","suspend":true},` +
		`"status":{"observedGeneration":2,` +
		`"conditions":[{"type":"Ready","status":"True","lastTransitionTime":null,"reason":"Succeeded","message":"m"}],` +
		`"url":"http://sluice/latest.tar.gz",` +
		`"artifact":{"digest":"sha256:1","path":"p","url":"u","revision":"sha256:0","lastUpdateTime":null},` +
		`"contentConfigChecksum":"sha256:2","observedIgnore":"","lastHandledReconcileAt":"now"}}`
	var bucket sourcev1.Bucket
	if err := json.Unmarshal([]byte(want), &bucket); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(bucket)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("object written back (-want +got):\n%s", diff)
	}
}

func TestBucketGivesItsParts(t *testing.T) {
	t.Parallel()
	artifact := &meta.Artifact{Path: "bucket/default/app/1.tar.gz", Revision: "sha256:1"}
	bucket := &sourcev1.Bucket{
		Spec:   sourcev1.BucketSpec{Interval: metav1.Duration{Duration: time.Hour}},
		Status: sourcev1.BucketStatus{Artifact: artifact},
	}
	bucket.SetConditions([]metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionTrue}})
	if got := bucket.GetConditions(); len(got) != 1 || got[0].Type != meta.ReadyCondition {
		t.Errorf("conditions: got %v", got)
	}
	if bucket.GetRequeueAfter() != time.Hour || bucket.GetArtifact() != artifact {
		t.Errorf("got interval %s, artifact %v", bucket.GetRequeueAfter(), bucket.GetArtifact())
	}
}

// TestExternalArtifactIsWrittenAsRead: what another controller wrote is not lost on the way through ours.
func TestExternalArtifactIsWrittenAsRead(t *testing.T) {
	t.Parallel()
	want := `{"kind":"ExternalArtifact","apiVersion":"source.toolkit.fluxcd.io/v1","metadata":{"name":"app"},` +
		`"spec":{"sourceRef":{"apiVersion":"v1","kind":"Maker","name":"m","namespace":"n"}},` +
		`"status":{"artifact":{"digest":"sha256:1","path":"p","url":"u","revision":"v1@sha256:0","lastUpdateTime":null},` +
		`"conditions":[{"type":"Ready","status":"True","lastTransitionTime":null,"reason":"Succeeded","message":"m"}]}}`
	var external sourcev1.ExternalArtifact
	if err := json.Unmarshal([]byte(want), &external); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(external)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("object written back (-want +got):\n%s", diff)
	}
	if external.GetArtifact().Digest != "sha256:1" || len(external.GetConditions()) != 1 {
		t.Errorf("got %+v", external)
	}
}
