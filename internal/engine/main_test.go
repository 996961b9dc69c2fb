package engine_test

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/build"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/fetch"
	"sluice.dev/sluice/internal/engine/watch"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/testenv"
)

// env is the one API server of the package.
var env *testenv.Env

// TestMain makes the test's binary the build worker that it starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == build.Subcommand {
		os.Exit(build.Main())
	}
	os.Exit(testenv.Main(m, &env))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// errDead is what everything answers after the process was killed.
var errDead = errors.New("killed")

// mortal is a process that dies at its n-th effect: just before it, or just after, so that nobody hears the answer.
type mortal struct {
	mu      sync.Mutex
	at      int
	after   bool
	effects int
	dead    bool
}

// effect does something that lasts, or dies.
func (m *mortal) effect(do func() error) error {
	if m == nil {
		return do()
	}
	m.mu.Lock()
	if m.dead {
		m.mu.Unlock()
		return errDead
	}
	m.effects++
	last := m.effects == m.at
	m.dead = m.dead || last
	m.mu.Unlock()
	if last && !m.after {
		return errDead
	}
	err := do()
	if last {
		return errDead
	}
	return err
}

func (m *mortal) isDead() bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// wire is the way to the API server.
type wire struct {
	mortal *mortal
	next   http.RoundTripper
}

func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet {
		if w.mortal.isDead() {
			return nil, errDead
		}
		return w.next.RoundTrip(request)
	}
	var response *http.Response
	err := w.mortal.effect(func() (err error) {
		response, err = w.next.RoundTrip(request) //nolint:bodyclose // It is the caller's to close, or closed below.
		return err
	})
	if err != nil && response != nil {
		return nil, errors.Join(err, response.Body.Close())
	}
	return response, err
}

// records keeps Inventories in the API server.
type records struct {
	client client.Client
	mortal *mortal

	mu     sync.Mutex
	writes int
}

func (s *records) write(do func() error) error {
	s.mu.Lock()
	s.writes++
	s.mu.Unlock()
	return s.mortal.effect(do)
}

func (s *records) Load(ctx context.Context, namespace, name string) (*modulesv1.Inventory, error) {
	if s.mortal.isDead() {
		return nil, errDead
	}
	found := &modulesv1.Inventory{}
	err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

func (s *records) Stored(ctx context.Context, namespace, name string) (*modulesv1.Inventory, error) {
	return s.Load(ctx, namespace, name)
}

func (s *records) List(ctx context.Context, namespace, label string) ([]modulesv1.Inventory, error) {
	found, options := &modulesv1.InventoryList{}, []client.ListOption{client.InNamespace(namespace)}
	if label != "" {
		options = append(options, client.HasLabels{label})
	}
	err := s.client.List(ctx, found, options...)
	return found.Items, err
}

func (s *records) Create(ctx context.Context, inventory *modulesv1.Inventory) error {
	return s.write(func() error { return s.client.Create(ctx, inventory) })
}

func (s *records) Update(ctx context.Context, inventory *modulesv1.Inventory) error {
	return s.write(func() error { return s.client.Update(ctx, inventory) })
}

func (s *records) Delete(ctx context.Context, inventory *modulesv1.Inventory) error {
	return s.write(func() error { return client.IgnoreNotFound(s.client.Delete(ctx, inventory)) })
}

// depot serves artifacts.
type depot struct {
	*httptest.Server
	mu     sync.Mutex
	bodies map[string][]byte
	asked  int
}

func newDepot(t *testing.T) *depot {
	t.Helper()
	d := &depot{bodies: map[string][]byte{}}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.asked++
		body, found := d.bodies[r.URL.Path]
		if !found {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(d.Close)
	return d
}

// publish makes an artifact of files.
func (d *depot) publish(t *testing.T, files map[string]string) fetch.Artifact {
	t.Helper()
	var body bytes.Buffer
	zipped := gzip.NewWriter(&body)
	archive := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		check(t, archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}))
		_, err := archive.Write([]byte(files[name]))
		check(t, err)
	}
	check(t, archive.Close())
	check(t, zipped.Close())
	sum := sha256.Sum256(body.Bytes())
	digest := hex.EncodeToString(sum[:])
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bodies["/"+digest] = body.Bytes()
	return fetch.Artifact{URL: d.URL + "/" + digest, Digest: "sha256:" + digest, Size: int64(body.Len()), Revision: "v@" + digest}
}

