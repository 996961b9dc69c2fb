package rebuild_test

import (
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/rebuild"
	"sluice.dev/sluice/tests/upstream"
	"sluice.dev/sluice/tests/upstream/registry"
)

// TestRebuildGoesByTheSpec: whoever can write a status, and what is served, has no say in what upstream is.
func TestRebuildGoesByTheSpec(t *testing.T) {
	t.Parallel()
	r := registry.ForTest(t, registry.Options{})
	good := r.Repository("app").PushFlux("1.0.0", map[string]string{"a.yaml": "a: good\n"}, nil)
	evil := r.Repository("app").PushFlux("2.0.0", map[string]string{"a.yaml": "a: evil\n"}, nil)
	image := func(recorded string) *sourcev1.OCIRepository {
		return &sourcev1.OCIRepository{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"},
			Spec:       sourcev1.OCIRepositorySpec{URL: r.URL("app"), Insecure: true, Reference: &sourcev1.OCIRepositoryRef{Digest: good.Digest.String()}},
			Status:     sourcev1.OCIRepositoryStatus{Artifact: &meta.Artifact{Revision: recorded}},
		}
	}
	if want, got := rebuilt(t, image("@"+good.Digest.String())), rebuilt(t, image("@"+evil.Digest.String())); want == "" || got != want {
		t.Errorf("an artifact of another digest than the spec's was rebuilt: %q, %q", got, want)
	}
}

// TestRebuildIsOfTheBranch: a commit that is elsewhere in the repository is not what the spec follows, whatever the status says.
func TestRebuildIsOfTheBranch(t *testing.T) {
	t.Parallel()
	up := upstream.ForTest(t)
	repository := up.Repository("app")
	good := repository.Commit("main", "Good", upstream.Text(map[string]string{"a.yaml": "a: good\n"}))
	evil := repository.Commit("other", "Evil", upstream.Text(map[string]string{"a.yaml": "a: evil\n"}))
	url := up.HTTP(upstream.HTTPOptions{}).URL("app")
	source := func(recorded string) *sourcev1.GitRepository {
		return &sourcev1.GitRepository{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"},
			Spec:       sourcev1.GitRepositorySpec{URL: url, Reference: &sourcev1.GitRepositoryRef{Branch: "main"}},
			Status:     sourcev1.GitRepositoryStatus{Artifact: &meta.Artifact{Revision: recorded}},
		}
	}
	if rebuilt(t, source("main@sha1:"+good)) == "" {
		t.Error("what is on the branch is not rebuilt")
	}
	for _, recorded := range []string{"other@sha1:" + evil, "main@sha1:" + evil} {
		if rebuilt(t, source(recorded)) != "" {
			t.Errorf("%s is rebuilt for branch main", recorded)
		}
	}
}

// rebuilt is the digest of what is made anew; "" for nothing.
func rebuilt(t *testing.T, obj client.Object) string {
	t.Helper()
	made, err := (&rebuild.Rebuilder{Dir: t.TempDir(), AllowLoopback: true}).Rebuild(t.Context(), obj)
	if err != nil {
		return ""
	}
	if err := made.Close(); err != nil {
		t.Fatal(err)
	}
	return made.Digest.String()
}
