package packages_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/controllers/packages"
	"sluice.dev/sluice/controllers/packages/lookups"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/internal/forge"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/sourcetest"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/variant"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/storage/local/localtest"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

const (
	// shortestDelay is the first of the growing delays after a failure.
	shortestDelay = 10 * time.Millisecond
	// gathering is how long orders for a repository wait for more of them.
	gathering = 300 * time.Millisecond
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

// looks counts how often each object was looked at.
type looks struct {
	mu  sync.Mutex
	all map[string]int64
}

func (l *looks) Observe(obj client.Object, _ time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[string]int64{}
	}
	l.all[fmt.Sprintf("%T %s", obj, obj.GetName())]++
}

func (*looks) Forget(client.Object) {}

// counts are how often they were, until now.
func (l *looks) counts() map[string]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.all)
}

// plane is the plane of packages, running under a manager of its own in one namespace, with real Git servers.
type plane struct {
	*testing.T

	namespace string
	upstreams *upstream.Fixture
	server    *upstream.GitHTTP
	events    *emitted
	stop      func()
	// shared is what the controllers know of each other's objects.
	shared *packages.Plane
	// renderer renders packages.
	renderer variant.Renderer
	// memory and files are the budgets.
	memory, files *memory.Budget
	// limits are those of repositories.
	limits pkgrepo.Options
	// interval is how often repositories are read without anything being edited.
	interval time.Duration
	// store changes where artifacts are kept; nil leaves it as it is.
	store func(storage.Store) storage.Store
	// writes counts what the controllers send to the API server to change something, and requests all that they send.
	writes, requests *atomic.Int64
	looks            *looks
	// meet sees each request of the controllers before the API server does, and may answer it; nil for nothing.
	meet func(*http.Request) *http.Response
	// allowed is the allow list of target fields at first, and allow sets another one.
	allowed map[string]string
	allow   func(map[string]string) []error
}

func newPlane(t *testing.T, change ...func(*plane)) *plane {
	t.Helper()
	p := &plane{T: t, namespace: env.NewNamespace(t), upstreams: upstream.ForTest(t), events: &emitted{}, writes: &atomic.Int64{}, requests: &atomic.Int64{}, looks: &looks{}, interval: 5 * time.Second}
	p.renderer = function.New(function.Options{})
	p.memory, p.files = memory.New(64<<20, "--memory"), memory.NewFiles(64<<20, "--files")
	for _, c := range change {
		c(p)
	}
	p.server = p.upstreams.HTTP(upstream.HTTPOptions{})
	p.start()
	return p
}

