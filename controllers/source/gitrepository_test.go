package source_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	controllers "sluice.dev/sluice/controllers/source"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/source"
	gitsource "sluice.dev/sluice/internal/source/git"
	"sluice.dev/sluice/internal/source/sourcetest"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/storage/local/localtest"
	"sluice.dev/sluice/storage/retention"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

var env *testenv.Env

func TestMain(m *testing.M) { os.Exit(testenv.Main(m, &env)) }

// emitted collects events.
type emitted struct {
	mu     sync.Mutex
	events []event.Event
}

func (e *emitted) Emit(ev event.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events = append(e.events, ev)
}

// take returns the events since the last call, as "type reason: message".
func (e *emitted) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	told := make([]string, 0, len(e.events))
	for _, ev := range e.events {
		told = append(told, fmt.Sprintf("%s %s: %s", ev.Type, ev.Reason, ev.Message))
	}
	e.events = nil
	return told
}

type noDurations struct{}

func (noDurations) Observe(client.Object, time.Duration) {}
func (noDurations) Forget(client.Object)                 {}

// plane is the source controller without its manager: tests call the reconciler, and step the clock.
type plane struct {
	t          *testing.T
	namespace  string
	store      *localtest.Store
	clock      *clocktesting.FakePassiveClock
	events     *emitted
	reconciler reconcile.Reconciler
	restart    func() // in place of the process
	writes     int
	upstream   *upstream.Fixture
	server     *upstream.GitHTTP
}

func newPlane(t *testing.T) *plane {
	t.Helper()
	p := &plane{
		t: t, namespace: env.NewNamespace(t), events: &emitted{}, upstream: upstream.ForTest(t),
		clock: clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0)),
	}
	p.server = p.upstream.HTTP(upstream.HTTPOptions{})
	p.store = localtest.Open(t, local.Options{Now: p.clock.Now, Retention: retention.Policy{TTL: time.Minute, Records: 2}})
	base, err := client.NewWithWatch(env.Config, client.Options{Scheme: env.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	counting := interceptor.NewClient(base, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			p.writes++
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
	engine, err := git.New(git.Options{Transport: transport.New(transport.Options{AllowLoopback: true}), TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	p.restart = func() { p.reconciler = p.newReconciler(engine, counting) }
	p.restart()
	return p
}

// newReconciler is one of a process that has just begun.
func (p *plane) newReconciler(engine *git.Client, counting client.Client) reconcile.Reconciler {
	opener := gitsource.NewOpener(gitsource.Options{
		Client: engine, Credentials: auth.New(counting, auth.Options{}), Artifacts: controllers.Includes{Artifacts: controllers.Artifacts{Reader: counting, Store: p.store}}, TempDir: p.t.TempDir(),
	})
	return controllers.NewGitRepositoryReconciler(controllers.Shared{
		Shell: kernel.Shell{
			Client:            counting,
			Reader:            counting,
			Events:            p.events,
			FieldOwner:        "source-controller",
			RequeueDependency: 30 * time.Second,
			Jitter:            func(d time.Duration) time.Duration { return d },
			Clock:             p.clock,
			Durations:         noDurations{},
			Workers:           4,
		},
		Pipeline: &source.Pipeline{Store: p.store, Clock: p.clock, Observer: sourcetest.Silent{}},
		Address:  "artifacts.example.com",
		Backoff:  kernel.NewBackoff(time.Millisecond, time.Minute),
	}, opener)
}

// create makes a GitRepository of an upstream repository.
func (p *plane) create(name, repository string, change func(*sourcev1.GitRepositorySpec)) {
	p.t.Helper()
	obj := &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name},
		Spec: sourcev1.GitRepositorySpec{
			URL: p.server.URL(repository), Interval: metav1.Duration{Duration: 10 * time.Minute},
			Reference: &sourcev1.GitRepositoryRef{Branch: "main"},
		},
	}
	if change != nil {
		change(&obj.Spec)
	}
	if err := env.Client.Create(p.t.Context(), obj); err != nil {
		p.t.Fatal(err)
	}
}

func (p *plane) reconcile(name string) (ctrl.Result, error) {
	p.t.Helper()
	return p.reconciler.Reconcile(p.t.Context(), ctrl.Request{NamespacedName: p.key(name)})
}

// succeed reconciles and returns the object.
func (p *plane) succeed(name string) *sourcev1.GitRepository {
	p.t.Helper()
	result, err := p.reconcile(name)
	obj := p.get(name)
	if err != nil || result.RequeueAfter != 10*time.Minute {
		p.t.Fatalf("%s: got %+v, %v; status %+v", name, result, err, obj.Status)
	}
	return obj
}

func (p *plane) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: p.namespace, Name: name}
}

