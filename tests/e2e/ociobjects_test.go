package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
	"sluice.dev/sluice/tests/upstream/registry"
)

// ociScene is a scene whose objects are OCIRepositories.
type ociScene struct{ *scene }

func newOCIScene(t *testing.T, flags ...string) ociScene {
	t.Helper()
	return ociScene{newRunning(t, flags...)}
}

// in is the scene for a subtest.
func (s ociScene) in(t *testing.T) ociScene {
	t.Helper()
	return ociScene{s.scene.in(t)}
}

// ociChange is how a test's object differs from the usual one.
type ociChange func(*sourcev1.OCIRepositorySpec)

func ociRef(ref sourcev1.OCIRepositoryRef) ociChange {
	return func(spec *sourcev1.OCIRepositorySpec) { spec.Reference = &ref }
}

func ociTag(tag string) ociChange { return ociRef(sourcev1.OCIRepositoryRef{Tag: tag}) }

func ociDigest(d ocispec.Descriptor) ociChange {
	return ociRef(sourcev1.OCIRepositoryRef{Digest: d.Digest.String()})
}

func ociLayer(mediaType, operation string) ociChange {
	return func(spec *sourcev1.OCIRepositorySpec) {
		spec.LayerSelector = &sourcev1.OCILayerSelector{MediaType: mediaType, Operation: operation}
	}
}

func ociEvery(interval time.Duration) ociChange {
	return func(spec *sourcev1.OCIRepositorySpec) { spec.Interval = metav1.Duration{Duration: interval} }
}

func ociWithin(timeout time.Duration) ociChange {
	return func(spec *sourcev1.OCIRepositorySpec) { spec.Timeout = &metav1.Duration{Duration: timeout} }
}

func ociSecret(name string) ociChange {
	return func(spec *sourcev1.OCIRepositorySpec) { spec.SecretRef = &meta.LocalObjectReference{Name: name} }
}

func ociCert(name string) ociChange {
	return func(spec *sourcev1.OCIRepositorySpec) {
		spec.CertSecretRef = &meta.LocalObjectReference{Name: name}
	}
}

func ociProxy(name string) ociChange {
	return func(spec *sourcev1.OCIRepositorySpec) {
		spec.ProxySecretRef = &meta.LocalObjectReference{Name: name}
	}
}

func ociAccount(name string) ociChange {
	return func(spec *sourcev1.OCIRepositorySpec) { spec.ServiceAccountName = name }
}

func ociSecure(spec *sourcev1.OCIRepositorySpec) { spec.Insecure = false }

// ociVerify demands signatures; the secret may be empty.
func ociVerify(provider, secret string, matches ...sourcev1.OIDCIdentityMatch) ociChange {
	return func(spec *sourcev1.OCIRepositorySpec) {
		spec.Verify = &sourcev1.OCIRepositoryVerification{Provider: provider, MatchOIDCIdentity: matches}
		if secret != "" {
			spec.Verify.SecretRef = &meta.LocalObjectReference{Name: secret}
		}
	}
}

// create makes an OCIRepository that follows the tag latest over plain HTTP and is looked at every hour, unless the
// changes say otherwise.
func (s ociScene) create(name, url string, changes ...ociChange) {
	s.t.Helper()
	obj := &sourcev1.OCIRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Labels: s.labels},
		Spec:       sourcev1.OCIRepositorySpec{URL: url, Insecure: true, Interval: metav1.Duration{Duration: time.Hour}},
	}
	for _, change := range changes {
		change(&obj.Spec)
	}
	if err := env.Client.Create(s.t.Context(), obj); err != nil {
		s.t.Fatal(err)
	}
}

// dockerConfig makes a Secret as kubectl create secret docker-registry does.
func (s ociScene) dockerConfig(name string, config []byte) {
	s.t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: config},
	}
	if err := env.Client.Create(s.t.Context(), secret); err != nil {
		s.t.Fatal(err)
	}
}

func (s ociScene) get(name string) *sourcev1.OCIRepository {
	s.t.Helper()
	obj := &sourcev1.OCIRepository{}
	if err := env.Client.Get(s.t.Context(), s.key(name), obj); err != nil {
		s.t.Fatal(err)
	}
	return obj
}

// edit patches an object, whatever version it has by now.
func (s ociScene) edit(name string, edit func(*sourcev1.OCIRepository)) {
	s.t.Helper()
	before := s.get(name)
	after := before.DeepCopy()
	edit(after)
	if err := env.Client.Patch(s.t.Context(), after, client.MergeFrom(before)); err != nil {
		s.t.Fatal(err)
	}
}

// change edits the spec.
func (s ociScene) change(name string, changes ...ociChange) {
	s.t.Helper()
	s.edit(name, func(obj *sourcev1.OCIRepository) {
		for _, change := range changes {
			change(&obj.Spec)
		}
	})
}

// request asks for a reconcile, and returns the token that status shows when it has been done.
func (s ociScene) request(name string) string {
	s.t.Helper()
	token := rand.String(12)
	s.edit(name, func(obj *sourcev1.OCIRepository) {
		metav1.SetMetaDataAnnotation(&obj.ObjectMeta, meta.ReconcileRequestAnnotation, token)
	})
	return token
}

