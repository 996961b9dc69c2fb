package modules_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	controllers "sluice.dev/sluice/controllers/modules"
	"sluice.dev/sluice/controllers/modules/offers"
	"sluice.dev/sluice/internal/catalog/objects"
	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/tests/testenv"
)

// emitted collects events.
type emitted struct {
	mu     sync.Mutex
	events []string
}

func (e *emitted) Emit(ev event.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events = append(e.events, fmt.Sprintf("%s %s %s", ev.Object.Name, ev.Type, ev.Reason))
}

func (e *emitted) count(line string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, told := range e.events {
		if told == line {
			n++
		}
	}
	return n
}

// untimed keeps no times.
type untimed struct{}

func (untimed) Observe(client.Object, time.Duration) {}
func (untimed) Forget(client.Object)                 {}

// releases is the plane of templates and modules, running under a manager of its own: one system namespace and one
// tenant's. Nothing fetches the sources: the test says what became of them.
type releases struct {
	t              *testing.T
	system, tenant string
	clock          *clocktesting.FakePassiveClock
	events         *emitted
	offered        *offers.Offers
	cached         client.Client
	// template and module are reconcilers that the test can call itself.
	template, module reconcile.Reconciler
	sweeper          *controllers.Sweeper
}

func newReleases(t *testing.T) *releases {
	t.Helper()
	p := &releases{
		t: t, system: env.NewNamespace(t), tenant: env.NewNamespace(t), events: &emitted{},
		clock: clocktesting.NewFakePassiveClock(time.Now()),
	}
	mgr, err := ctrl.NewManager(env.Config, ctrl.Options{
		Scheme: env.Scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", GracefulShutdownTimeout: new(time.Duration(-1)),
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{p.system: {}, p.tenant: {}},
		},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.cached = mgr.GetClient()
	p.offered = offers.New(mgr.GetClient(), p.system)
	if err := p.offered.IndexFields(t.Context(), mgr.GetFieldIndexer()); err != nil {
		t.Fatal(err)
	}
	shared := controllers.Shared{Offers: p.offered, Shell: kernel.Shell{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: p.events, FieldOwner: "sluice-test",
		RequeueDependency: time.Second, Jitter: func(d time.Duration) time.Duration { return d },
		Clock: p.clock, Durations: untimed{}, Workers: 2,
	}}
	backoff := func() *kernel.Backoff { return kernel.NewBackoff(10*time.Millisecond, time.Second) }
	if err := controllers.SetupTemplate(mgr, shared, backoff()); err != nil {
		t.Fatal(err)
	}
	if err := controllers.SetupModule(mgr, shared, backoff()); err != nil {
		t.Fatal(err)
	}
	p.template, p.module = controllers.NewTemplateReconciler(shared, backoff()), controllers.NewModuleReconciler(shared, backoff())
	p.sweeper = controllers.NewSweeper(shared)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
	if !mgr.GetCache().WaitForCacheSync(t.Context()) {
		t.Fatal("the cache did not start")
	}
	return p
}

// digestOf is a manifest's digest, of 64 times the digit.
func digestOf(digit byte) string {
	text := make([]byte, 64)
	for i := range text {
		text[i] = digit
	}
	return "sha256:" + string(text)
}

// release is a template with an artifact in a registry.
func (p *releases) release(name, version, channel string, digit byte) *modulesv1.ModuleTemplate {
	return &modulesv1.ModuleTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.system, Name: name},
		Spec: modulesv1.ModuleTemplateSpec{
			ModuleName: "foo", Version: version, Channel: channel,
			Artifact: modulesv1.TemplateArtifact{OCI: &modulesv1.OCIArtifact{
				Repository: "oci://registry.example.com/foo", Digest: digestOf(digit),
			}},
		},
	}
}

func (p *releases) create(objects ...client.Object) {
	p.t.Helper()
	for _, obj := range objects {
		status := obj.DeepCopyObject()
		if err := env.Client.Create(p.t.Context(), obj); err != nil {
			p.t.Fatal(err)
		}
		if installation, ok := status.(*modulesv1.ModuleInstallation); ok {
			p.edit(obj, func() {
				if stored, ok := obj.(*modulesv1.ModuleInstallation); ok {
					stored.Status = installation.Status
				}
			})
		}
	}
}

// edit changes an object and its status, as it is now.
func (p *releases) edit(obj client.Object, change func()) {
	p.t.Helper()
	testenv.Eventually(p.t, "edit "+obj.GetName(), func(ctx context.Context) (bool, string) {
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return false, err.Error()
		}
		change()
		changed, _ := obj.DeepCopyObject().(client.Object)
		if err := env.Client.Update(ctx, obj); err != nil {
			return false, err.Error()
		}
		changed.SetResourceVersion(obj.GetResourceVersion())
		if err := env.Client.Status().Update(ctx, changed); err != nil {
			return false, err.Error()
		}
		return true, ""
	})
}