// start runs the controllers until the test or stop ends them.
func (p *plane) start() {
	p.Helper()
	counted := rest.CopyConfig(env.Config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return countingWrites{next, p.writes, p.requests, p.meet}
	})
	mgr, err := ctrl.NewManager(counted, ctrl.Options{
		Scheme: env.Scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", GracefulShutdownTimeout: new(time.Duration(-1)),
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{p.namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		p.Fatal(err)
	}
	connections := transport.New(transport.Options{AllowLoopback: true})
	upstream, err := git.New(git.Options{Transport: connections, TempDir: p.TempDir(), CacheDir: p.TempDir(), MaxCacheBytes: 1 << 28, CacheFailed: func(err error) { p.Error(err) }})
	if err != nil {
		p.Fatal(err)
	}
	connector, err := cluster.NewConnector(mgr.GetConfig(), cluster.Options{})
	if err != nil {
		p.Fatal(err)
	}
	p.shared = packages.NewPlane()
	shared := packages.Shared{
		Plane: p.shared, Depot: pkgrepo.New(upstream, p.limits),
		Credentials: auth.New(mgr.GetAPIReader(), auth.Options{}), Renderer: p.renderer, Memory: p.memory, Files: p.files,
		Shell: kernel.Shell{
			Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: p.events, FieldOwner: "sluice-test",
			RequeueDependency: time.Second, Jitter: func(d time.Duration) time.Duration { return d },
			Clock: clock.RealClock{}, Durations: p.looks, Workers: 4,
		},
	}
	shared.Pipeline = &source.Pipeline{Store: localtest.Open(p.T, local.Options{}), Clock: clock.RealClock{}, Observer: sourcetest.Silent{}}
	if p.store != nil {
		shared.Pipeline.Store = p.store(shared.Pipeline.Store)
	}
	shared.Artifact = func(path string) string { return "http://artifacts.example/" + path }
	shared.Rebuild = make(chan ctrlevent.GenericEvent)
	shared.Changed = func(pkgrepo.Kind, error) {}
	shared.Transport, shared.Asked = connections, func(forge.Provider, string) {}
	found := lookups.New(connector, shared.WakeVariant, logr.Discard())
	shared.Lookups = found
	targets := lookups.NewTargets(connector, shared.WakeSet, logr.Discard())
	p.allow = func(data map[string]string) []error {
		allowed, problems := lookups.ReadAllowed(data)
		targets.Allow(allowed)
		return problems
	}
	p.allow(p.allowed)
	shared.SetLookups = targets
	gates := lookups.New(connector, shared.WakeSet, logr.Discard())
	shared.Gates = gates
	previews := lookups.New(connector, shared.WakeSet, logr.Discard())
	shared.Previews, shared.RebuildSet = previews, make(chan ctrlevent.GenericEvent)
	ctx, cancel := context.WithCancel(context.WithoutCancel(p.Context()))
	backoff := func() *kernel.Backoff { return kernel.NewBackoff(shortestDelay, time.Second) }
	if err := packages.Setup(ctx, mgr, shared, backoff); err != nil {
		p.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	p.stop = sync.OnceFunc(func() {
		cancel()
		found.Close()
		targets.Close()
		gates.Close()
		previews.Close()
		if err := <-done; err != nil {
			p.Errorf("the manager ended with %v", err)
		}
	})
	p.Cleanup(p.stop)
}

// countingWrites counts requests that change something.
type countingWrites struct {
	http.RoundTripper

	writes, requests *atomic.Int64
	meet             func(*http.Request) *http.Response
}

func (c countingWrites) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.meet != nil {
		if response := c.meet(r); response != nil {
			return response, nil
		}
	}
	if r.URL.Query().Get("watch") == "" {
		c.requests.Add(1) // A watch ends and begins again by itself.
	}
	if r.Method != http.MethodGet {
		c.writes.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}

// repository makes a Git repository that takes pushes, and its objects.
func (p *plane) repository(name string) *upstream.Edited {
	p.Helper()
	made := p.upstreams.Repository(name + ".git")
	made.AcceptPushes()
	p.create(p.source(name, p.server), p.packages(name))
	made.Moved = func() { p.look(name) }
	return made
}

// look has the repository of a GitRepository read, as a webhook does, so that nobody waits for the next round.
func (p *plane) look(name string) {
	p.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"look-%d"}}}`, meta.ReconcileRequestAnnotation, requests.Add(1))
	source := &sourcev1.GitRepository{ObjectMeta: p.meta(name)}
	if err := env.Client.Patch(p.Context(), source, client.RawPatch(types.MergePatchType, []byte(patch))); client.IgnoreNotFound(err) != nil {
		p.Fatal(err)
	}
}

// frequent has repositories read as often as is allowed, for tests of what happens in rounds.
func frequent(p *plane) { p.interval = time.Second }

// source is the GitRepository of a repository on a server.
func (p *plane) source(name string, on *upstream.GitHTTP) *sourcev1.GitRepository {
	return &sourcev1.GitRepository{ObjectMeta: p.meta(name), Spec: sourcev1.GitRepositorySpec{
		URL: on.URL(name + ".git"), Interval: metav1.Duration{Duration: time.Hour},
	}}
}

// packages is the Repository of the GitRepository of the same name.
func (p *plane) packages(name string) *packagesv1.Repository {
	return &packagesv1.Repository{ObjectMeta: p.meta(name), Spec: packagesv1.RepositorySpec{
		GitRepositoryRef: packagesv1.LocalReference{Name: name}, Interval: &metav1.Duration{Duration: p.interval},
	}}
}

func (p *plane) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: p.namespace, Name: name}
}

func (p *plane) create(objects ...client.Object) {
	p.Helper()
	for _, obj := range objects {
		if err := env.Client.Create(p.Context(), obj); err != nil {
			p.Fatal(err)
		}
	}
}

// variant makes the variant app of the blueprint app in the repository cluster.
func (p *plane) variant(change ...func(*packagesv1.PackageVariantSpec)) *packagesv1.PackageVariant {
	p.Helper()
	return p.variantNamed("app", change...)
}

// variantNamed makes a variant of the blueprint app in the repository cluster, unless it is changed.
func (p *plane) variantNamed(name string, change ...func(*packagesv1.PackageVariantSpec)) *packagesv1.PackageVariant {
	p.Helper()
	made := &packagesv1.PackageVariant{ObjectMeta: p.meta(name), Spec: packagesv1.PackageVariantSpec{
		Upstream:   packagesv1.Upstream{Repo: "blueprints", Package: "app"},
		Downstream: packagesv1.Downstream{Repo: "cluster"},
	}}
	for _, c := range change {
		c(&made.Spec)
	}
	p.create(made)
	return made
}

// until waits until the object is as it should be.
func until[O client.Object](p *plane, obj O, what string, is func(O) (bool, string)) {
	p.Helper()
	testenv.Eventually(p.T, what, func(ctx context.Context) (bool, string) {
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return false, err.Error()
		}
		return is(obj)
	})
}

// said is what Ready says.
func said(obj conditions.Getter) string {
	if ready := conditions.Get(obj, "Ready"); ready != nil {
		return fmt.Sprintf("%s %s: %s", ready.Status, ready.Reason, ready.Message)
	}
	return "nothing"
}

// drafted waits for the variant's draft, and returns its files.
func (p *plane) drafted(v *packagesv1.PackageVariant, in *upstream.Edited, has func(upstream.Files) bool) upstream.Files {
	p.Helper()
	var files upstream.Files
	until(p, v, "the draft", func(v *packagesv1.PackageVariant) (bool, string) {
		if v.Status.Change == nil || v.Status.Change.Commit == "" {
			return false, said(v)
		}
		files = in.Tree(v.Status.Change.Commit)
		return conditions.IsReady(v) && has(files), fmt.Sprintf("%s %v", said(v), paths(files))
	})
	return files
}

func paths(files upstream.Files) []string {
	var all []string
	for path := range files {
		all = append(all, path)
	}
	return all
}

// kptfile is that of a package without more in it.
const kptfile = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n"

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: app # the app itself
spec:
  replicas: 1
  template:
    spec:
      containers:
        - name: app
          image: example.com/app:1.0.0
`
