package modules_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

const channelsValid = modulesv1.ChannelsValidCondition

func (p *releases) moduleWith(spec modulesv1.ModuleSpec) *modulesv1.Module {
	return &modulesv1.Module{ObjectMeta: metav1.ObjectMeta{Namespace: p.system, Name: "foo"}, Spec: spec}
}

func TestAModuleSaysWhereItsChannelsLead(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	v1, v2 := p.release("foo-1", "1.0.0", "", '1'), p.release("foo-2", "2.0.0", "", '2')
	claim := p.release("foo-edge", "3.0.0-rc.1", "edge", '3')
	v2.Spec.Support = &modulesv1.TemplateSupport{Until: p.clock.Now().UTC().AddDate(0, 0, -2).Format(time.DateOnly)}
	module := p.moduleWith(modulesv1.ModuleSpec{DefaultChannel: "regular", Channels: []modulesv1.Channel{
		{Name: "regular", Version: "1.0.0", Message: "for everyone"}, {Name: "fast", Version: "2.0.0", Suspended: true, Message: "an incident"},
	}})
	p.create(v1, v2, claim, module)
	for _, target := range []*modulesv1.ModuleTemplate{v1, v2, claim} {
		p.fetched(p.source(target), nil)
	}
	until(p, module, "every channel is ready", func(m *modulesv1.Module) bool {
		return len(m.Status.Channels) == 3 && m.Status.Channels[0].Ready && m.Status.Channels[2].Ready && m.Status.Channels[1].Template != ""
	})
	want := modulesv1.ModuleStatus{
		Channels: []modulesv1.ChannelStatus{
			{Name: "edge", Version: "3.0.0-rc.1", Template: "foo-edge", Digest: digestOf('3'), Ready: true},
			{Name: "fast", Version: "2.0.0", Template: "foo-2", Digest: digestOf('2'), Reason: "ChannelSuspended", Message: "an incident"},
			{Name: "regular", Version: "1.0.0", Template: "foo-1", Digest: digestOf('1'), Ready: true, Message: "for everyone"},
		},
		Latest: &modulesv1.ReleaseName{Version: "1.0.0", Template: "foo-1"},
		Releases: []modulesv1.ReleaseStatus{
			{ReleaseName: modulesv1.ReleaseName{Version: "3.0.0-rc.1", Template: "foo-edge"}, State: "Supported", Ready: true, Channels: []string{"edge"}},
			{ReleaseName: modulesv1.ReleaseName{Version: "2.0.0", Template: "foo-2"}, State: "Deprecated", Ready: true, Channels: []string{"fast"}},
			{ReleaseName: modulesv1.ReleaseName{Version: "1.0.0", Template: "foo-1"}, State: "Supported", Ready: true, Channels: []string{"regular"}},
		},
	}
	got := modulesv1.ModuleStatus{Channels: module.Status.Channels, Latest: module.Status.Latest, Releases: module.Status.Releases}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if condition(module, channelsValid) != "True Succeeded" || condition(module, ready) != "True Succeeded" || len(module.Finalizers) != 0 {
		t.Errorf("%+v with finalizers %v", module.Status.Conditions, module.Finalizers)
	}
}

func TestABrokenPointerShowsOnTheModule(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	template := p.release("foo-1", "1.0.0", "", '1')
	module := p.moduleWith(modulesv1.ModuleSpec{DefaultChannel: "stable", Channels: []modulesv1.Channel{{Name: "regular", Version: "1.1.0"}}})
	p.create(template, module)
	until(p, module, "the pointer is broken", func(m *modulesv1.Module) bool { return condition(m, channelsValid) == "False ChannelsBroken" })
	if condition(module, ready) != "False ChannelsBroken" || condition(module, "Stalled") != "" || condition(module, "Reconciling") == "" {
		t.Errorf("it waits for releases: %+v", module.Status.Conditions)
	}
	if len(module.Status.Channels) != 1 || module.Status.Channels[0].Reason != "ChannelTargetMissing" || module.Status.Channels[0].Ready {
		t.Errorf("%+v", module.Status.Channels)
	}

	p.edit(module, func() { module.Spec.Channels[0].Version = "1.0.0" })
	until(p, module, "the default is broken still", func(m *modulesv1.Module) bool {
		return condition(m, channelsValid) == "False ChannelsBroken" && m.Status.Channels[0].Reason != "ChannelTargetMissing"
	})
	p.edit(module, func() { module.Spec.DefaultChannel = "regular" })
	until(p, module, "every channel leads somewhere", func(m *modulesv1.Module) bool {
		return condition(m, channelsValid) == "True Succeeded" && condition(m, "Reconciling") == ""
	})
	if told := p.events.count("foo Warning ChannelsBroken"); told != 0 {
		t.Errorf("nothing had been whole, and %d warnings say that it broke", told)
	}
	p.failed(p.source(template))
	until(p, module, "the target cannot be had", func(m *modulesv1.Module) bool {
		return condition(m, channelsValid) == "False ChannelsBroken" && m.Status.Channels[0].Reason == "ReleaseNotReady"
	})
	testenv.Eventually(t, "what broke is told", func(context.Context) (bool, string) {
		told := p.events.count("foo Warning ChannelsBroken")
		return told == 1, strconv.Itoa(told)
	})
}

