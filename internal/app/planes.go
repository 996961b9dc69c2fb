package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	extensionsv1 "sluice.dev/sluice/api/extensions/v1beta1"
	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// The planes: groups of controllers that can run without the others.
const (
	planeSource   = "source"
	planeModules  = "modules"
	planePackages = "packages"
)

// planes are the groups of controllers that exist.
var planes = []string{planeSource, planeModules, planePackages} //nolint:gochecknoglobals // A constant list.

// kindsOf are the kinds that a plane is about.
func kindsOf(plane string) (schema.GroupVersion, []string) {
	switch plane {
	case planeModules:
		return modulesv1.GroupVersion, []string{
			modulesv1.ModuleTemplateKind, modulesv1.ModuleKind, modulesv1.ModuleInstallationKind, modulesv1.InventoryKind,
		}
	case planePackages:
		return packagesv1.GroupVersion, []string{
			packagesv1.RepositoryKind, packagesv1.PackageVariantKind, packagesv1.PackageVariantSetKind, packagesv1.PackageRevisionKind,
		}
	}
	return sourcev1.GroupVersion, []string{sourcev1.GitRepositoryKind, sourcev1.OCIRepositoryKind, sourcev1.BucketKind, sourcev1.HelmRepositoryKind, sourcev1.HelmChartKind}
}

// choosePlanes settles which planes run, and returns what looks for more of them.
func choosePlanes(config *rest.Config, options *Options) ([]manager.Runnable, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for discovery: %w", err)
	}
	served, named := apiServer{client}, options.Controllers
	if options.Controllers, err = served.planes(named); err != nil {
		return nil, err
	}
	wanted := options.Generators
	if options.Generators, err = served.generators(options.Controllers); err != nil {
		return nil, err
	}
	options.Generators = options.Generators && wanted
	// What is served has to go with the other flags, as what is named has.
	if err := options.Validate(); err != nil {
		return nil, err
	}
	late := latecomers{server: served, named: named, running: options.Controllers, generators: options.Generators || !wanted, clock: clock.RealClock{}}
	if late.expects() {
		return []manager.Runnable{late}, nil
	}
	return nil, nil
}

// generators tells whether a process that runs the planes has ArtifactGenerators to work for. The source plane does without them.
func (s apiServer) generators(running []string) (bool, error) {
	if !slices.Contains(running, planeSource) {
		return false, nil
	}
	there, err := s.serves(extensionsv1.GroupVersion, extensionsv1.ArtifactGeneratorKind)
	if err != nil || !there {
		return false, err
	}
	return s.serves(sourcev1.GroupVersion, sourcev1.ExternalArtifactKind)
}

// apiServer tells what the API server serves.
type apiServer struct {
	discovery interface {
		ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
	}
}

// planes are those to run: the named ones or, where none is named, each that the cluster serves a kind of.
// The error names what a plane lacks.
func (s apiServer) planes(named []string) ([]string, error) {
	chosen, lacking := named, map[string][]string{}
	for _, plane := range planes {
		missing, some, err := s.lacks(plane)
		if err != nil {
			return nil, err
		}
		lacking[plane] = missing
		if len(named) == 0 && some {
			chosen = append(chosen, plane)
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New("--controllers: the API server serves the kinds of no plane; install the CRDs in config/crd")
	}
	for _, plane := range chosen {
		missing := lacking[plane]
		if plane != planeSource {
			// Releases are fetched as sources, by whichever controller works on these; a Repository refers to a source.
			missing = slices.Concat(missing, lacking[planeSource])
		}
		if len(missing) > 0 {
			return nil, fmt.Errorf("--controllers: %s needs kinds that the API server does not serve: %s; install the CRDs in config/crd, or name other planes",
				plane, strings.Join(missing, ", "))
		}
	}
	return chosen, nil
}

// lacks are the kinds of a plane that are not served, and whether some are.
func (s apiServer) lacks(plane string) (missing []string, some bool, err error) {
	group, kinds := kindsOf(plane)
	for _, kind := range kinds {
		served, err := s.serves(group, kind)
		if err != nil {
			return nil, false, err
		}
		if served {
			some = true
		} else {
			missing = append(missing, group.String()+" "+kind)
		}
	}
	return missing, some, nil
}

// serves tells whether there is a kind.
func (s apiServer) serves(group schema.GroupVersion, kind string) (bool, error) {
	served, err := s.discovery.ServerResourcesForGroupVersion(group.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask the API server for the kinds of %s: %w", group, err)
	}
	return slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind }), nil
}

// lookInterval is how often a process that runs what is served looks for more.
const lookInterval = time.Minute

// latecomers ends a process that runs what is served when more planes are, or ArtifactGenerators, so that it is started again with
// these: CRDs may be made in the same moment as the process, or long after it.
type latecomers struct {
	server         apiServer
	named, running []string
	generators     bool // run, or are not wanted
	clock          clock.WithTicker
}

// expects tells whether anything may be served later that would run.
func (l latecomers) expects() bool {
	return len(l.named) == 0 && len(l.running) < len(planes) || slices.Contains(l.running, planeSource) && !l.generators
}

// NeedLeaderElection is false: a standby is to run the same planes as the leader.
func (latecomers) NeedLeaderElection() bool { return false }

// Start looks until ctx ends.
func (l latecomers) Start(ctx context.Context) error {
	ticker := l.clock.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		// An API server that does not answer, or serves half a plane, has nothing to start again for.
		if served, err := l.server.planes(l.named); err == nil && len(served) > len(l.running) {
			return fmt.Errorf("the planes %s are served by now, and only %s run: start again to run all",
				strings.Join(served, ", "), strings.Join(l.running, ", "))
		}
		if served, err := l.server.generators(l.running); err == nil && served && !l.generators {
			return errors.New("ArtifactGenerators are served by now: start again to work for them")
		}
	}
}
