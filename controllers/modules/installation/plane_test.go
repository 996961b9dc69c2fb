package installation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
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
	"sluice.dev/sluice/controllers/modules/installation"
	"sluice.dev/sluice/controllers/modules/offers"
	"sluice.dev/sluice/controllers/modules/records"
	"sluice.dev/sluice/controllers/modules/wakes"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/build"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/fetch"
	"sluice.dev/sluice/internal/engine/watch"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/testenv"
)

// plane is the module controllers at work in one namespace, with the real engine, and sources that have their artifacts
// from the test.
type plane struct {
	t         *testing.T
	namespace string
	// system is the namespace of the system's catalogue.
	system string
	client client.Client
	depot  *depot
	events *eventLog
	wire   *wire
	rounds *roundCount
	// sweeper looks for sources that nothing needs when the test says so, by a clock of its own.
	sweeper *controllers.Sweeper
	clock   *clocktesting.FakePassiveClock
	// others are namespaces of other tenants that the controllers see.
	others []string
	// blind says that the catalogue cannot be read for now.
	blind atomic.Bool
}

// sight is a catalogue's reader, for as long as the plane is not blind.
type sight struct {
	client.Reader
	plane *plane
}

// List implements client.Reader.
func (s sight) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if s.plane.blind.Load() {
		return errors.New("the cache is out of order")
	}
	return s.Reader.List(ctx, list, options...)
}

// deployer is the account that may do everything in its namespace, and that installations work as.
const deployer = "deployer"

func newPlane(t *testing.T, adjust func(*installation.Options), others ...string) *plane {
	t.Helper()
	p := &plane{
		t: t, namespace: env.NewNamespace(t), system: env.NewNamespace(t), depot: newDepot(t), events: &eventLog{}, wire: &wire{}, rounds: &roundCount{},
		others: others,
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, sourcev1.AddToScheme, modulesv1.AddToScheme} {
		check(t, add(scheme))
	}
	var err error
	p.client, err = client.New(env.Config, client.Options{Scheme: scheme})
	check(t, err)
	p.give(deployer, "cluster-admin")
	p.start(scheme, adjust)
	return p
}

// start runs the controllers until the test ends.
func (p *plane) start(scheme *runtime.Scheme, adjust func(*installation.Options)) {
	t := p.t
	t.Helper()
	api := rest.CopyConfig(env.Config)
	api.Wrap(p.wire.wrap)
	api.QPS = -1
	seen := map[string]cache.Config{}
	for _, namespace := range append(p.others, p.namespace, p.system) {
		seen[namespace] = cache.Config{}
	}
	mgr, err := ctrl.NewManager(api, ctrl.Options{
		Scheme:  scheme,
		Cache:   cache.Options{DefaultNamespaces: seen},
		Metrics: server.Options{BindAddress: "0"},
		// What is under way may take as long as it does.
		GracefulShutdownTimeout: new(time.Duration(-1)),
		// Every test has controllers of its own.
		Controller: config.Controller{SkipNameValidation: new(true)},
		Client:     client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ServiceAccount{}}}},
	})
	check(t, err)
	offered := offers.New(sight{mgr.GetClient(), p}, p.system)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	check(t, offered.IndexFields(ctx, mgr.GetFieldIndexer()))
	shared := controllers.Shared{Offers: offered, Shell: kernel.Shell{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: p.events, FieldOwner: "sluice",
		RequeueDependency: 5 * time.Second, Jitter: func(d time.Duration) time.Duration { return d },
		Clock: clock.RealClock{}, Durations: p.rounds, Workers: 4,
	}}
	p.clock = clocktesting.NewFakePassiveClock(time.Now())
	swept := shared
	swept.Clock = p.clock
	p.sweeper = controllers.NewSweeper(swept)
	options := p.newOptions(api, mgr, shared)
	if adjust != nil {
		adjust(&options)
	}
	backoff := func() *kernel.Backoff { return kernel.NewBackoff(100*time.Millisecond, time.Second) }
	check(t, controllers.SetupTemplate(mgr, shared, backoff()))
	check(t, installation.Setup(mgr, options, backoff()))
	check(t, ctrl.NewControllerManagedBy(mgr).Named("sources").For(&sourcev1.OCIRepository{}).
		Complete(reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			return ctrl.Result{}, p.depot.provide(ctx, mgr.GetClient(), req)
		})))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		check(t, <-done)
	})
}

