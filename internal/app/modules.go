package app

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	controllers "sluice.dev/sluice/controllers/modules"
	"sluice.dev/sluice/controllers/modules/installation"
	"sluice.dev/sluice/controllers/modules/offers"
	"sluice.dev/sluice/controllers/modules/records"
	"sluice.dev/sluice/controllers/modules/wakes"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/build"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/fetch"
	"sluice.dev/sluice/internal/engine/watch"
	"sluice.dev/sluice/internal/transport"
)

// modulesOwner is the field manager of writes to module objects and to the sources that templates own.
const modulesOwner = "sluice"

// roundsPerFetch is how many installations are looked at for each that is fetched for a source: most rounds find nothing
// to do, or wait for the API server.
const roundsPerFetch = 4

// setupModulePlane adds the controllers of templates, modules and installations.
func setupModulePlane(ctx context.Context, mgr ctrl.Manager, options Options, p parts) (func() error, error) {
	offered := offers.New(mgr.GetClient(), options.SystemNamespace)
	if err := offered.IndexFields(ctx, mgr.GetFieldIndexer()); err != nil {
		return nil, fmt.Errorf("index the catalogue: %w", err)
	}
	shared := controllers.Shared{Shell: newShell(mgr, options, p, modulesOwner, roundsPerFetch), Offers: offered}
	backoff := options.backoff
	if err := controllers.SetupTemplate(mgr, shared, backoff()); err != nil {
		return nil, fmt.Errorf("set up the ModuleTemplate controller: %w", err)
	}
	if err := controllers.SetupModule(mgr, shared, backoff()); err != nil {
		return nil, fmt.Errorf("set up the Module controller: %w", err)
	}
	installations, stop, err := newInstallations(mgr, options, p)
	if err != nil {
		return nil, err
	}
	installations.Shell, installations.Offers = shared.Shell, shared.Offers
	if err := installation.Setup(mgr, installations, backoff()); err != nil {
		return nil, err
	}
	return stop, nil
}

// newInstallations makes the engine and what belongs to it.
func newInstallations(mgr ctrl.Manager, options Options, p parts) (installation.Options, func() error, error) {
	none := installation.Options{}
	connector, err := cluster.NewConnector(mgr.GetConfig(), cluster.Options{
		Observe: func(verb string) { p.metrics.calls.WithLabelValues(verb).Inc() },
	})
	if err != nil {
		return none, nil, fmt.Errorf("connect as the installations: %w", err)
	}
	woken := wakes.New()
	watcher, err := watch.New(watch.Options{Connect: connector.Connect, Notify: woken.Notify, Log: ctrl.Log.WithName("watch")})
	if err != nil {
		return none, nil, fmt.Errorf("watch the installations: %w", err)
	}
	// Artifacts come from the cluster itself, whose addresses --egress-deny may name.
	connections := transport.New(transport.Options{AllowLoopback: options.EgressAllowLoopback})
	artifacts := fetch.New(connections, fetch.Options{
		MaxBytes: options.Limits.CacheBytes, MaxDownload: options.Limits.ArtifactBytes, Observer: modulesObserver{p.metrics},
		Limits: archive.Limits{
			MaxBytes: options.Limits.ArchiveBytes, MaxFiles: options.Limits.ArchiveFiles, MaxDepth: options.Limits.ArchiveDepth,
		},
	})
	inventories := records.New(mgr.GetClient(), mgr.GetAPIReader(), modulesOwner, options.namespaces()...)
	works, err := engine.New(engine.Parts{
		Connector: connector, Watcher: watcher, Cache: artifacts, Records: inventories,
		Builder: build.New(build.Options{Workers: options.BuildWorkers, Memory: options.Limits.BuildBytes}),
	}, engine.Options{Observer: modulesObserver{p.metrics}, RenderBytes: p.memory.renders})
	if err != nil {
		return none, nil, fmt.Errorf("make the engine: %w", err)
	}
	stop := func() error {
		watcher.Close()
		artifacts.Close()
		connections.Close()
		return nil
	}
	return installation.Options{
		Engine: works, Records: inventories, Connector: connector, Cache: mgr.GetCache(), Wakes: woken,
		DefaultServiceAccount: options.DefaultServiceAccount, AllowOwnIdentity: options.ModulesOwnIdentity,
	}, stop, nil
}
