package source_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	controllers "sluice.dev/sluice/controllers/source"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/helm"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/helmrepository"
	"sluice.dev/sluice/internal/source/sourcetest"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/storage/local/localtest"
	"sluice.dev/sluice/tests/upstream/files"
)

// helmPlane is the controller of HelmRepositories, with a server of files.
type helmPlane struct {
	*plane

	files *files.Server
	helm  reconcile.Reconciler
	// onWrite is told of each status that is written; nil for nobody.
	onWrite func(*sourcev1.HelmRepository)
}

const chartIndex = "apiVersion: v1\nentries:\n  app:\n  - name: app\n    version: 1.0.0\n    urls: [app-1.0.0.tgz]\n"

func newHelmPlane(t *testing.T) *helmPlane {
	t.Helper()
	p := &helmPlane{
		plane: &plane{t: t, namespace: env.NewNamespace(t), events: &emitted{}, clock: clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0))},
		files: files.New(t),
	}
	p.files.Put("/index.yaml", []byte(chartIndex))
	p.store = localtest.Open(t, local.Options{Now: p.clock.Now})
	base, err := client.NewWithWatch(env.Config, client.Options{Scheme: env.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	watched := interceptor.NewClient(base, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if written, ok := obj.(*sourcev1.HelmRepository); ok && p.onWrite != nil {
				p.onWrite(written)
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
	opener := helmrepository.NewOpener(helmrepository.Options{
		Client:      helm.NewClient(transport.New(transport.Options{AllowLoopback: true}), p.clock, func(int64) {}),
		Credentials: auth.New(env.Client, auth.Options{}), Store: p.store, TempDir: t.TempDir(), MaxIndexBytes: 1 << 20,
	})
	p.helm = controllers.NewHelmRepositoryReconciler(controllers.Shared{
		Shell: kernel.Shell{
			Client: watched, Reader: watched, Events: p.events, FieldOwner: "source-controller", RequeueDependency: 30 * time.Second,
			Jitter: func(d time.Duration) time.Duration { return d }, Clock: p.clock, Durations: noDurations{}, Workers: 4,
		},
		Pipeline: &source.Pipeline{Store: p.store, Clock: p.clock, Observer: sourcetest.Silent{}},
		Address:  "artifacts.example.com",
		Backoff:  kernel.NewBackoff(time.Millisecond, time.Minute),
	}, opener)
	return p
}

func (p *helmPlane) add(change func(*sourcev1.HelmRepositorySpec)) {
	p.t.Helper()
	obj := &sourcev1.HelmRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "charts"}, Spec: sourcev1.HelmRepositorySpec{URL: p.files.URL},
	}
	if change != nil {
		change(&obj.Spec)
	}
	if err := env.Client.Create(p.t.Context(), obj); err != nil {
		p.t.Fatal(err)
	}
}

// run reconciles, and gives the object as it is then; nil when it is gone.
func (p *helmPlane) run() (*sourcev1.HelmRepository, ctrl.Result, error) {
	p.t.Helper()
	result, err := p.helm.Reconcile(p.t.Context(), ctrl.Request{NamespacedName: p.key("charts")})
	obj := &sourcev1.HelmRepository{}
	if lost := env.Client.Get(p.t.Context(), p.key("charts"), obj); lost != nil {
		if client.IgnoreNotFound(lost) != nil {
			p.t.Fatal(lost)
		}
		return nil, result, err
	}
	return obj, result, err
}

func (p *helmPlane) change(edit func(*sourcev1.HelmRepository)) {
	p.t.Helper()
	obj := &sourcev1.HelmRepository{}
	if err := env.Client.Get(p.t.Context(), p.key("charts"), obj); err != nil {
		p.t.Fatal(err)
	}
	edit(obj)
	if err := env.Client.Update(p.t.Context(), obj); err != nil {
		p.t.Fatal(err)
	}
}

func conditionsOf(obj *sourcev1.HelmRepository) map[string]string {
	return summary(&sourcev1.GitRepository{Status: sourcev1.GitRepositoryStatus{Conditions: obj.Status.Conditions}})
}

func TestIndexBecomesArtifact(t *testing.T) {
	t.Parallel()
	p := newHelmPlane(t)
	p.add(nil)
	obj, result, err := p.run()
	if err != nil || result.RequeueAfter != time.Minute {
		t.Fatalf("got %+v, %v; status %+v", result, err, obj.Status)
	}
	artifact := obj.Status.Artifact
	message := "True Succeeded: stored artifact: revision '" + artifact.Revision + "'"
	if diff := cmp.Diff(map[string]string{"Ready": message, "ArtifactInStorage": message}, conditionsOf(obj)); diff != "" {
		t.Errorf("conditions: -want +got:\n%s", diff)
	}
	path := fmt.Sprintf("helmrepository/%s/charts/index-%s.yaml", p.namespace, strings.TrimPrefix(artifact.Revision, "sha256:"))
	want := &meta.Artifact{
		Path: path, URL: "http://artifacts.example.com/" + path, Revision: artifact.Revision, Digest: artifact.Digest,
		LastUpdateTime: metav1.NewTime(p.clock.Now()), Size: artifact.Size,
	}
	if diff := cmp.Diff(want, artifact); diff != "" {
		t.Errorf("artifact: -want +got:\n%s", diff)
	}
	if latest := "helmrepository/" + p.namespace + "/charts/index.yaml"; obj.Status.URL != "http://artifacts.example.com/"+latest {
		t.Errorf("url %s", obj.Status.URL)
	} else if body, err := p.store.Open(t.Context(), latest); err != nil || body.Stat().Path != path {
		t.Errorf("%s: %v", latest, err)
	} else {
		_ = body.Close()
	}
	if err := p.served(artifact); err != nil {
		t.Error(err)
	}
	told := fmt.Sprintf("Normal NewArtifact: stored fetched index of size %dB from '%s'", *artifact.Size, p.files.URL)
	if diff := cmp.Diff([]string{told}, p.events.take()); diff != "" {
		t.Errorf("events: -want +got:\n%s", diff)
	}
	before := obj.ResourceVersion
	if obj, _, err = p.run(); err != nil || obj.ResourceVersion != before || len(p.events.take()) > 0 {
		t.Errorf("a poll without news writes: %v", err)
	}
}

// TestANewIndexIsAnnounced in Flux's words, before it is stored; the first one is no news to anything that is there.
func TestANewIndexIsAnnounced(t *testing.T) {
	t.Parallel()
	p := newHelmPlane(t)
	var meanwhile map[string]string
	p.onWrite = func(obj *sourcev1.HelmRepository) {
		if found := conditionsOf(obj); strings.HasPrefix(found["Ready"], "Unknown") {
			meanwhile = found
		}
	}
	p.add(nil)
	for _, index := range []string{chartIndex, chartIndex + "  other: []\n"} {
		p.files.Put("/index.yaml", []byte(index))
		was := meanwhile
		obj, _, err := p.run()
		if err != nil {
			t.Fatal(err)
		}
		news := "new index revision '" + obj.Status.Artifact.Revision + "'"
		building := "Progressing: building artifact: " + news
		want := map[string]string{"Ready": "Unknown " + building, "Reconciling": "True " + building}
		if was != nil {
			want["ArtifactOutdated"] = "True NewRevision: " + news
			want["ArtifactInStorage"] = was["ArtifactInStorage"]
		}
		if diff := cmp.Diff(want, meanwhile); diff != "" {
			t.Errorf("meanwhile: -want +got:\n%s", diff)
		}
		if meanwhile = conditionsOf(obj); len(meanwhile) != 2 {
			t.Errorf("afterwards: %v", meanwhile)
		}
	}
}

// TestIndexFailuresAreReportedAsFluxDoes: each row of Flux's table, and that the last index stays served.
func TestIndexFailuresAreReportedAsFluxDoes(t *testing.T) {
	t.Parallel()
	secret := func(p *helmPlane, name string, data map[string]string) *meta.LocalObjectReference {
		err := env.Client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name}, StringData: data})
		if err != nil {
			t.Fatal(err)
		}
		return &meta.LocalObjectReference{Name: name}
	}
	cases := map[string]struct {
		disturb func(p *helmPlane)
		reason  string
		says    string
		stalled bool
	}{
		"Missing": {
			func(p *helmPlane) { p.files.Fail(files.Status(http.StatusNotFound)) }, "Failed",
			"failed to fetch Helm repository index: failed to cache index to temporary file: failed to fetch URL/index.yaml : 404 Not Found", false,
		},
		"Refused": {func(p *helmPlane) { p.files.Fail(files.Status(http.StatusUnauthorized)) }, "Failed", "401 Unauthorized", false},
		"NoIndex": {
			func(p *helmPlane) { p.files.Put("/index.yaml", []byte("<html></html>\n")) }, "IndexationFailed",
			"failed to load Helm repository from index YAML: ", false,
		},
		"NoSecret": {
			func(p *helmPlane) {
				p.change(func(o *sourcev1.HelmRepository) { o.Spec.SecretRef = &meta.LocalObjectReference{Name: "none"} })
			}, "AuthenticationFailed", "failed to get authentication secret 'NS/none': ", false,
		},
		"HalfASecret": {
			func(p *helmPlane) {
				half := secret(p, "half", map[string]string{"username": "u"})
				p.change(func(o *sourcev1.HelmRepository) { o.Spec.SecretRef = half })
			}, "AuthenticationFailed", "failed to get authentication secret 'NS/half': ", false,
		},
		"NoCertificate": {
			func(p *helmPlane) {
				p.change(func(o *sourcev1.HelmRepository) { o.Spec.CertSecretRef = &meta.LocalObjectReference{Name: "none"} })
			}, "AuthenticationFailed", "failed to get TLS authentication secret 'NS/none': ", false,
		},
		"OCIWithoutType": {
			func(p *helmPlane) {
				p.change(func(o *sourcev1.HelmRepository) { o.Spec.URL = "oci://example.com/charts" })
			}, "URLInvalid",
			"invalid Helm repository URL: 'oci' URL scheme cannot be used with 'default' HelmRepository type", true,
		},
		"NoURL": {
			func(p *helmPlane) { p.change(func(o *sourcev1.HelmRepository) { o.Spec.URL = "https://%zz" }) }, "URLInvalid",
			"invalid Helm repository URL: ", true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newHelmPlane(t)
			p.add(nil)
			good, _, err := p.run()
			if err != nil {
				t.Fatal(err)
			}
			p.events.take()
			tc.disturb(p)
			obj, result, err := p.run()
			says := strings.NewReplacer("URL/", p.files.URL+"/", "NS/", p.namespace+"/").Replace(tc.says)
			got := conditionsOf(obj)
			want := "True " + tc.reason + ": " + says
			if !strings.HasPrefix(got["FetchFailed"], want) && !strings.Contains(got["FetchFailed"], says) || !strings.HasPrefix(got["FetchFailed"], "True "+tc.reason+": ") {
				t.Errorf("FetchFailed: want %q, got %q", want, got["FetchFailed"])
			}
			if !strings.HasPrefix(got["Ready"], "False "+tc.reason) || (got["Stalled"] != "") != tc.stalled || (got["Reconciling"] == "") != tc.stalled {
				t.Errorf("conditions: %v", got)
			}
			if diff := cmp.Diff(good.Status.Artifact, obj.Status.Artifact); diff != "" {
				t.Errorf("the last artifact: %s", diff)
			}
			if err := p.served(obj.Status.Artifact); err != nil {
				t.Error(err)
			}
			if tc.stalled && (err != nil || result.RequeueAfter != 0) || !tc.stalled && err == nil && result.RequeueAfter == 0 {
				t.Errorf("got %+v, %v", result, err)
			}
			if told := p.events.take(); len(told) != 1 || !strings.HasPrefix(told[0], "Warning "+tc.reason+": ") {
				t.Errorf("told %q", told)
			}
		})
	}
}

