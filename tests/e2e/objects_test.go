package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// change is how a test's object differs from the usual one.
type change func(*sourcev1.GitRepositorySpec)

func every(interval time.Duration) change {
	return func(spec *sourcev1.GitRepositorySpec) { spec.Interval = metav1.Duration{Duration: interval} }
}

func within(timeout time.Duration) change {
	return func(spec *sourcev1.GitRepositorySpec) { spec.Timeout = &metav1.Duration{Duration: timeout} }
}

func ref(ref sourcev1.GitRepositoryRef) change {
	return func(spec *sourcev1.GitRepositorySpec) { spec.Reference = &ref }
}

func secretRef(name string) change {
	return func(spec *sourcev1.GitRepositorySpec) { spec.SecretRef = &meta.LocalObjectReference{Name: name} }
}

func include(name, from, to string) change {
	return func(spec *sourcev1.GitRepositorySpec) {
		spec.Include = append(spec.Include, sourcev1.GitRepositoryInclude{
			GitRepositoryRef: meta.LocalObjectReference{Name: name}, FromPath: from, ToPath: to,
		})
	}
}

// create makes a GitRepository that follows main and is looked at every hour, unless the changes say otherwise: what
// happens sooner happens for a reason.
func (s *scene) create(name, url string, changes ...change) {
	s.t.Helper()
	obj := &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Labels: s.labels},
		Spec: sourcev1.GitRepositorySpec{
			URL: url, Interval: metav1.Duration{Duration: time.Hour}, Reference: &sourcev1.GitRepositoryRef{Branch: "main"},
		},
	}
	for _, change := range changes {
		change(&obj.Spec)
	}
	if err := env.Client.Create(s.t.Context(), obj); err != nil {
		s.t.Fatal(err)
	}
}

// secret makes or replaces a Secret. Values under keys that are not public are canaries.
func (s *scene) secret(name string, data map[string]string) {
	s.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, StringData: data}
	for key, value := range data {
		switch key {
		case "ca.crt", "tls.crt", "known_hosts", "username", "address", "cosign.pub", "trusted_root.json", "trustpolicy.json",
			"ada.asc", "ada.sshpub", "githubAppID", "githubAppInstallationID", "githubAppBaseURL":
		default:
			s.hide(name+"/"+key, value)
		}
	}
	err := env.Client.Create(s.t.Context(), secret)
	if apierrors.IsAlreadyExists(err) {
		var before corev1.Secret
		if err = env.Client.Get(s.t.Context(), s.key(name), &before); err == nil {
			after := before.DeepCopy()
			after.Data, after.StringData = nil, data
			err = env.Client.Update(s.t.Context(), after)
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) dropSecret(name string) {
	s.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	if err := env.Client.Delete(s.t.Context(), secret); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.namespace, Name: name}
}

func (s *scene) get(name string) *sourcev1.GitRepository {
	s.t.Helper()
	obj := &sourcev1.GitRepository{}
	if err := env.Client.Get(s.t.Context(), s.key(name), obj); err != nil {
		s.t.Fatal(err)
	}
	return obj
}

// edit patches an object, whatever version it has by now.
func (s *scene) edit(name string, edit func(*sourcev1.GitRepository)) {
	s.t.Helper()
	before := s.get(name)
	after := before.DeepCopy()
	edit(after)
	if err := env.Client.Patch(s.t.Context(), after, client.MergeFrom(before)); err != nil {
		s.t.Fatal(err)
	}
}

// request asks for a reconcile, and returns the token that status shows when it has been done.
func (s *scene) request(name string) string {
	s.t.Helper()
	token := rand.String(12)
	s.edit(name, func(obj *sourcev1.GitRepository) {
		metav1.SetMetaDataAnnotation(&obj.ObjectMeta, meta.ReconcileRequestAnnotation, token)
	})
	return token
}

// reconcile asks for a reconcile and waits until it is done, whatever it ended with.
func (s *scene) reconcile(name string) *sourcev1.GitRepository {
	s.t.Helper()
	token := s.request(name)
	return s.until(name, "the requested reconcile is done", func(obj *sourcev1.GitRepository) bool {
		return obj.Status.LastHandledReconcileAt == token
	})
}

// until waits for the condition and returns the object as it was then.
func (s *scene) until(name, what string, condition func(*sourcev1.GitRepository) bool) *sourcev1.GitRepository {
	s.t.Helper()
	obj := &sourcev1.GitRepository{}
	s.eventually(fmt.Sprintf("%s: %s", name, what), func(ctx context.Context) (bool, string) {
		if err := env.Client.Get(ctx, s.key(name), obj); err != nil {
			return false, err.Error() + "; before that " + asJSON(obj.Status)
		}
		return condition(obj), asJSON(obj.Status)
	})
	return obj
}

// ready waits until the object is Ready with an artifact of the revision, and checks the artifact by downloading it.
// After a restart, status names the address of the process before until the new one has looked at the object.
func (s *scene) ready(name, revision string) *sourcev1.GitRepository {
	s.t.Helper()
	obj := s.until(name, "ready at "+revision, func(obj *sourcev1.GitRepository) bool {
		if !conditions.IsReady(obj) || obj.Status.ObservedGeneration != obj.Generation ||
			obj.Status.Artifact == nil || obj.Status.Artifact.Revision != revision {
			return false
		}
		_, err := get(s.t.Context(), obj.Status.Artifact.URL)
		return err == nil
	})
	for _, bad := range []string{
		meta.StalledCondition, meta.ReconcilingCondition, sourcev1.FetchFailedCondition, sourcev1.StorageOperationFailedCondition,
		sourcev1.IncludeUnavailableCondition, sourcev1.ArtifactOutdatedCondition,
	} {
		if conditions.Has(obj, bad) {
			s.t.Errorf("%s is ready and still has the condition %s: %s", name, bad, asJSON(obj.Status.Conditions))
		}
	}
	s.download(obj.Status.Artifact)
	return obj
}

// trouble is what a failure looks like.
type trouble struct {
	condition, reason, text string
}

// failing waits until the object reports the trouble in its own condition and in Ready, and tells it by an event.
func (s *scene) failing(name string, want trouble) *sourcev1.GitRepository {
	s.t.Helper()
	obj := s.until(name, fmt.Sprintf("reports %+v", want), func(obj *sourcev1.GitRepository) bool {
		own, ready := conditions.Get(obj, want.condition), conditions.Get(obj, meta.ReadyCondition)
		return own != nil && own.Status == metav1.ConditionTrue && own.Reason == want.reason && strings.Contains(own.Message, want.text) &&
			ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason == want.reason && ready.Message == own.Message
	})
	s.told(name, corev1.EventTypeWarning, want.reason, want.text)
	return obj
}

// mainAt is the revision of a commit on the branch main.
func mainAt(commit string) string { return "main@sha1:" + commit }

// sameArtifact fails when status names another artifact than before.
func sameArtifact(t *testing.T, before, after *sourcev1.GitRepository) {
	t.Helper()
	if asJSON(before.Status.Artifact) != asJSON(after.Status.Artifact) {
		t.Errorf("artifact %s became %s", asJSON(before.Status.Artifact), asJSON(after.Status.Artifact))
	}
}
