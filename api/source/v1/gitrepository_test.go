package v1_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	sourcev1 "sluice.dev/sluice/api/source/v1"
)

func TestDefaultsOfUnsetFields(t *testing.T) {
	t.Parallel()
	if got := (&sourcev1.GitRepositorySpec{}).GetTimeout(); got != time.Minute {
		t.Errorf("timeout without one in the spec: got %s", got)
	}
	set := sourcev1.GitRepositorySpec{Timeout: &metav1.Duration{Duration: 5 * time.Second}}
	if got := set.GetTimeout(); got != 5*time.Second {
		t.Errorf("timeout of 5 s in the spec: got %s", got)
	}
	include := sourcev1.GitRepositoryInclude{GitRepositoryRef: meta.LocalObjectReference{Name: "shared"}}
	if got := include.GetToPath(); got != "shared" {
		t.Errorf("an include without toPath goes to a folder of the repository's name, got %q", got)
	}
	include.ToPath = "lib/shared"
	if got := include.GetToPath(); got != "lib/shared" {
		t.Errorf("an include with toPath goes there, got %q", got)
	}
}

// TestEmptyIgnoreIsKept: an empty ignore turns the built-in exclusions off, so it must not read as unset.
func TestEmptyIgnoreIsKept(t *testing.T) {
	t.Parallel()
	var spec sourcev1.GitRepositorySpec
	if err := json.Unmarshal([]byte(`{"url":"https://example.com/r","interval":"1m0s","ignore":""}`), &spec); err != nil {
		t.Fatal(err)
	}
	if spec.Ignore == nil || *spec.Ignore != "" {
		t.Fatalf("an empty ignore was read as %v", spec.Ignore)
	}
	got, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"url":"https://example.com/r","interval":"1m0s","ignore":""}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("spec written back (-want +got):\n%s", diff)
	}
}

func TestSchemeKnowsTheKinds(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := sourcev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{sourcev1.GitRepositoryKind, sourcev1.OCIRepositoryKind} {
		for _, name := range []string{kind, kind + "List"} {
			if !scheme.Recognizes(sourcev1.GroupVersion.WithKind(name)) {
				t.Errorf("%s is not known to the scheme", name)
			}
		}
	}
}

func TestObjectGivesItsParts(t *testing.T) {
	t.Parallel()
	artifact := &meta.Artifact{Path: "gitrepository/default/app/1.tar.gz", Revision: "main@sha1:1"}
	repo := &sourcev1.GitRepository{
		Spec:   sourcev1.GitRepositorySpec{Interval: metav1.Duration{Duration: time.Hour}},
		Status: sourcev1.GitRepositoryStatus{Artifact: artifact},
	}
	repo.SetConditions([]metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionTrue}})
	if got := repo.GetConditions(); len(got) != 1 || got[0].Type != meta.ReadyCondition {
		t.Errorf("conditions: got %v", got)
	}
	if repo.GetRequeueAfter() != time.Hour || repo.GetArtifact() != artifact {
		t.Errorf("got interval %s, artifact %v", repo.GetRequeueAfter(), repo.GetArtifact())
	}
}