// TestARegistryIsAStaticObject: nothing is written to it and nobody is asked for it, whatever it is given.
func TestARegistryIsAStaticObject(t *testing.T) {
	t.Parallel()
	p := newHelmPlane(t)
	p.add(func(spec *sourcev1.HelmRepositorySpec) { spec.Type, spec.URL = "oci", "oci://127.0.0.1:1/charts" })
	p.change(func(o *sourcev1.HelmRepository) {
		o.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
	})
	before := &sourcev1.HelmRepository{}
	if err := env.Client.Get(t.Context(), p.key("charts"), before); err != nil {
		t.Fatal(err)
	}
	after, result, err := p.run()
	if err != nil || result != (ctrl.Result{}) {
		t.Errorf("got %+v, %v", result, err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("it was written to: %s", diff)
	}
	if err := env.Client.Delete(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	if gone, _, err := p.run(); gone != nil || err != nil || len(p.events.take()) > 0 {
		t.Errorf("it stays: %v", err)
	}
}

// TestARepositoryMovesToARegistryAndBack: it loses finalizer, status and files, and gets them again.
func TestARepositoryMovesToARegistryAndBack(t *testing.T) {
	t.Parallel()
	p := newHelmPlane(t)
	p.add(nil)
	first, _, err := p.run()
	if err != nil {
		t.Fatal(err)
	}
	p.change(func(o *sourcev1.HelmRepository) { o.Spec.Type, o.Spec.Suspend = "oci", true })
	suspended, _, err := p.run()
	if err != nil || suspended.Status.Artifact == nil || len(suspended.Finalizers) != 1 {
		t.Errorf("a suspended one was migrated: %+v, %v", suspended.Status, err)
	}
	p.change(func(o *sourcev1.HelmRepository) { o.Spec.Suspend = false })
	moved, _, err := p.run()
	if err != nil || len(moved.Finalizers) != 0 {
		t.Errorf("finalizers %v, %v", moved.Finalizers, err)
	}
	if diff := cmp.Diff(sourcev1.HelmRepositoryStatus{}, moved.Status); diff != "" {
		t.Errorf("status: %s", diff)
	}
	object := storage.Object{Kind: "helmrepository", Namespace: p.namespace, Name: "charts"}
	if _, err := p.store.Record(t.Context(), object); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("files are left: %v", err)
	}
	if again, _, err := p.run(); err != nil || again.ResourceVersion != moved.ResourceVersion {
		t.Errorf("it is written to again: %v", err)
	}
	p.change(func(o *sourcev1.HelmRepository) { o.Spec.Type = "default" })
	back, _, err := p.run()
	if err != nil || back.Status.Artifact == nil || back.Status.Artifact.Revision != first.Status.Artifact.Revision || len(back.Finalizers) != 1 {
		t.Errorf("got %+v, %v", back.Status, err)
	}
}
