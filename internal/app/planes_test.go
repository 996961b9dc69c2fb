package app

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
)

const (
	sourceGroup  = "source.toolkit.fluxcd.io/v1"
	modulesGroup = "modules.sluice.dev/v1alpha1"
	packageGroup = "packages.sluice.dev/v1alpha1"
)

// serving are the kinds that an API server serves, by group and version.
type serving map[string][]string

func (s serving) ServerResourcesForGroupVersion(group string) (*metav1.APIResourceList, error) {
	kinds, found := s[group]
	if !found {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, group)
	}
	list := &metav1.APIResourceList{}
	for _, kind := range kinds {
		list.APIResources = append(list.APIResources, metav1.APIResource{Kind: kind})
	}
	return list, nil
}

func TestWhatIsServedRuns(t *testing.T) {
	t.Parallel()
	sources := []string{"GitRepository", "OCIRepository", "Bucket", "HelmRepository", "HelmChart"}
	modules := []string{"ModuleTemplate", "Module", "ModuleInstallation", "Inventory"}
	packages := []string{"Repository", "PackageVariant", "PackageVariantSet", "PackageRevision"}
	for name, tc := range map[string]struct {
		reason string
		served serving
		named  []string
		want   []string
		says   string
	}{
		"All": {
			"all are installed",
			serving{sourceGroup: sources, modulesGroup: modules, packageGroup: packages},
			nil,
			[]string{"source", "modules", "packages"},
			"",
		},
		"Modules":    {"packages are not installed", serving{sourceGroup: sources, modulesGroup: modules}, nil, []string{"source", "modules"}, ""},
		"Packages":   {"modules are not installed", serving{sourceGroup: sources, packageGroup: packages}, nil, []string{"source", "packages"}, ""},
		"NoGit":      {"a Repository refers to a source", serving{packageGroup: packages}, nil, nil, sourceGroup + " GitRepository"},
		"HalfMade":   {"an upgrade left out a CRD", serving{sourceGroup: sources, packageGroup: packages[:2]}, nil, nil, packageGroup + " PackageRevision"},
		"FluxsAlone": {"this program takes the place of Flux's", serving{sourceGroup: sources}, nil, []string{"source"}, ""},
		"None":       {"nothing is installed", serving{}, nil, nil, "no plane"},
		"Half":       {"an upgrade left out a CRD", serving{sourceGroup: sources, modulesGroup: modules[:3]}, nil, nil, modulesGroup + " Inventory"},
		"NoSources":  {"releases are fetched as sources", serving{modulesGroup: modules}, nil, nil, sourceGroup + " GitRepository"},
		"Named":      {"more is served than is wanted", serving{sourceGroup: sources, modulesGroup: modules}, []string{"modules"}, []string{"modules"}, ""},
		"NamedInVain": {
			"what is named is wanted",
			serving{sourceGroup: sources},
			[]string{"source", "modules"},
			nil,
			modulesGroup + " ModuleTemplate, " + modulesGroup + " Module, ",
		},
		"NamedWithoutSources": {"releases are fetched as sources", serving{modulesGroup: modules}, []string{"modules"}, nil, sourceGroup + " GitRepository"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := apiServer{tc.served}.planes(tc.named)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if told := err != nil; told != (tc.says != "") || told && (!strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("%s: got %v, want one line with %q", tc.reason, err, tc.says)
			}
		})
	}
}

// TestGeneratorsAreServedWithBothCRDs: the source plane does without.
func TestGeneratorsAreServedWithBothCRDs(t *testing.T) {
	t.Parallel()
	const extensions = "source.extensions.fluxcd.io/v1beta1"
	own, shown := []string{"ArtifactGenerator"}, []string{"GitRepository", "ExternalArtifact"}
	for name, tc := range map[string]struct {
		served  serving
		running []string
		want    bool
	}{
		"Both":           {serving{extensions: own, sourceGroup: shown}, []string{"source"}, true},
		"NothingToShow":  {serving{extensions: own, sourceGroup: shown[:1]}, []string{"source"}, false},
		"NotInstalled":   {serving{sourceGroup: shown}, []string{"source"}, false},
		"NoSourcesHere":  {serving{extensions: own, sourceGroup: shown}, []string{"modules"}, false},
		"NothingAtAll":   {serving{}, []string{"source"}, false},
		"OfAnotherGroup": {serving{extensions: {"Other"}, sourceGroup: shown}, []string{"source"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := (apiServer{tc.served}).generators(tc.running); err != nil || got != tc.want {
				t.Error(got, err)
			}
		})
	}
}

// TestGeneratorsThatComeLateEndTheProcess: where the planes are named, too.
func TestGeneratorsThatComeLateEndTheProcess(t *testing.T) {
	t.Parallel()
	there := serving{
		"source.extensions.fluxcd.io/v1beta1": {"ArtifactGenerator"},
		sourceGroup:                           {"GitRepository", "OCIRepository", "Bucket", "HelmRepository", "HelmChart", "ExternalArtifact"},
	}
	late := latecomers{server: apiServer{there}, named: []string{"source"}, running: []string{"source"}, clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	if !late.expects() {
		t.Error("nobody looks for them")
	}
	ended := make(chan error, 1)
	go func() { ended <- late.Start(t.Context()) }()
	clk, _ := late.clock.(*clocktesting.FakeClock)
	for !clk.HasWaiters() {
		time.Sleep(time.Millisecond)
	}
	clk.Step(lookInterval)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "ArtifactGenerators are served by now") {
		t.Errorf("ended with %v", err)
	}
	if late.generators = true; late.expects() {
		t.Error("somebody looks for what runs")
	}
}

// TestAPlaneThatComesLateEndsTheProcess: kubectl makes the CRDs and the Deployment in one moment, and nothing says that
// the API server serves all kinds when the process asks.
func TestAPlaneThatComesLateEndsTheProcess(t *testing.T) {
	t.Parallel()
	both := serving{
		sourceGroup:  {"GitRepository", "OCIRepository", "Bucket", "HelmRepository", "HelmChart"},
		modulesGroup: {"ModuleTemplate", "Module", "ModuleInstallation", "Inventory"},
	}
	clk := clocktesting.NewFakeClock(time.Unix(0, 0))
	ended := make(chan error, 1)
	go func() {
		ended <- latecomers{server: apiServer{both}, running: []string{"source"}, clock: clk}.Start(t.Context())
	}()
	for !clk.HasWaiters() {
		time.Sleep(time.Millisecond)
	}
	clk.Step(lookInterval)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "source, modules are served") {
		t.Errorf("ended with %v", err)
	}
}