func (p *plane) get(name string) *sourcev1.GitRepository {
	p.t.Helper()
	obj := &sourcev1.GitRepository{}
	if err := env.Client.Get(p.t.Context(), p.key(name), obj); err != nil {
		p.t.Fatal(err)
	}
	return obj
}

func (p *plane) edit(name string, change func(*sourcev1.GitRepository)) {
	p.t.Helper()
	obj := p.get(name)
	change(obj)
	if err := env.Client.Update(p.t.Context(), obj); err != nil {
		p.t.Fatal(err)
	}
}

func (p *plane) served(artifact *meta.Artifact) error {
	body, err := p.store.Open(p.t.Context(), artifact.Path)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	content, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if got := digest.FromBytes(content); got.String() != artifact.Digest {
		return fmt.Errorf("digest %s, want %s", got, artifact.Digest)
	}
	return nil
}

func summary(obj *sourcev1.GitRepository) map[string]string {
	found := map[string]string{}
	for _, c := range obj.Status.Conditions {
		found[c.Type] = string(c.Status) + " " + c.Reason + ": " + c.Message
	}
	return found
}

func stored(revision string) map[string]string {
	message := "True Succeeded: stored artifact for revision '" + revision + "'"
	return map[string]string{"Ready": message, "ArtifactInStorage": message}
}

func TestCommitBecomesArtifact(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	commit := p.upstream.Repository("app").Commit("main", "Add the app\n\nat length", upstream.Text(map[string]string{"a.yaml": "a: 1"}))
	p.create("app", "app", nil)
	obj := p.succeed("app")

	revision := "main@sha1:" + commit
	if diff := cmp.Diff(stored(revision), summary(obj)); diff != "" {
		t.Errorf("conditions: -want +got:\n%s", diff)
	}
	artifact := obj.Status.Artifact
	path := fmt.Sprintf("gitrepository/%s/app/%s.tar.gz", p.namespace, commit)
	want := &meta.Artifact{
		Path: path, URL: "http://artifacts.example.com/" + path, Revision: revision, Digest: artifact.Digest,
		LastUpdateTime: metav1.NewTime(p.clock.Now()), Size: artifact.Size,
	}
	if diff := cmp.Diff(want, artifact); diff != "" {
		t.Errorf("artifact: -want +got:\n%s", diff)
	}
	if err := p.served(artifact); err != nil {
		t.Error(err)
	}
	if obj.Status.ObservedGeneration != obj.Generation || obj.Status.ContentConfigChecksum == "" || p.writes != 2 {
		t.Errorf("%d writes, status %+v", p.writes, obj.Status)
	}
	if diff := cmp.Diff([]string{"Normal NewArtifact: stored artifact for commit 'Add the app'"}, p.events.take()); diff != "" {
		t.Errorf("events: -want +got:\n%s", diff)
	}
}

