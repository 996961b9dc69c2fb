package app

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controllers "sluice.dev/sluice/controllers/source"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/engine/fetch"
	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/helm"
	"sluice.dev/sluice/internal/helm/chart"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/generator"
	gitsource "sluice.dev/sluice/internal/source/git"
	chartsource "sluice.dev/sluice/internal/source/helmchart"
	helmsource "sluice.dev/sluice/internal/source/helmrepository"
	ocisource "sluice.dev/sluice/internal/source/oci"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/storage/local"
)

const (
	// probesPerFetch is how many objects are looked at for each that is fetched. A probe is a small request, but it
	// holds its worker for as long as upstream takes to answer.
	probesPerFetch = 10
	// responseTimeout and stallTimeout end what spec.timeout, if it is longer than these, would wait for in vain.
	responseTimeout = 5 * time.Minute
	stallTimeout    = 2 * time.Minute
)

// parts are what the planes share.
type parts struct {
	store   *local.Store
	address controllers.Address
	sink    *event.Sink
	metrics *metrics
	rebuild *rebuildQueue
	memory  budgets
	// connections go to upstreams, git speaks to servers through them, and credentials are for both.
	connections *transport.Factory
	git         *git.Client
	credentials auth.Secrets
}

// withUpstreams adds what the planes that speak to upstreams share.
func (p parts) withUpstreams(reader client.Client, options Options) (parts, error) {
	var err error
	if p.connections, err = newTransport(options); err != nil {
		return p, err
	}
	p.credentials = newCredentials(reader, p.connections, options)
	p.git, err = newGitClient(p.connections, options, p.metrics)
	return p, err
}

// setupSources adds the controllers of the source plane to the manager.
func setupSources(ctx context.Context, mgr ctrl.Manager, options Options, p parts) (func() error, error) {
	limits := archive.Limits{
		MaxBytes: options.Limits.ArchiveBytes, MaxFiles: options.Limits.ArchiveFiles, MaxDepth: options.Limits.ArchiveDepth,
	}
	artifacts := controllers.Artifacts{Reader: mgr.GetClient(), Store: p.store}
	opener := gitsource.NewOpener(gitsource.Options{
		Client:      p.git,
		Credentials: p.credentials,
		Artifacts:   controllers.Includes{Artifacts: artifacts},
		Limits:      limits,
	})
	shared := func() controllers.Shared { return newShared(mgr, options, p, limits) }
	if err := controllers.SetupGitRepository(ctx, mgr, shared(), opener, p.rebuild.wake[controllers.GitRepositoryDir]); err != nil {
		return nil, fmt.Errorf("set up the GitRepository controller: %w", err)
	}
	registries, roots, err := newRegistries(options, p)
	if err != nil {
		return nil, err
	}
	trusted := newTrust(options, p, roots)
	images := ocisource.NewOpener(ocisource.Options{Client: registries, Credentials: p.credentials, Trust: trusted, Limits: limits})
	if err := controllers.SetupOCIRepository(mgr, shared(), images, p.rebuild.wake[controllers.OCIRepositoryDir]); err != nil {
		return nil, fmt.Errorf("set up the OCIRepository controller: %w", err)
	}
	if err := controllers.SetupBucket(mgr, shared(), newBucketOpener(options, limits, p), p.rebuild.wake[controllers.BucketDir]); err != nil {
		return nil, fmt.Errorf("set up the Bucket controller: %w", err)
	}
	files := helm.NewClient(p.connections, clock.RealClock{}, func(bytes int64) {
		p.metrics.received.WithLabelValues("helm").Add(float64(bytes))
	})
	repositories := helmsource.NewOpener(helmsource.Options{
		Client:        files,
		Credentials:   p.credentials,
		Store:         p.store,
		MaxIndexBytes: options.Limits.HelmIndexBytes,
	})
	if err := controllers.SetupHelmRepository(mgr, shared(), repositories, p.rebuild.wake[controllers.HelmRepositoryDir]); err != nil {
		return nil, fmt.Errorf("set up the HelmRepository controller: %w", err)
	}
	charts := chartsource.NewOpener(chartsource.Options{
		Artifacts: artifacts, Credentials: p.credentials, Store: p.store, Files: files, Registry: registries, Trust: trusted,
		MaxIndexBytes: options.Limits.HelmIndexBytes, Archive: limits, RevisionByContent: options.HelmChartRevisionByContent,
		Limits: chart.Limits{MaxPackage: options.Limits.HelmChartBytes, MaxFile: options.Limits.HelmFileBytes},
	})
	if err := controllers.SetupHelmChart(ctx, mgr, shared(), charts, p.rebuild.wake[controllers.HelmChartDir]); err != nil {
		return nil, fmt.Errorf("set up the HelmChart controller: %w", err)
	}
	if !options.Generators {
		return func() error { return nil }, nil
	}
	return setupGenerators(ctx, mgr, options, p, artifacts, limits)
}