// reconcile asks for a reconcile and waits until it is done, whatever it ended with.
func (s ociScene) reconcile(name string) *sourcev1.OCIRepository {
	s.t.Helper()
	token := s.request(name)
	return s.until(name, "the requested reconcile is done", func(obj *sourcev1.OCIRepository) bool {
		return obj.Status.LastHandledReconcileAt == token
	})
}

// until waits for the condition and returns the object as it was then.
func (s ociScene) until(name, what string, condition func(*sourcev1.OCIRepository) bool) *sourcev1.OCIRepository {
	s.t.Helper()
	obj := &sourcev1.OCIRepository{}
	s.eventually(fmt.Sprintf("%s: %s", name, what), func(ctx context.Context) (bool, string) {
		// Fields that have gone would stay in an object that is read into again.
		*obj = sourcev1.OCIRepository{}
		if err := env.Client.Get(ctx, s.key(name), obj); err != nil {
			return false, err.Error()
		}
		return condition(obj), asJSON(obj.Status)
	})
	return obj
}

// ready waits until the object is Ready with an artifact of the revision, and checks the artifact by downloading it.
func (s ociScene) ready(name, revision string) *sourcev1.OCIRepository {
	s.t.Helper()
	obj := s.until(name, "ready at "+revision, func(obj *sourcev1.OCIRepository) bool {
		if !conditions.IsReady(obj) || obj.Status.ObservedGeneration != obj.Generation ||
			obj.Status.Artifact == nil || obj.Status.Artifact.Revision != revision {
			return false
		}
		_, err := get(s.t.Context(), obj.Status.Artifact.URL)
		return err == nil
	})
	for _, bad := range []string{
		meta.StalledCondition, meta.ReconcilingCondition, sourcev1.FetchFailedCondition, sourcev1.StorageOperationFailedCondition,
		sourcev1.ArtifactOutdatedCondition,
	} {
		if conditions.Has(obj, bad) {
			s.t.Errorf("%s is ready and still has the condition %s: %s", name, bad, asJSON(obj.Status.Conditions))
		}
	}
	s.download(obj.Status.Artifact)
	return obj
}

// failing waits until the object reports the trouble in its own condition and in Ready, and tells it by an event. The
// own condition is true, but for SourceVerified, which is false.
func (s ociScene) failing(name string, want trouble) *sourcev1.OCIRepository {
	s.t.Helper()
	bad := metav1.ConditionTrue
	if want.condition == sourcev1.SourceVerifiedCondition {
		bad = metav1.ConditionFalse
	}
	obj := s.until(name, fmt.Sprintf("reports %+v", want), func(obj *sourcev1.OCIRepository) bool {
		own, ready := conditions.Get(obj, want.condition), conditions.Get(obj, meta.ReadyCondition)
		return own != nil && own.Status == bad && own.Reason == want.reason && strings.Contains(own.Message, want.text) &&
			ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason == want.reason && ready.Message == own.Message
	})
	s.told(name, corev1.EventTypeWarning, want.reason, want.text)
	return obj
}

// sameOCIArtifact fails when status names another artifact than before.
func sameOCIArtifact(t *testing.T, before, after *sourcev1.OCIRepository) {
	t.Helper()
	if asJSON(before.Status.Artifact) != asJSON(after.Status.Artifact) || before.Status.URL != after.Status.URL {
		t.Errorf("artifact %s at %s became %s at %s",
			asJSON(before.Status.Artifact), before.Status.URL, asJSON(after.Status.Artifact), after.Status.URL)
	}
}

// at is the revision of a manifest under a tag.
func at(tag string, manifest ocispec.Descriptor) string { return tag + "@" + manifest.Digest.String() }

// module is the files of a small release.
func module(version int) map[string]string {
	return map[string]string{"app.yaml": fmt.Sprintf("version: %d\n", version), "deploy/run.txt": noise(300, uint64(version))}
}

// files are what an artifact of a layer with these files holds.
func files(contents map[string]string) upstream.Files { return upstream.Text(contents) }

// blobs counts the layers that were asked for, of the whole registry.
func blobs(r *registry.Fixture) int { return r.Count(registry.Blob) }

// What fails at the registry, in each of the ways that conditions tell apart: a tag, a digest or a manifest, a list of
// tags, and a layer.
func pullFailed(text string) trouble {
	return trouble{sourcev1.FetchFailedCondition, sourcev1.OCIPullFailedReason, text}
}

func listFailed(text string) trouble {
	return trouble{sourcev1.FetchFailedCondition, sourcev1.ReadOperationFailedReason, text}
}

func layerFailed(text string) trouble {
	return trouble{sourcev1.FetchFailedCondition, sourcev1.OCILayerOperationFailedReason, text}
}

func verifyFailed(text string) trouble {
	return trouble{sourcev1.SourceVerifiedCondition, sourcev1.VerificationErrorReason, text}
}

func ociSemver(constraint string) ociChange {
	return ociRef(sourcev1.OCIRepositoryRef{SemVer: constraint})
}