func TestNoOpWritesNothing(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.upstream.Repository("app").Commit("main", "one", upstream.Text(map[string]string{"a": "1"}))
	p.create("app", "app", func(spec *sourcev1.GitRepositorySpec) { spec.Ignore = new("") })
	before := p.succeed("app")
	p.events.take()
	writes, fetches := p.writes, p.server.Count(upstream.Fetch)
	after := p.succeed("app")
	if p.writes != writes || p.server.Count(upstream.Fetch) != fetches || before.ResourceVersion != after.ResourceVersion {
		t.Errorf("%d writes, %d fetches, resourceVersion %s -> %s", p.writes-writes, p.server.Count(upstream.Fetch)-fetches, before.ResourceVersion, after.ResourceVersion)
	}
	if told := p.events.take(); len(told) != 0 {
		t.Errorf("told %v", told)
	}
}

func TestNoOpWritesNothingWithoutTheChecksumInStatus(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.upstream.Repository("app").Commit("main", "one", upstream.Text(map[string]string{"a": "1"}))
	p.create("app", "app", nil)
	obj := p.succeed("app")
	// Flux's CRD has no such field: the API server drops it from every write.
	obj.Status.ContentConfigChecksum = ""
	if err := env.Client.Status().Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	writes := p.writes
	p.succeed("app")
	if p.writes != writes {
		t.Errorf("%d writes; the store knows that nothing has changed", p.writes-writes)
	}
}

func TestPinnedCommitAsksNobody(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	commit := p.upstream.Repository("app").Commit("main", "one", upstream.Text(map[string]string{"a": "1"}))
	p.create("app", "app", func(spec *sourcev1.GitRepositorySpec) { spec.Reference = &sourcev1.GitRepositoryRef{Commit: commit} })
	p.succeed("app")
	p.server.Reset()
	p.succeed("app")
	if requests := p.server.Requests(); len(requests) != 0 {
		t.Errorf("%d requests for a commit that is stored", len(requests))
	}
}

