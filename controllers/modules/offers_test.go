package modules_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/catalog/published"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/tests/testenv"
)

// resolve is what an installation of the tenant's would get.
func (p *releases) resolve() catalog.Decision {
	p.t.Helper()
	index, err := p.offered.Index(p.t.Context(), p.tenant)
	if err != nil {
		p.t.Fatal(err)
	}
	return catalog.Resolve(catalog.Request{Namespace: p.tenant, Name: "foo"}, catalog.Installed{}, index, p.clock.Now())
}

// decides waits for the decision, as "version" or "reason".
func (p *releases) decides(want string) catalog.Decision {
	p.t.Helper()
	var decision catalog.Decision
	testenv.Eventually(p.t, "the decision is "+want, func(context.Context) (bool, string) {
		decision = p.resolve()
		got := ""
		if decision.Hold != nil {
			got = decision.Hold.Reason
		} else {
			got = decision.Target.Version
		}
		return got == want, got
	})
	return decision
}

func TestTheCatalogueFollowsTheObjects(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	p.decides("ModuleNotFound")
	template := p.release("foo-1", "1.0.0", "", '1')
	p.create(template)
	p.decides("1.0.0")
	p.create(p.release("foo-2", "2.0.0", "", '2'))
	p.decides("2.0.0")

	module := p.moduleWith(modulesv1.ModuleSpec{
		DefaultChannel: "regular", Channels: []modulesv1.Channel{{Name: "regular", Version: "1.0.0"}},
		Consumers: &modulesv1.Consumers{NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}},
	})
	p.create(module)
	p.decides("ConsumerNotAllowed")
	p.label("team", "a")
	p.decides("1.0.0")
	p.label("team", "b")
	p.decides("ConsumerNotAllowed")

	// A module of the tenant's own shadows the system's.
	own := p.release("foo-own", "0.1.0", "", '9')
	own.Namespace = p.tenant
	p.create(own)
	if decision := p.decides("0.1.0"); decision.Catalog != modulesv1.CatalogLocal {
		t.Errorf("taken from %s", decision.Catalog)
	}
}