// newOptions makes the engine and what belongs to it.
func (p *plane) newOptions(api *rest.Config, mgr ctrl.Manager, shared controllers.Shared) installation.Options {
	t := p.t
	t.Helper()
	connector, err := cluster.NewConnector(api, cluster.Options{})
	check(t, err)
	woken := wakes.New()
	watcher, err := watch.New(watch.Options{Connect: connector.Connect, Notify: woken.Notify})
	check(t, err)
	connections := transport.New(transport.Options{AllowLoopback: true})
	artifacts := fetch.New(connections, fetch.Options{Dir: t.TempDir(), Patience: time.Minute})
	inventories := records.New(mgr.GetClient(), mgr.GetAPIReader(), shared.FieldOwner)
	works, err := engine.New(engine.Parts{
		Connector: connector, Watcher: watcher, Cache: artifacts, Builder: build.New(build.Options{}), Records: inventories,
	}, engine.Options{})
	check(t, err)
	t.Cleanup(func() {
		watcher.Close()
		artifacts.Close()
		connections.Close()
	})
	return installation.Options{
		Shell: shared.Shell, Offers: shared.Offers,
		Engine: works, Records: inventories, Connector: connector, Cache: mgr.GetCache(), Wakes: woken,
	}
}

// give makes an account with a role in the namespace; without a role, it may do nothing.
func (p *plane) give(account, role string) {
	p.t.Helper()
	p.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: account}})
	if role == "" {
		return
	}
	p.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: p.namespace, Name: account}},
	})
}

func (p *plane) create(obj client.Object) {
	p.t.Helper()
	check(p.t, p.client.Create(p.t.Context(), obj))
}

// release publishes a release of module foo with a ConfigMap that says its version, and files of its own.
func (p *plane) release(version, channel string, files ...string) *modulesv1.ModuleTemplate {
	p.t.Helper()
	content := map[string]string{"settings.yaml": configMap("settings", version)}
	for i, file := range files {
		content[fmt.Sprintf("more-%d.yaml", i)] = file
	}
	name := "foo-" + version
	if channel != "" {
		name += "-" + channel
	}
	template := &modulesv1.ModuleTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name},
		Spec: modulesv1.ModuleTemplateSpec{
			ModuleName: "foo", Version: version, Channel: channel,
			Artifact: modulesv1.TemplateArtifact{OCI: &modulesv1.OCIArtifact{
				Repository: "oci://registry.example/foo", Digest: p.depot.publish(p.t, content),
			}},
		},
	}
	p.create(template)
	return template
}

func configMap(name, version string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  version: %q\n", name, version)
}

// install makes the installation foo.
func (p *plane) install(adjust func(*modulesv1.ModuleInstallationSpec)) {
	p.t.Helper()
	obj := &modulesv1.ModuleInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "foo"},
		Spec: modulesv1.ModuleInstallationSpec{
			Module: modulesv1.ModuleRequest{Name: "foo"}, ServiceAccountName: deployer,
			RetryInterval: &metav1.Duration{Duration: time.Second},
		},
	}
	adjust(&obj.Spec)
	p.create(obj)
}

func (p *plane) get() *modulesv1.ModuleInstallation {
	p.t.Helper()
	obj := &modulesv1.ModuleInstallation{}
	check(p.t, p.client.Get(p.t.Context(), client.ObjectKey{Namespace: p.namespace, Name: "foo"}, obj))
	return obj
}

func (p *plane) inventory() *modulesv1.Inventory {
	p.t.Helper()
	obj := &modulesv1.Inventory{}
	check(p.t, p.client.Get(p.t.Context(), client.ObjectKey{Namespace: p.namespace, Name: "foo"}, obj))
	return obj
}

// edit changes the installation, as somebody else would.
func (p *plane) edit(change func(*modulesv1.ModuleInstallation)) {
	p.t.Helper()
	obj := p.get()
	before := obj.DeepCopy()
	change(obj)
	check(p.t, p.client.Patch(p.t.Context(), obj, client.MergeFrom(before)))
}

// until waits for the installation to be as told.
func (p *plane) until(what string, holds func(*modulesv1.ModuleInstallation) bool) *modulesv1.ModuleInstallation {
	p.t.Helper()
	var obj *modulesv1.ModuleInstallation
	testenv.Eventually(p.t, what, func(context.Context) (bool, string) {
		obj = p.get()
		return holds(obj), summary(obj)
	})
	return obj
}