func TestConfigurationRebuildsAtTheSameRevision(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	commit := p.upstream.Repository("app").Commit("main", "one", upstream.Text(map[string]string{"a": "1", "b": "2"}))
	p.create("app", "app", nil)
	before := p.succeed("app")
	p.edit("app", func(obj *sourcev1.GitRepository) { obj.Spec.Ignore = new("b") })
	after := p.succeed("app")

	if before.Status.Artifact.Revision != after.Status.Artifact.Revision || before.Status.ContentConfigChecksum == after.Status.ContentConfigChecksum {
		t.Errorf("before %+v, after %+v", before.Status, after.Status)
	}
	name := fmt.Sprintf("%s-%s.tar.gz", commit, strings.TrimPrefix(after.Status.Artifact.Digest, "sha256:")[:12])
	if !strings.HasSuffix(after.Status.Artifact.URL, "/"+name) {
		t.Errorf("got %s, want it to end in %s", after.Status.Artifact.URL, name)
	}
	for _, artifact := range []*meta.Artifact{before.Status.Artifact, after.Status.Artifact} {
		if err := p.served(artifact); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(new("b"), after.Status.ObservedIgnore); diff != "" {
		t.Errorf("observedIgnore: -want +got:\n%s", diff)
	}
}

func TestOutageAndRecoveryAreTold(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	commit := p.upstream.Repository("app").Commit("main", "one", upstream.Text(map[string]string{"a": "1"}))
	p.create("app", "app", nil)
	good := p.succeed("app")
	p.events.take()

	p.server.Always(upstream.Status(503))
	if _, err := p.reconcile("app"); err == nil {
		t.Fatal("an outage must be retried")
	}
	down := p.get("app")
	got := summary(down)
	if !strings.HasPrefix(got["FetchFailed"], "True GitOperationFailed") || !strings.HasPrefix(got["Ready"], "False GitOperationFailed") ||
		!strings.HasPrefix(got["Reconciling"], "True ProgressingWithRetry") || got["ArtifactInStorage"] == "" {
		t.Errorf("conditions %v", got)
	}
	if diff := cmp.Diff(good.Status.Artifact, down.Status.Artifact); diff != "" {
		t.Errorf("the artifact changed:\n%s", diff)
	}
	if told := p.events.take(); len(told) != 1 || !strings.HasPrefix(told[0], "Warning GitOperationFailed: ") {
		t.Errorf("told %v", told)
	}

	p.server.Heal()
	if diff := cmp.Diff(stored("main@sha1:"+commit), summary(p.succeed("app"))); diff != "" {
		t.Errorf("conditions: -want +got:\n%s", diff)
	}
	// The recovery is a no-op, which knows the commit by its id alone.
	if diff := cmp.Diff([]string{"Normal Succeeded: stored artifact for commit 'main@sha1:" + commit + "'"}, p.events.take()); diff != "" {
		t.Errorf("events: -want +got:\n%s", diff)
	}
}

func TestForgedStatusIsRepaired(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.upstream.Repository("app").Commit("main", "one", upstream.Text(map[string]string{"a": "1"}))
	p.upstream.Repository("other").Commit("main", "other", upstream.Text(map[string]string{"secret": "s"}))
	p.create("app", "app", nil)
	p.create("other", "other", nil)
	good := p.succeed("app").Status.Artifact
	forged := p.succeed("other").Status.Artifact
	obj := p.get("app")
	obj.Status.Artifact = forged
	if err := env.Client.Status().Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(good, p.succeed("app").Status.Artifact); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLostStoreIsRebuiltFromTheSpec(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.upstream.Repository("app").Commit("main", "one", upstream.Text(map[string]string{"a": "1"}))
	p.create("app", "app", nil)
	before := p.succeed("app").Status.Artifact
	lost := func() {
		if err := p.store.Delete(t.Context(), storage.Object{Kind: controllers.GitRepositoryDir, Namespace: p.namespace, Name: "app"}); err != nil {
			t.Fatal(err)
		}
	}
	lost()
	if diff := cmp.Diff(before, p.succeed("app").Status.Artifact); diff != "" {
		t.Errorf("the same commit gave another artifact: -want +got:\n%s", diff)
	}

	lost()
	p.server.Always(upstream.Status(500))
	if _, err := p.reconcile("app"); err == nil {
		t.Fatal("upstream is down")
	}
	if obj := p.get("app"); obj.Status.Artifact != nil || summary(obj)["ArtifactInStorage"] != "" {
		t.Errorf("status names an artifact that is not stored: %+v", obj.Status)
	}
}

func TestIncludeIsCopiedAndFollowed(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.upstream.Repository("app").Commit("main", "app", upstream.Text(map[string]string{"a": "1"}))
	library := p.upstream.Repository("library")
	library.Commit("main", "library", upstream.Text(map[string]string{"charts/x": "1"}))
	include := func(name string) func(*sourcev1.GitRepositorySpec) {
		return func(spec *sourcev1.GitRepositorySpec) {
			spec.Include = []sourcev1.GitRepositoryInclude{{GitRepositoryRef: meta.LocalObjectReference{Name: name}, FromPath: "charts", ToPath: "vendor"}}
		}
	}
	p.create("app", "app", include("library"))

	waits := func(reason string) {
		t.Helper()
		result, err := p.reconcile("app")
		if err != nil || result.RequeueAfter != 30*time.Second {
			t.Errorf("got %+v, %v; want it to wait", result, err)
		}
		if got := summary(p.get("app"))["IncludeUnavailable"]; !strings.HasPrefix(got, "True "+reason+": ") {
			t.Errorf("got %q, want %s", got, reason)
		}
	}
	waits(sourcev1.NotFoundReason)
	p.create("library", "library", nil)
	waits(sourcev1.NoArtifactReason)

	p.succeed("library")
	first := p.succeed("app")
	if len(first.Status.IncludedArtifacts) != 1 || first.Status.IncludedArtifacts[0].Digest != p.get("library").Status.Artifact.Digest {
		t.Errorf("includedArtifacts %+v", first.Status.IncludedArtifacts)
	}
	library.Commit("main", "library", upstream.Text(map[string]string{"charts/x": "2"}))
	p.succeed("library")
	second := p.succeed("app")
	if second.Status.Artifact.Revision != first.Status.Artifact.Revision || second.Status.Artifact.Digest == first.Status.Artifact.Digest {
		t.Errorf("first %+v, second %+v", first.Status.Artifact, second.Status.Artifact)
	}
	if got := summary(second); got["IncludeUnavailable"] != "" {
		t.Errorf("conditions %v", got)
	}
}

// TestAPinIsProvenOnce: what is on record is not asked for again until the pin or what it is on changes.
func TestAPinIsProvenOnce(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	repository := p.upstream.Repository("app")
	first := repository.Commit("main", "first", upstream.Text(map[string]string{"a": "1"}))
	repository.Commit("main", "second", upstream.Text(map[string]string{"a": "2"}))
	side := repository.Rewrite("side", "side", upstream.Text(map[string]string{"a": "3"}))
	p.create("app", "app", func(spec *sourcev1.GitRepositorySpec) {
		spec.Reference = &sourcev1.GitRepositoryRef{Branch: "main", Commit: side}
	})
	refused := func(artifact *meta.Artifact) {
		t.Helper()
		if _, err := p.reconcile("app"); err != nil {
			t.Log(err)
		}
		obj := p.get("app")
		got := summary(obj)
		if !strings.HasPrefix(got["FetchFailed"], "True GitOperationFailed: ") || got["ArtifactOutdated"] != "" || !cmp.Equal(artifact, obj.Status.Artifact) {
			t.Errorf("got %v, %+v", got, obj.Status.Artifact)
		}
		if told := fmt.Sprint(p.events.take(), got); strings.Contains(told, "@sha1:"+side) {
			t.Errorf("a name that is not proven is told: %s", told)
		}
	}
	refused(nil)

	step := func(reason string, listings int, change func(*sourcev1.GitRepositorySpec)) *sourcev1.GitRepository {
		t.Helper()
		p.edit("app", func(obj *sourcev1.GitRepository) { change(&obj.Spec) })
		before := p.server.Count(upstream.LsRefs)
		obj := p.succeed("app")
		if got := p.server.Count(upstream.LsRefs) - before; got != listings {
			t.Errorf("%s: %d listings, want %d", reason, got, listings)
		}
		return obj
	}
	if obj := step("the pin changed", 1, func(spec *sourcev1.GitRepositorySpec) { spec.Reference.Commit = first }); obj.Status.Artifact.Revision != "main@sha1:"+first {
		t.Errorf("got %s", obj.Status.Artifact.Revision)
	}
	p.restart()
	step("another process", 0, func(spec *sourcev1.GitRepositorySpec) { spec.Interval.Duration = 10 * time.Minute })
	step("other rules", 0, func(spec *sourcev1.GitRepositorySpec) { spec.Ignore = new("b") })
	repository.SetRef("refs/heads/release", first)
	good := step("another branch", 1, func(spec *sourcev1.GitRepositorySpec) { spec.Reference.Branch = "release" })
	if good.Status.Artifact.Revision != "release@sha1:"+first {
		t.Errorf("got %s", good.Status.Artifact.Revision)
	}
	p.edit("app", func(obj *sourcev1.GitRepository) { obj.Spec.Reference.Commit = side })
	p.events.take()
	refused(good.Status.Artifact)
}

func TestIncludeCycleWaitsAndHeals(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.upstream.Repository("app").Commit("main", "app", upstream.Text(map[string]string{"a": "1"}))
	for name, other := range map[string]string{"self": "self", "a": "b", "b": "c", "c": "a"} {
		p.create(name, "app", func(spec *sourcev1.GitRepositorySpec) {
			spec.Include = []sourcev1.GitRepositoryInclude{{GitRepositoryRef: meta.LocalObjectReference{Name: other}}}
		})
	}
	for _, name := range []string{"self", "a", "b", "c"} {
		result, err := p.reconcile(name)
		got := summary(p.get(name))
		if result.RequeueAfter != 30*time.Second || err != nil || !strings.HasPrefix(got["IncludeUnavailable"], "True NoArtifact: ") ||
			!strings.Contains(got["IncludeUnavailable"], "leads back to this GitRepository") {
			t.Errorf("%s: got %+v, %v, %v", name, result, err, got)
		}
	}
	// Without its include, c breaks the cycle; the others need no edit.
	p.edit("c", func(obj *sourcev1.GitRepository) { obj.Spec.Include = nil })
	for _, name := range []string{"c", "b", "a"} {
		p.succeed(name)
	}
}

func TestUnreadableStatusIsReplaced(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.upstream.Repository("app").Commit("main", "one", upstream.Text(map[string]string{"a": "1"}))
	p.create("app", "app", nil)
	good := p.succeed("app")
	p.events.take()
	// The API server takes a lower-case t for a date and time; Go does not.
	forged := &unstructured.Unstructured{}
	forged.SetGroupVersionKind(sourcev1.GroupVersion.WithKind(sourcev1.GitRepositoryKind))
	if err := env.Client.Get(t.Context(), p.key("app"), forged); err != nil {
		t.Fatal(err)
	}
	junk := map[string]any{"path": "p", "url": "u", "revision": "r", "digest": "sha256:0", "lastUpdateTime": "2021-01-01t00:00:00z"}
	if err := unstructured.SetNestedSlice(forged.Object, []any{junk}, "status", "includedArtifacts"); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Status().Update(t.Context(), forged); err != nil {
		t.Fatal(err)
	}
	if !p.get("app").UnreadableStatus {
		t.Fatal("the status can be read; the forgery is none")
	}
	healed := p.succeed("app")
	if healed.UnreadableStatus || len(healed.Status.IncludedArtifacts) != 0 {
		t.Errorf("got %+v", healed.Status)
	}
	if diff := cmp.Diff(good.Status.Artifact, healed.Status.Artifact); diff != "" {
		t.Errorf("artifact: -want +got:\n%s", diff)
	}
	if told := p.events.take(); len(told) != 0 {
		t.Errorf("nothing new is stored, but told %v", told)
	}
	writes := p.writes
	if p.succeed("app"); p.writes != writes {
		t.Error("a no-op wrote")
	}
}

func TestBadSpecsStallAndHeal(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.upstream.Repository("app").Commit("main", "one", upstream.Text(map[string]string{"a": "1"}))
	p.create("app", "app", func(spec *sourcev1.GitRepositorySpec) { spec.Provider = sourcev1.GitProviderAzure })
	if result, err := p.reconcile("app"); err != nil || result.RequeueAfter != 0 {
		t.Errorf("got %+v, %v", result, err)
	}
	obj := p.get("app")
	got := summary(obj)
	for _, condition := range []string{"Stalled", "FetchFailed"} {
		if !strings.HasPrefix(got[condition], "True InvalidProviderConfiguration: ") || !strings.Contains(got[condition], "spec.provider") {
			t.Errorf("%s: %q", condition, got[condition])
		}
	}
	if obj.Status.ObservedGeneration != obj.Generation {
		t.Errorf("observedGeneration %d", obj.Status.ObservedGeneration)
	}
	p.edit("app", func(obj *sourcev1.GitRepository) { obj.Spec.Provider = "" })
	if got := summary(p.succeed("app")); got["Stalled"] != "" {
		t.Errorf("conditions %v", got)
	}
}

func TestUndecodableSpecStallsAlone(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.upstream.Repository("app").Commit("main", "one", upstream.Text(map[string]string{"a": "1"}))
	p.create("app", "app", nil)
	bad := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": sourcev1.GroupVersion.String(), "kind": sourcev1.GitRepositoryKind,
		"metadata": map[string]any{"namespace": p.namespace, "name": "bad"},
		"spec":     map[string]any{"url": p.server.URL("app"), "interval": "9999999999999999h"},
	}}
	if err := env.Client.Create(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	if result, err := p.reconcile("bad"); err != nil || result.RequeueAfter != 0 {
		t.Errorf("got %+v, %v", result, err)
	}
	if got := summary(p.get("bad"))["Stalled"]; !strings.Contains(got, "spec cannot be decoded") {
		t.Errorf("got %q", got)
	}
	var list sourcev1.GitRepositoryList
	if err := env.Client.List(t.Context(), &list, client.InNamespace(p.namespace)); err != nil || len(list.Items) != 2 {
		t.Errorf("got %d objects, %v", len(list.Items), err)
	}
	p.succeed("app")
}

func TestSupersededArtifactsGoByAge(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	app := p.upstream.Repository("app")
	app.Commit("main", "one", upstream.Text(map[string]string{"a": "1"}))
	p.create("app", "app", nil)
	first := p.succeed("app").Status.Artifact
	app.Commit("main", "two", upstream.Text(map[string]string{"a": "2"}))
	p.succeed("app")
	if err := p.served(first); err != nil {
		t.Errorf("a consumer may still be reading: %v", err)
	}
	p.clock.SetTime(p.clock.Now().Add(2 * time.Minute))
	p.succeed("app")
	if err := p.served(first); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// TestWhatIsNeverReportedDoesNotPileUp edits the object during every fetch, so that no status can be written for it.
func TestWhatIsNeverReportedDoesNotPileUp(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	app := p.upstream.Repository("app")
	app.Commit("main", "one", upstream.Text(map[string]string{"a": "1"}))
	p.create("app", "app", nil)
	first := p.succeed("app").Status.Artifact
	var editing atomic.Bool
	edits := 0
	p.server.Before(upstream.Fetch, func() {
		if editing.Load() {
			edits++
			p.edit("app", func(obj *sourcev1.GitRepository) {
				obj.Spec.Timeout = &metav1.Duration{Duration: time.Minute + time.Duration(edits)*time.Second}
			})
		}
	})
	editing.Store(true)
	for round := range 4 {
		app.Commit("main", "next", upstream.Text(map[string]string{"a": fmt.Sprint("next ", round)}))
		p.clock.SetTime(p.clock.Now().Add(2 * time.Minute))
		if _, err := p.reconcile("app"); err != nil {
			t.Fatal(err)
		}
		if got := p.get("app").Status.Artifact; got.Path != first.Path || p.served(got) != nil {
			t.Errorf("round %d: status names %s, which is not served: %v", round, got.Path, p.served(got))
		}
		if _, files, err := p.store.Usage(t.Context()); err != nil || files != 2 {
			t.Errorf("round %d: %d files, %v; want the one that status names, and the current one", round, files, err)
		}
	}
	editing.Store(false)
	if p.succeed("app").Status.Artifact.Path == first.Path || edits != 4 {
		t.Errorf("nothing new was reported after %d edits", edits)
	}
	p.clock.SetTime(p.clock.Now().Add(time.Minute))
	p.succeed("app")
	if err := p.served(first); err != nil {
		t.Errorf("status has named another one for a minute: %v", err)
	}
	p.clock.SetTime(p.clock.Now().Add(time.Second))
	p.succeed("app")
	if err := p.served(first); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestDeletionRemovesTheArtifacts(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.upstream.Repository("app").Commit("main", "one", upstream.Text(map[string]string{"a": "1"}))
	p.create("app", "app", nil)
	obj := p.succeed("app")
	if diff := cmp.Diff([]string{controllers.Finalizer}, obj.Finalizers); diff != "" {
		t.Errorf("finalizers: -want +got:\n%s", diff)
	}
	if err := env.Client.Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	if _, err := p.reconcile("app"); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Get(t.Context(), p.key("app"), obj); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	if err := p.served(obj.Status.Artifact); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		address controllers.Address
		want    string
	}{
		"Host":   {"source-controller.flux-system.svc.cluster.local.", "http://source-controller.flux-system.svc.cluster.local./a/b"},
		"Port":   {"localhost:9090", "http://localhost:9090/a/b"},
		"Scheme": {"https://artifacts.example.com", "https://artifacts.example.com/a/b"},
		"Slash":  {"http://artifacts.example.com/", "http://artifacts.example.com/a/b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.address.URL("a/b"); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