// setupGenerators adds the controller of what is made of other artifacts. What others serve is kept for a while.
func setupGenerators(ctx context.Context, mgr ctrl.Manager, options Options, p parts, artifacts controllers.Artifacts, limits archive.Limits) (func() error, error) {
	shared := newShared(mgr, options, p, limits)
	downloads := fetch.New(p.connections, fetch.Options{MaxBytes: options.Limits.CacheBytes, MaxDownload: options.Limits.ArtifactBytes, Limits: limits})
	maker := generator.NewMaker(generator.Options{
		Artifacts: artifacts, Downloads: downloads, Pipeline: shared.Pipeline, Limits: limits, CrossNamespace: !options.NoCrossNamespaceRefs,
	})
	if err := controllers.SetupArtifactGenerator(ctx, mgr, shared, maker, p.rebuild.wake[generator.Dir]); err != nil {
		return nil, fmt.Errorf("set up the ArtifactGenerator controller: %w", err)
	}
	return func() error {
		downloads.Close()
		return nil
	}, nil
}

// newTransport makes what all connections to upstreams go through.
func newTransport(options Options) (*transport.Factory, error) {
	denied, err := options.denied()
	if err != nil {
		return nil, err
	}
	return transport.New(transport.Options{
		DeniedPrefixes: denied,
		AllowLoopback:  options.EgressAllowLoopback,
		// A large repository may keep its server counting for a while; spec.timeout decides how long that may take.
		ResponseHeaderTimeout: responseTimeout,
		StallTimeout:          stallTimeout,
	}), nil
}

func newGitClient(connections *transport.Factory, options Options, m *metrics) (*git.Client, error) {
	client, err := git.New(git.Options{
		Transport:         connections,
		MaxPackBytes:      options.Limits.GitPackBytes,
		MaxObjectBytes:    options.Limits.GitObjectBytes,
		MaxUnpackedBytes:  options.Limits.GitUnpackedBytes,
		MaxObjects:        options.Limits.GitObjects,
		MaxRefs:           options.Limits.GitRefs,
		MaxTreeDepth:      options.Limits.ArchiveDepth,
		MaxFiles:          options.Limits.ArchiveFiles,
		KexAlgorithms:     options.KexAlgorithms,
		HostKeyAlgorithms: options.HostKeyAlgorithms,
		CacheDir:          options.gitCachePath(),
		MaxCacheBytes:     options.GitCacheBytes,
		CacheFailed: func(err error) {
			ctrl.Log.WithName("git").Error(err, "cannot use the cache", "path", options.gitCachePath())
		},
		Fetched: func(how git.How) { m.commits.WithLabelValues(string(how)).Inc() },
		Observe: func(bytes int64) { m.received.WithLabelValues("git").Add(float64(bytes)) },
	})
	if err != nil {
		return nil, fmt.Errorf("make the git client: %w", err)
	}
	return client, nil
}

// newShared makes what the controllers of a kind work with. Each kind has its own slots and its own delays.
func newShared(mgr ctrl.Manager, options Options, p parts, limits archive.Limits) controllers.Shared {
	return controllers.Shared{
		Shell:    newShell(mgr, options, p, controllerName, probesPerFetch),
		Pipeline: p.pipeline(options, limits),
		Address:  p.address,
		Backoff:  options.backoff(),
	}
}

// pipeline makes the road to artifacts for a kind.
func (p parts) pipeline(options Options, limits archive.Limits) *source.Pipeline {
	return &source.Pipeline{
		Store: p.store, Limits: limits, MaxArtifactBytes: options.Limits.ArtifactBytes, Clock: clock.RealClock{}, Observer: p.metrics,
		Slots: fair.New(int64(options.Concurrent), 0), Memory: p.memory.work, Files: p.memory.files,
	}
}

// newShell makes what the controllers of all kinds work with. Each kind looks at so many objects for each that is fetched.
func newShell(mgr ctrl.Manager, options Options, p parts, owner string, perFetch int) kernel.Shell {
	return kernel.Shell{
		Client:            mgr.GetClient(),
		Reader:            mgr.GetAPIReader(),
		Events:            p.sink,
		FieldOwner:        owner,
		RequeueDependency: options.RequeueDependency,
		Jitter:            jittered(options.Jitter.Percentage),
		Clock:             clock.RealClock{},
		Durations:         p.metrics,
		MaxTimeout:        options.MaxTimeout,
		Workers:           options.Concurrent * perFetch,
	}
}

// backoff makes the delays of one kind.
func (o *Options) backoff() *kernel.Backoff {
	return kernel.NewBackoff(o.RateLimiter.MinRetryDelay, o.RateLimiter.MaxRetryDelay)
}

// jittered varies a duration by up to the percentage, either way.
func jittered(percentage uint8) func(time.Duration) time.Duration {
	return func(d time.Duration) time.Duration {
		share := float64(percentage) / 100 * (2*rand.Float64() - 1) //nolint:gosec // It spreads load; nobody gains by guessing it.
		return time.Duration(float64(d) * (1 + share))
	}
}
