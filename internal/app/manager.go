package app

import (
	"fmt"
	"slices"

	"github.com/fluxcd/pkg/runtime/leaderelection"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	extensionsv1 "sluice.dev/sluice/api/extensions/v1beta1"
	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	controllers "sluice.dev/sluice/controllers/source"
)

// controllerName is Flux's: it is the field manager and names the lease, so that of the two controllers only
// one works on the same objects.
const controllerName = "source-controller"

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, sourcev1.AddToScheme, extensionsv1.AddToScheme, modulesv1.AddToScheme, packagesv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register types: %w", err)
		}
	}
	return scheme, nil
}

// newConfig finds the API server, and says how it is spoken to.
func newConfig(options Options) (*rest.Config, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	config.QPS, config.Burst = options.KubeQPS, options.KubeBurst
	config.UserAgent = controllerName
	// The API server warns about Flux's finalizer with each new object. Once is enough.
	config.WarningHandlerWithContext = ctrllog.NewKubeAPIWarningLogger(ctrllog.KubeAPIWarningLoggerOptions{Deduplicate: true})
	return config, nil
}

// newManager makes the manager, with its caches limited to what the options watch.
func newManager(config *rest.Config, options Options) (ctrl.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	selector, err := options.selector()
	if err != nil {
		return nil, err
	}
	watched := cache.Options{ByObject: map[client.Object]cache.ByObject{}}
	if options.Generators {
		// What is generated has the labels that its generator asks for, and those of a shard need not be among them.
		watched.ByObject[&extensionsv1.ArtifactGenerator{}] = cache.ByObject{Label: selector}
	}
	for _, kind := range controllers.Kinds() {
		watched.ByObject[kind.New()] = cache.ByObject{Label: selector}
	}
	if only := options.namespaces(); len(only) > 0 {
		watched.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range only {
			watched.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         watched,
		Metrics:                       server.Options{BindAddress: options.MetricsAddr},
		HealthProbeBindAddress:        options.HealthAddr,
		PprofBindAddress:              options.PprofAddr,
		GracefulShutdownTimeout:       &options.GracefulShutdown,
		LeaderElection:                options.LeaderElection.Enable,
		LeaderElectionReleaseOnCancel: options.LeaderElection.ReleaseOnCancel,
		LeaderElectionNamespace:       options.RuntimeNamespace,
		LeaderElectionID:              leaseName(options.WatchLabelSelector),
		LeaseDuration:                 &options.LeaderElection.LeaseDuration,
		RenewDeadline:                 &options.LeaderElection.RenewDeadline,
		RetryPeriod:                   &options.LeaderElection.RetryPeriod,
		// Secrets are read when they are needed: the process neither lists nor keeps them.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ServiceAccount{}}}},
		Logger: ctrl.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("add health check: %w", err)
	}
	return mgr, nil
}

// leaseName is Flux's name of the lease, which tells shards apart by their selector.
func leaseName(selector string) string {
	base := controllerName + "-leader-election"
	if selector == "" {
		return base
	}
	return leaderelection.GenerateID(base, selector)
}

// namespaces are those that are worked for; none means all of them.
func (o Options) namespaces() []string {
	switch {
	case o.WatchAllNamespaces:
		return nil
	case o.SystemNamespace == "" || o.SystemNamespace == o.RuntimeNamespace || !slices.Contains(o.Controllers, planeModules):
		return []string{o.RuntimeNamespace}
	}
	return []string{o.RuntimeNamespace, o.SystemNamespace}
}