// until waits until the object is as it should be. The clock stands still meanwhile.
func until[O client.Object](p *releases, obj O, what string, holds func(O) bool) O {
	p.t.Helper()
	testenv.Eventually(p.t, what, func(ctx context.Context) (bool, string) {
		last := fmt.Sprintf("%+v", obj)
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return false, err.Error() + "; before: " + last
		}
		return holds(obj), fmt.Sprintf("%+v", obj)
	})
	return obj
}

// condition is a condition as "Status Reason"; empty when there is none.
func condition(obj conditions.Getter, kind string) string {
	c := conditions.Get(obj, kind)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

// look waits until the template's condition is as it should be.
func (p *releases) look(t *modulesv1.ModuleTemplate, kind, want string) {
	p.t.Helper()
	until(p, t, fmt.Sprintf("%s of %s is %q", kind, t.Name, want), func(t *modulesv1.ModuleTemplate) bool {
		return condition(t, kind) == want
	})
}

// sources are the sources that were made for the template.
func (p *releases) sources(t *modulesv1.ModuleTemplate) []sourcev1.OCIRepository {
	p.t.Helper()
	var list sourcev1.OCIRepositoryList
	if err := env.Client.List(p.t.Context(), &list, client.InNamespace(t.Namespace)); err != nil {
		p.t.Fatal(err)
	}
	var owned []sourcev1.OCIRepository
	for _, source := range list.Items {
		if objects.ReadSource(&source).MadeFor() == t.Name {
			owned = append(owned, source)
		}
	}
	return owned
}

// source waits for the template's only source.
func (p *releases) source(t *modulesv1.ModuleTemplate) *sourcev1.OCIRepository {
	p.t.Helper()
	var found []sourcev1.OCIRepository
	testenv.Eventually(p.t, "a source for "+t.Name, func(context.Context) (bool, string) {
		found = p.sources(t)
		return len(found) == 1, fmt.Sprintf("%d sources", len(found))
	})
	return &found[0]
}

// fetched says that the source has the artifact that it is pinned to.
func (p *releases) fetched(source *sourcev1.OCIRepository, metadata map[string]string) {
	p.t.Helper()
	p.edit(source, func() {
		source.Status.ObservedGeneration = source.Generation
		source.Status.Artifact = &meta.Artifact{
			Path: "a.tar.gz", URL: "http://artifacts.example.com/a.tar.gz", Revision: source.Spec.Reference.Digest,
			Digest: digestOf('f'), LastUpdateTime: metav1.NewTime(p.clock.Now()), Metadata: metadata,
		}
		conditions.MarkTrue(source, meta.ReadyCondition, meta.SucceededReason, "stored")
	})
}

// failed says that the source could not have its artifact.
func (p *releases) failed(source *sourcev1.OCIRepository) {
	p.t.Helper()
	p.edit(source, func() {
		conditions.MarkFalse(source, meta.ReadyCondition, sourcev1.OCIPullFailedReason, "registry is down")
	})
}

// installation runs, or wants, the releases.
func (p *releases) installation(name string, status modulesv1.ModuleInstallationStatus) *modulesv1.ModuleInstallation {
	return &modulesv1.ModuleInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.tenant, Name: name},
		Spec:       modulesv1.ModuleInstallationSpec{Module: modulesv1.ModuleRequest{Name: "foo"}},
		Status:     status,
	}
}

// wants is the status of an installation that is about to run a release of the template.
func (p *releases) wants(template string) modulesv1.ModuleInstallationStatus {
	return modulesv1.ModuleInstallationStatus{
		ObservedGeneration: 1, Desired: &modulesv1.Release{Module: "foo", Namespace: p.system, Template: template},
	}
}

// isInstalled says that an installation has begun to apply what the template stands for.
func (p *releases) isInstalled(t *modulesv1.ModuleTemplate) {
	p.t.Helper()
	p.edit(t, func() {
		t.Status.Installed = &modulesv1.InstalledVersion{Version: t.Status.Version, Content: t.Status.Content}
	})
}

// sweep looks for sources that nothing needs.
func (p *releases) sweep() {
	p.t.Helper()
	if err := p.sweeper.Sweep(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

// anHour passes.
func (p *releases) anHour() { p.clock.SetTime(p.clock.Now().Add(time.Hour)) }

// poke has the template looked at again, and waits until that is done.
func (p *releases) poke(t *modulesv1.ModuleTemplate) {
	p.t.Helper()
	token := fmt.Sprintf("%d", p.clock.Now().UnixNano())
	p.edit(t, func() { t.Annotations = map[string]string{meta.ReconcileRequestAnnotation: token} })
	until(p, t, "the request is handled", func(t *modulesv1.ModuleTemplate) bool { return t.Status.LastHandledReconcileAt == token })
}

// label puts a label on the tenant's namespace.
func (p *releases) label(key, value string) {
	p.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.tenant}}
	p.edit(namespace, func() {
		if namespace.Labels == nil {
			namespace.Labels = map[string]string{}
		}
		namespace.Labels[key] = value
	})
}