// TestAModuleMayComeBeforeItsTemplates: nothing has to be edited then, nor looked at by anybody.
func TestAModuleMayComeBeforeItsTemplates(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	module := p.moduleWith(modulesv1.ModuleSpec{Channels: []modulesv1.Channel{{Name: "regular", Version: "1.0.0"}}})
	p.create(module)
	var errs []string
	ctx := logr.NewContext(t.Context(), funcr.NewJSON(func(line string) {
		if !strings.Contains(line, `"level"`) {
			errs = append(errs, line)
		}
	}, funcr.Options{}))
	until(p, module, "it waits", func(m *modulesv1.Module) bool { return condition(m, ready) == "False ChannelsBroken" })
	result, err := p.module.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(module)})
	if err != nil || result.RequeueAfter == 0 || len(errs) > 0 || condition(module, "Stalled") != "" {
		t.Errorf("result %+v, error %v, logged %q, %+v", result, err, errs, module.Status.Conditions)
	}
	p.create(p.release("foo-1", "1.0.0", "", '1'))
	until(p, module, "the template heals it", func(m *modulesv1.Module) bool {
		return condition(m, ready) == "True Succeeded" && m.Status.ObservedGeneration == m.Generation
	})
}

func TestInstallationsAreCounted(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	module := p.moduleWith(modulesv1.ModuleSpec{})
	p.create(p.release("foo-regular", "1.0.0", "regular", '1'), module)
	resolved := func(by string) modulesv1.ModuleInstallationStatus {
		return modulesv1.ModuleInstallationStatus{ObservedGeneration: 1, Resolution: &modulesv1.Resolution{
			Module: "foo", Catalog: modulesv1.CatalogSystem, Namespace: p.system, SelectedBy: by,
		}}
	}
	elsewhere := resolved("channel/regular")
	elsewhere.Resolution.Namespace = p.tenant
	third := p.installation("third", resolved("version/1.0.0"))
	p.create(
		p.installation("first", resolved("channel/regular")), p.installation("second", resolved("channel/regular")), third,
		p.installation("of-another-catalogue", elsewhere), p.installation("unresolved", modulesv1.ModuleInstallationStatus{ObservedGeneration: 1}),
	)
	counted := func(all, following int32) func(*modulesv1.Module) bool {
		return func(m *modulesv1.Module) bool {
			return m.Status.Installations == all && len(m.Status.Channels) == 1 && m.Status.Channels[0].Installations == following
		}
	}
	until(p, module, "three are counted", counted(3, 2))
	p.edit(third, func() { third.Status.Resolution.SelectedBy = "channel/regular" })
	until(p, module, "three follow", counted(3, 3))
	if err := env.Client.Delete(t.Context(), third); err != nil {
		t.Fatal(err)
	}
	until(p, module, "two are left", counted(2, 2))
}

func TestASelectorThatCannotBeReadIsTold(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	module := p.moduleWith(modulesv1.ModuleSpec{Consumers: &modulesv1.Consumers{NamespaceSelector: metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near", Values: []string{"b"}}},
	}}})
	p.create(module, p.release("foo-1", "1.0.0", "", '1'))
	until(p, module, "the selector is told", func(m *modulesv1.Module) bool { return condition(m, "Stalled") == "True Failed" })
	p.decides("ConsumerNotAllowed")
}