// installed says that the version is installed and the installation ready.
func installed(version string) func(*modulesv1.ModuleInstallation) bool {
	return func(obj *modulesv1.ModuleInstallation) bool {
		return conditions.IsReady(obj) && obj.Status.ObservedGeneration == obj.Generation &&
			obj.Status.Current != nil && obj.Status.Current.Version == version && conditions.IsTrue(obj, modulesv1.UpToDateCondition)
	}
}

// is says that a condition has the status and reason.
func is(condition string, status metav1.ConditionStatus, reason string) func(*modulesv1.ModuleInstallation) bool {
	return func(obj *modulesv1.ModuleInstallation) bool {
		found := conditions.Get(obj, condition)
		return found != nil && found.Status == status && found.Reason == reason && found.ObservedGeneration == obj.Generation
	}
}

// summary is what a failed test shows.
func summary(obj *modulesv1.ModuleInstallation) string {
	var text strings.Builder
	for _, c := range obj.Status.Conditions {
		fmt.Fprintf(&text, "\n  %s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
	fmt.Fprintf(&text, "\n  pending %+v", obj.Status.Pending)
	return text.String()
}

// version is what a ConfigMap in the namespace says; empty when it is not there.
func (p *plane) version(name string) string {
	p.t.Helper()
	found := &corev1.ConfigMap{}
	err := p.client.Get(p.t.Context(), client.ObjectKey{Namespace: p.namespace, Name: name}, found)
	check(p.t, client.IgnoreNotFound(err))
	return found.Data["version"]
}

func (p *plane) wantVersion(name, want string) {
	p.t.Helper()
	if got := p.version(name); got != want {
		p.t.Errorf("ConfigMap %s has version %q, want %q", name, got, want)
	}
}

// roundCount counts the rounds of installations.
type roundCount struct{ atomic.Int64 }

// Observe implements kernel.Durations.
func (c *roundCount) Observe(obj client.Object, _ time.Duration) {
	if _, ok := obj.(*modulesv1.ModuleInstallation); ok {
		c.Add(1)
	}
}

// Forget implements kernel.Durations.
func (*roundCount) Forget(client.Object) {}

// more waits for so many more rounds.
func (p *plane) more(rounds int64) {
	p.t.Helper()
	want := p.rounds.Load() + rounds
	testenv.Eventually(p.t, "rounds", func(context.Context) (bool, string) {
		return p.rounds.Load() >= want, fmt.Sprint(p.rounds.Load())
	})
}

// rests waits until so many rounds in a row make no request, and gives how many requests were made until then. The news
// of an installation's own changes may bring some at first, and not for ever: most is how often that is looked at.
func (p *plane) rests(quiet, most int) (asked int) {
	p.t.Helper()
	all := func(request) bool { return true }
	var news []request
	for range most {
		asked = len(p.wire.matching(all))
		p.more(int64(quiet))
		if news = p.wire.matching(all)[asked:]; len(news) == 0 {
			return asked
		}
	}
	p.t.Fatalf("rounds with nothing to do made requests: %+v", news)
	return asked
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// giveEverywhere lets the account do everything in every namespace.
func (p *plane) giveEverywhere(account string) {
	p.t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: p.namespace + "-" + account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: p.namespace, Name: account}},
	}
	p.create(binding)
	p.t.Cleanup(func() { check(p.t, p.client.Delete(context.WithoutCancel(p.t.Context()), binding)) })
}

// column is what kubectl get prints of the installation in a column.
func (p *plane) column(name string) string {
	p.t.Helper()
	tables, err := rest.RESTClientFor(&rest.Config{
		Host: env.Config.Host, TLSClientConfig: env.Config.TLSClientConfig, BearerToken: env.Config.BearerToken, APIPath: "/apis",
		ContentConfig: rest.ContentConfig{GroupVersion: &modulesv1.GroupVersion, NegotiatedSerializer: clientgoscheme.Codecs.WithoutConversion()},
	})
	check(p.t, err)
	raw, err := tables.Get().Namespace(p.namespace).Resource("moduleinstallations").Name("foo").
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").DoRaw(p.t.Context())
	check(p.t, err)
	var table metav1.Table
	check(p.t, json.Unmarshal(raw, &table))
	for i, column := range table.ColumnDefinitions {
		if column.Name == name && len(table.Rows) == 1 {
			text, _ := table.Rows[0].Cells[i].(string)
			return text
		}
	}
	p.t.Fatalf("no column %s of one object in %s", name, raw)
	return ""
}
