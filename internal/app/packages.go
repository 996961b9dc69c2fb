package app

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	controllers "sluice.dev/sluice/controllers/packages"
	"sluice.dev/sluice/controllers/packages/lookups"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/forge"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/schema"
)

// plansPerFetch is how many variants are looked at for each repository that is worked on: most looks compare what is in
// memory.
const plansPerFetch = 4

// setupPackagePlane adds the controllers of repositories, variants and revisions of packages.
func setupPackagePlane(ctx context.Context, mgr ctrl.Manager, options Options, p parts) (func() error, error) {
	connector, err := cluster.NewConnector(mgr.GetConfig(), cluster.Options{
		Observe: func(verb string) { p.metrics.calls.WithLabelValues(verb).Inc() },
	})
	if err != nil {
		return nil, fmt.Errorf("connect as the variants: %w", err)
	}
	limits := archive.Limits{
		MaxBytes: options.Limits.ArchiveBytes, MaxFiles: options.Limits.ArchiveFiles, MaxDepth: options.Limits.ArchiveDepth,
	}
	schemas, err := newSchemas(mgr.GetConfig())
	if err != nil {
		return nil, err
	}
	plane := controllers.NewPlane()
	custom, err := newFunctions(mgr, options, p, plane) //nolint:contextcheck // What it keeps outlives what asks for it.
	if err != nil {
		return nil, err
	}
	found := lookups.New(connector, plane.WakeVariant, ctrl.Log.WithName("packages"))
	targets := lookups.NewTargets(connector, plane.WakeSet, ctrl.Log.WithName("packages"))
	gates := lookups.New(connector, plane.WakeSet, ctrl.Log.WithName("packages"))
	previews := lookups.New(connector, plane.WakeSet, ctrl.Log.WithName("packages"))
	if err := watchTargetFields(mgr, options, p.metrics, targets.Allow); err != nil {
		return nil, err
	}
	shared := controllers.Shared{
		Shell:       newShell(mgr, options, p, modulesOwner, plansPerFetch),
		Plane:       plane,
		Depot:       pkgrepo.New(p.git, pkgrepo.Options{Clock: clock.RealClock{}}),
		Credentials: p.credentials,
		Renderer:    function.New(function.Options{Observe: p.metrics.packageRendered, Custom: custom.custom(), Schemas: schemas}),
		Lookups:     found,
		SetLookups:  targets,
		Gates:       gates,
		Previews:    previews,
		Slots:       fair.New(int64(options.Concurrent), 0),
		Memory:      p.memory.work,
		Files:       p.memory.files,

		Pipeline:   p.pipeline(options, limits),
		Artifact:   p.address.URL,
		Changed:    p.metrics.packageChanged,
		Compiled:   p.metrics.compiled.Inc,
		Rebuild:    p.rebuild.wake[controllers.RevisionDir],
		RebuildSet: p.rebuild.wake[controllers.SetDir],

		Transport: p.connections,
		Asked:     p.metrics.forgeAsked,

		DefaultServiceAccount: options.DefaultServiceAccount,
	}
	if err := controllers.Setup(ctx, mgr, shared, options.backoff); err != nil {
		return nil, err
	}
	return func() error { //nolint:contextcheck // The program is about to end.
		found.Close()
		targets.Close()
		gates.Close()
		previews.Close()
		return custom.close()
	}, nil
}

// newSchemas returns the schemas of the API server that the program runs against.
func newSchemas(config *rest.Config) (*schema.Server, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("read schemas of the API server: %w", err)
	}
	host, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("read schemas of the API server: %w", err)
	}
	return schema.NewServer(client, host, clock.RealClock{}), nil
}

// packageRendered implements function.Options.Observe.
func (m *metrics) packageRendered(isKnown bool, err error) {
	if isKnown {
		m.packages.WithLabelValues("cached").Inc()
		return
	}
	m.packages.WithLabelValues(result(err)).Inc()
}

// forgeAsked implements packages.Shared.Asked.
func (m *metrics) forgeAsked(provider forge.Provider, result string) {
	m.forges.WithLabelValues(string(provider), result).Inc()
}

// packageChanged implements packages.Shared.Changed.
func (m *metrics) packageChanged(kind pkgrepo.Kind, err error) {
	m.changes.WithLabelValues(string(kind), result(err)).Inc()
}