// rig is an engine with all that it needs, and an installation for it.
type rig struct {
	t         *testing.T
	namespace string
	client    client.Client
	depot     *depot
	clock     *clocktesting.FakePassiveClock
	in        engine.Installation

	// These are new after a restart.
	engine  *engine.Engine
	parts   engine.Parts
	watcher *watch.Watcher
	records *records
	// memory takes the place of records, if it is set.
	memory *cached
	stop   []func()
	mu     sync.Mutex
	// wrap stands between the connector and the API server, and timeout is that of its requests, if they are set.
	wrap    func(http.RoundTripper) http.RoundTripper
	timeout time.Duration
	// looks bounds how often it asks for the API server's kinds; nil does not.
	looks flowcontrol.PassiveRateLimiter
	// healthCost is what expressions may cost in a round; 0 means the default.
	healthCost uint64
	// These are options of the engine.
	builder     *build.Builder
	renderBytes int64
	patience    time.Duration
	// onCall hears of every request for a member, before it is sent.
	onCall  func(verb string)
	verbs   map[string]int
	renders int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	scheme := runtime.NewScheme()
	check(t, modulesv1.AddToScheme(scheme))
	config := rest.CopyConfig(env.Config)
	config.QPS = -1
	inventories, err := client.New(config, client.Options{Scheme: scheme})
	check(t, err)
	r := &rig{
		t: t, namespace: env.NewNamespace(t), client: inventories, depot: newDepot(t), builder: build.New(build.Options{}),
		clock: clocktesting.NewFakePassiveClock(time.Now()),
	}
	r.in = engine.Installation{Name: "redis", Namespace: r.namespace, UID: "uid-of-redis-in-" + r.namespace}
	r.start(nil)
	t.Cleanup(func() { r.halt() })
	return r
}

// sibling is another installation in the same namespace, with an engine of its own.
func (r *rig) sibling(name string) *rig {
	r.t.Helper()
	s := &rig{t: r.t, namespace: r.namespace, client: r.client, depot: r.depot, builder: r.builder, clock: r.clock}
	s.in = engine.Installation{Name: name, Namespace: r.namespace, UID: "uid-of-" + name + "-in-" + r.namespace}
	s.start(nil)
	r.t.Cleanup(func() { s.halt() })
	return s
}

func (r *rig) halt() {
	for _, stop := range slices.Backward(r.stop) {
		stop()
	}
	r.stop = nil
}

// start starts a process; what the one before remembered is gone.
func (r *rig) start(m *mortal) {
	r.t.Helper()
	r.halt()
	config := rest.CopyConfig(env.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &wire{mortal: m, next: next} })
	if r.wrap != nil {
		config.Wrap(r.wrap)
	}
	r.verbs = map[string]int{}
	connector, err := cluster.NewConnector(config, cluster.Options{RequestTimeout: r.timeout, Looks: cmp.Or(r.looks, flowcontrol.PassiveRateLimiter(flowcontrol.NewFakeAlwaysRateLimiter())), Observe: func(verb string) {
		r.mu.Lock()
		r.verbs[verb]++
		hook := r.onCall
		r.mu.Unlock()
		if hook != nil {
			hook(verb)
		}
	}})
	check(r.t, err)
	watcher, err := watch.New(watch.Options{Connect: connector.Connect})
	check(r.t, err)
	factory := transport.New(transport.Options{AllowLoopback: true})
	cache := fetch.New(factory, fetch.Options{Dir: r.t.TempDir(), Patience: time.Minute})
	r.watcher = watcher
	r.records = &records{client: r.client, mortal: m}
	var kept engine.Records = r.records
	if r.memory != nil {
		kept = r.memory
	}
	r.parts = engine.Parts{Connector: connector, Watcher: watcher, Cache: cache, Builder: r.builder, Records: kept}
	r.engine, err = engine.New(r.parts, engine.Options{
		Clock: r.clock, Observer: r, HealthCost: r.healthCost, RenderBytes: r.renderBytes, RenderPatience: r.patience,
	})
	check(r.t, err)
	r.stop = []func(){cache.Close, watcher.Close}
}

func (r *rig) Did(string, time.Duration, error) {}

