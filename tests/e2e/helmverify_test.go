package e2e

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/verify/verifytest"
	"sluice.dev/sluice/tests/upstream/registry"
)

// chartTag is the version of all charts here.
const chartTag = "1.0.0"

// signable is a package of a chart with a text in it.
func signable(t *testing.T, text string) []byte {
	t.Helper()
	packed, err := registry.TarGzip(registry.Files(map[string]string{
		"app/Chart.yaml": "apiVersion: v2\nname: app\nversion: " + chartTag + "\n", "app/templates/app.yaml": text,
	})...)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// followChart makes a HelmChart of the chart app in the repository, with a HelmRepository of the same name.
func (s *scene) followChart(name, url string, verify *sourcev1.HelmChartVerification) {
	s.t.Helper()
	named := metav1.ObjectMeta{Namespace: s.namespace, Name: name}
	s.make(
		&sourcev1.HelmRepository{ObjectMeta: named, Spec: sourcev1.HelmRepositorySpec{URL: url, Type: sourcev1.HelmRepositoryTypeOCI, Insecure: true}},
		&sourcev1.HelmChart{ObjectMeta: named, Spec: sourcev1.HelmChartSpec{
			Chart: "app", Version: chartTag, SourceRef: sourcev1.LocalHelmChartSourceReference{Kind: sourcev1.HelmRepositoryKind, Name: name},
			Interval: metav1.Duration{Duration: time.Hour}, Verify: verify,
		}},
	)
}

// TestHelmATagSwappedBetweenVerificationAndPullChangesNothing: a version is pushed again and again, and is another one to whoever
// asks for its tag twice.
func TestHelmATagSwappedBetweenVerificationAndPullChangesNothing(t *testing.T) {
	t.Parallel()
	s := newRunning(t, "--kube-api-qps=1000", "--kube-api-burst=2000")
	key := verifytest.NewKey(t)
	s.secret("key", map[string]string{"cosign.pub": string(key.PublicPEM(t))})
	push := func(r *registry.Edited, text string) (ocispec.Descriptor, string, string) {
		packed := signable(t, text)
		return r.PushHelm("", packed), digest.FromBytes(packed).String(), chartTag
	}
	swapTags(s, func(name string) (*swapper, *sourcev1.HelmChart) {
		return newSwapper(t, key, chartTag, name, push), &sourcev1.HelmChart{}
	}, func(name string, r *swapper) {
		s.followChart(name, r.URL("team"), &sourcev1.HelmChartVerification{Provider: "cosign", SecretRef: &meta.LocalObjectReference{Name: "key"}})
	})
}

func TestHelmNoForgeryIsAccepted(t *testing.T) {
	t.Parallel()
	s := newOCIScene(t)
	packed := signable(t, "kind: ConfigMap")
	noForgery(t, s, forgedByKeys(), forgery{
		layer: digest.FromBytes(packed).String(),
		push:  func(r signed) ocispec.Descriptor { return r.repository.PushHelm(chartTag, packed) },
		follow: func(s ociScene, name string, r signed, f ociForgeries) {
			var spec sourcev1.OCIRepositorySpec
			for _, change := range f.changes {
				change(&spec)
			}
			s.followChart(name, r.URL("team"), &sourcev1.HelmChartVerification{Provider: spec.Verify.Provider, SecretRef: spec.Verify.SecretRef})
		},
		refused: func(s ociScene, name, says string) *meta.Artifact {
			s.told(name, "Warning", sourcev1.VerificationErrorReason, says)
			obj := (&chartScene{scene: s.scene}).eventuallyChart(name, func(obj *sourcev1.HelmChart) bool {
				return conditions.IsFalse(obj, sourcev1.SourceVerifiedCondition) && conditions.GetReason(obj, meta.ReadyCondition) == sourcev1.VerificationErrorReason
			})
			return obj.Status.Artifact
		},
		proven: func(s ociScene, name string, _ ocispec.Descriptor) {
			s.ask(&sourcev1.HelmChart{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}, "again")
			_, obj := (&chartScene{scene: s.scene}).packaged(name, chartTag)
			if says := conditions.GetMessage(obj, sourcev1.SourceVerifiedCondition); says != "verified signature of version "+chartTag {
				s.t.Errorf("SourceVerified says %q", says)
			}
		},
	})
}