func TestTheCatalogueIsKeptWhileNothingChanges(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	p.create(p.release("foo-1", "1.0.0", "", '1'))
	p.decides("1.0.0")
	look := func() *catalog.Contents {
		t.Helper()
		found, err := p.offered.Namespace(t.Context(), p.system)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	testenv.Eventually(t, "two looks see one value", func(context.Context) (bool, string) {
		first := look()
		return first == look(), "it was made anew"
	})
}

// TestAReleaseIsFoundByItsRecord: what is installed is had from its source, whatever its template says by now.
func TestAReleaseIsFoundByItsRecord(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	template := p.release("foo-1", "1.0.0", "", '1')
	template.Spec.Artifact.Path = "deploy"
	p.create(template, p.installation("app", p.wants("foo-1")))
	source := p.source(template)
	chosen := p.decides("1.0.0").Target
	if chosen == nil {
		t.Fatal("nothing is chosen")
	}
	found, record, err := p.offered.Release(t.Context(), p.system, *chosen)
	if err != nil {
		t.Fatal(err)
	}
	want := modulesv1.Release{
		Module: "foo", Version: "1.0.0", Namespace: p.system, Template: "foo-1", Content: digestOf('1') + "//deploy", Path: "deploy",
		Source: &modulesv1.SourceReference{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "OCIRepository", Name: source.Name},
	}
	if diff := cmp.Diff(want, record); diff != "" || found.Name != "foo-1" || record.Content != chosen.Digest {
		t.Errorf("-want +got:\n%s", diff)
	}
	testenv.Eventually(t, "the source is there, and has nothing", func(ctx context.Context) (bool, string) {
		_, err := p.offered.Artifact(ctx, &record)
		return failure.Of(err).Reason == modulesv1.ArtifactNotReadyReason, fmt.Sprint(err)
	})
	p.fetched(source, nil)
	testenv.Eventually(t, "the artifact is found", func(ctx context.Context) (bool, string) {
		artifact, err := p.offered.Artifact(ctx, &record)
		return err == nil && artifact.Digest == digestOf('f'), fmt.Sprint(err)
	})

	p.edit(template, func() { template.Spec.Version, template.Spec.Artifact.OCI.Digest = "2.0.0", digestOf('2') })
	testenv.Eventually(t, "the template moved", func(ctx context.Context) (bool, string) {
		_, _, err := p.offered.Release(ctx, p.system, *chosen)
		return errors.Is(err, published.ErrReleaseMoved), fmt.Sprint(err)
	})
	if artifact, err := p.offered.Artifact(t.Context(), &record); err != nil || artifact.Digest != digestOf('f') {
		t.Errorf("the old release cannot be had any more: %+v, %v", artifact, err)
	}
	other := record
	other.Content = digestOf('7')
	if _, err := p.offered.Artifact(t.Context(), &other); failure.Of(err).Reason != modulesv1.ArtifactNotReadyReason {
		t.Errorf("another release's artifact is given out: %v", err)
	}
	other.Source = &modulesv1.SourceReference{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "OCIRepository", Name: "gone"}
	if _, err := p.offered.Artifact(t.Context(), &other); failure.Of(err).Reason != modulesv1.SourceNotFoundReason {
		t.Errorf("a source that is gone: %v", err)
	}
}

func TestOnlyThoseWakeThatAChangeConcerns(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	asking := func(name string, module modulesv1.ModuleRequest) *modulesv1.ModuleInstallation {
		obj := p.installation(name, modulesv1.ModuleInstallationStatus{ObservedGeneration: 1})
		obj.Spec.Module = module
		return obj
	}
	local := asking("local", modulesv1.ModuleRequest{Name: "foo", Latest: true, Catalog: modulesv1.CatalogLocal})
	running := asking("running", modulesv1.ModuleRequest{Name: "foo", Version: "9.0.0"})
	running.Status.Current = &modulesv1.Release{Module: "foo", Namespace: p.system, Template: "foo-1"}
	p.create(
		asking("on-regular", modulesv1.ModuleRequest{Name: "foo", Channel: "regular"}),
		asking("on-fast", modulesv1.ModuleRequest{Name: "foo", Channel: "fast"}),
		asking("on-latest", modulesv1.ModuleRequest{Name: "foo", Latest: true}),
		asking("on-range", modulesv1.ModuleRequest{Name: "foo", Range: ">=1.0.0"}),
		asking("on-version", modulesv1.ModuleRequest{Name: "foo", Version: "1.0.0"}),
		asking("on-other", modulesv1.ModuleRequest{Name: "bar", Latest: true}),
		asking("on-template", modulesv1.ModuleRequest{TemplateRef: &modulesv1.LocalReference{Name: "foo-1"}}),
		local, running,
	)
	for name, tc := range map[string]struct {
		reason    string
		namespace string
		keys      []string
		want      string
	}{
		"Channel":   {"a channel that moves wakes those on it", p.system, catalog.WakesOf(pointing("1.0.0"), pointing("1.1.0")), "on-regular"},
		"Module":    {"whom the module admits concerns all that name it", p.system, []string{catalog.ModuleKey("foo")}, "on-fast on-latest on-range on-regular on-version running"},
		"OwnModule": {"a tenant's module may shadow the system's", p.tenant, []string{catalog.ModuleKey("foo")}, "local on-fast on-latest on-range on-regular on-version running"},
		"Template":  {"what is said of a release concerns those that run it", p.system, []string{catalog.TemplateKey("foo-1")}, "on-template running"},
		"Nothing":   {"no key wakes nobody", p.system, nil, ""},
		"Twice":     {"one that two keys wake is woken once", p.system, append(catalog.WakesOf(pointing("1.0.0"), pointing("1.1.0")), catalog.WakesOf(pointing("1.1.0"), pointing("1.2.0"))...), "on-regular"},
	} {
		testenv.Eventually(t, name+": "+tc.reason, func(ctx context.Context) (bool, string) {
			var names []string
			for name := range p.offered.Installations(ctx, tc.namespace, tc.keys) {
				names = append(names, name.Name)
			}
			slices.Sort(names)
			got := strings.Join(names, " ")
			return got == tc.want, got
		})
	}
}

// TestLabelsOfANamespaceWakeItsInstallations: the news comes from every namespace, and the cache has only some of them.
func TestLabelsOfANamespaceWakeItsInstallations(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	p.create(p.installation("app", modulesv1.ModuleInstallationStatus{ObservedGeneration: 1}))
	testenv.Eventually(t, "the cache has the installation", func(ctx context.Context) (bool, string) {
		err := p.cached.Get(ctx, client.ObjectKey{Namespace: p.tenant, Name: "app"}, &modulesv1.ModuleInstallation{})
		return err == nil, "not there"
	})
	for name, tc := range map[string]struct {
		reason    string
		namespace string
		want      int
	}{
		"Watched": {reason: "its installation is woken", namespace: p.tenant, want: 1},
		"Other":   {reason: "a namespace that is not watched has none, which is no error", namespace: env.NewNamespace(t), want: 0},
	} {
		var errs []string
		ctx := logr.NewContext(t.Context(), funcr.New(func(_, args string) { errs = append(errs, args) }, funcr.Options{}))
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		p.offered.OnNamespace().Update(ctx, event.UpdateEvent{
			ObjectOld: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: tc.namespace}},
			ObjectNew: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: tc.namespace, Labels: map[string]string{"a": "b"}}},
		}, queue)
		if queue.Len() != tc.want || len(errs) > 0 {
			t.Errorf("%s: %s: %d requests, errors %q", name, tc.reason, queue.Len(), errs)
		}
		queue.ShutDown()
	}
}

// pointing is a module whose regular channel points to the version.
func pointing(version string) *catalog.Module {
	return &catalog.Module{Name: "foo", Channels: []modulesv1.Channel{{Name: "regular", Version: version}}}
}