func (r *rig) Rendered(time.Duration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.renders++
}

// calls are the requests about members that the work makes, without watches and discovery.
func (r *rig) calls(work func()) map[string]int {
	count := func() map[string]int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return maps.Clone(r.verbs)
	}
	before := count()
	work()
	made := map[string]int{}
	for verb, n := range count() {
		if n > before[verb] && verb != "watch" && verb != "discover" {
			made[verb] = n - before[verb]
		}
	}
	return made
}

// target is a release of the files.
func (r *rig) target(version string, files map[string]string) *engine.Target {
	r.t.Helper()
	artifact := r.depot.publish(r.t, files)
	return &engine.Target{
		Release: modulesv1.Release{
			Module: "redis", Version: version, Namespace: r.namespace, Template: "redis-" + version,
			Revision: artifact.Revision, Digest: artifact.Digest,
		},
		Artifact: artifact,
	}
}

// round does one round that must not fail.
func (r *rig) round() engine.Outcome {
	r.t.Helper()
	out, err := r.engine.Reconcile(r.t.Context(), r.in)
	if err != nil {
		r.t.Fatalf("round: %v", err)
	}
	return out
}

// settle does rounds until the condition holds.
func (r *rig) settle(what string, done func(engine.Outcome) bool) engine.Outcome {
	r.t.Helper()
	var out engine.Outcome
	testenv.Eventually(r.t, what, func(ctx context.Context) (bool, string) {
		var err error
		out, err = r.engine.Reconcile(ctx, r.in)
		if err != nil {
			return false, err.Error()
		}
		return done(out), fmt.Sprintf("%+v", out)
	})
	return out
}

func settled(out engine.Outcome) bool { return out.Settled && out.Healthy }
func done(out engine.Outcome) bool    { return out.Done }

// healed is how many members were brought back to what they were.
func healed(out engine.Outcome) int {
	return len(slices.DeleteFunc(slices.Clone(out.Notes), func(note engine.Note) bool { return note.Reason != modulesv1.DriftHealedReason }))
}

// synced waits until the watches know every member as it is.
func (r *rig) synced() {
	r.t.Helper()
	testenv.Eventually(r.t, "the watches are warm", func(context.Context) (bool, string) {
		for _, m := range r.inventory().Data.Members {
			ref := cluster.Ref{GVK: schema.GroupVersionKind{Group: m.Group, Version: m.Version, Kind: m.Kind}, Namespace: m.Namespace, Name: m.Name}
			meta, known := r.watcher.State(r.in.Key(), ref)
			if !known || meta == nil || meta.Fingerprint != m.Fingerprint {
				return false, m.Name
			}
		}
		return true, ""
	})
}

// inventory is what is stored.
func (r *rig) inventory() *modulesv1.Inventory {
	r.t.Helper()
	found := &modulesv1.Inventory{}
	err := r.client.Get(r.t.Context(), client.ObjectKey{Namespace: r.namespace, Name: r.in.Name}, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	check(r.t, err)
	return found
}

var configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// get reads an object as an administrator; nil is none.
func (r *rig) get(gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	r.t.Helper()
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(gvk)
	err := env.Client.Get(r.t.Context(), client.ObjectKey{Namespace: r.namespace, Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	check(r.t, err)
	return found
}

// present are the names of the ConfigMaps that the tests made.
func (r *rig) present() []string {
	r.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"})
	check(r.t, env.Client.List(r.t.Context(), list, client.InNamespace(r.namespace)))
	var names []string
	for _, item := range list.Items {
		if !strings.HasPrefix(item.GetName(), "kube-root-ca") {
			names = append(names, item.GetName())
		}
	}
	slices.Sort(names)
	return names
}

// members are the names in the stored inventory, with their states.
func (r *rig) members() []string {
	r.t.Helper()
	record := r.inventory()
	if record == nil {
		return nil
	}
	var names []string
	for _, m := range record.Data.Members {
		name := m.Name
		if m.State != "" {
			name += ":" + string(m.State)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// configMap is a manifest.
func configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {key: %q}\n", name, value)
}

// configMapFiles are ConfigMaps, each in a file: pairs of name and value.
func configMapFiles(pairs ...string) map[string]string {
	files := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		files[pairs[i]+".yaml"] = configMap(pairs[i], pairs[i+1])
	}
	return files
}
