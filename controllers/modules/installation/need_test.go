package installation_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/controllers/modules/installation"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/tests/testenv"
)

// intruder does something right before the first round of the engine.
type intruder struct {
	installation.Rounds
	once sync.Once
	act  func()
}

func (i *intruder) Reconcile(ctx context.Context, in engine.Installation) (engine.Outcome, error) {
	i.once.Do(i.act)
	return i.Rounds.Reconcile(ctx, in)
}

// newIntruded is a plane, and what to do once before its engine works.
func newIntruded(t *testing.T) (*plane, *intruder) {
	t.Helper()
	intruder := &intruder{}
	return newPlane(t, func(options *installation.Options) {
		intruder.Rounds, options.Engine = options.Engine, intruder
	}), intruder
}

// TestATemplateIsMarkedWithWhatIsInstalled: whoever finds it unmarked may edit it, for nothing of it was applied.
func TestATemplateIsMarkedWithWhatIsInstalled(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	template := p.release("1.0.0", "regular")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Channel = "regular" })
	p.until("installed", installed("1.0.0"))
	check(t, p.client.Get(t.Context(), client.ObjectKeyFromObject(template), template))
	want := modulesv1.InstalledVersion{Version: "1.0.0", Content: template.Spec.Artifact.OCI.Digest}
	if template.Status.Installed == nil || *template.Status.Installed != want || len(template.Finalizers) != 0 {
		t.Errorf("marked with %+v, finalizers %v", template.Status.Installed, template.Finalizers)
	}
	before := template.DeepCopy()
	template.Spec.Artifact.OCI.Digest = "sha256:" + strings.Repeat("0", 64)
	if err := p.client.Patch(t.Context(), template, client.MergeFrom(before)); !apierrors.IsInvalid(err) {
		t.Errorf("what is installed was edited: %v", err)
	}
}

// TestAReleaseThatIsCorrectedWhileItIsChosenIsNotApplied: what was chosen is not what the template says any more.
func TestAReleaseThatIsCorrectedWhileItIsChosenIsNotApplied(t *testing.T) {
	t.Parallel()
	p, intruder := newIntruded(t)
	template := p.release("1.0.0", "")
	intruder.act = func() {
		before := template.DeepCopy()
		template.Spec.Artifact.OCI.Digest = p.depot.publish(t, map[string]string{"settings.yaml": configMap("settings", "corrected")})
		check(t, p.client.Patch(t.Context(), template, client.MergeFrom(before)))
	}
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	p.until("installed", installed("1.0.0"))
	p.wantVersion("settings", "corrected")
	if history := p.inventory().Data.History; len(history) != 1 {
		t.Errorf("something else was installed: %+v", history)
	}
}

// TestATemplateThatGoesWhileItIsChosenIsNotInstalled: only what is applied outlives its template.
func TestATemplateThatGoesWhileItIsChosenIsNotInstalled(t *testing.T) {
	t.Parallel()
	p, intruder := newIntruded(t)
	template := p.release("1.0.0", "")
	intruder.act = func() { check(t, p.client.Delete(t.Context(), template)) }
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	p.until("there is nothing to install", is("Ready", metav1.ConditionFalse, modulesv1.ModuleNotFoundReason))
	if got := p.version("settings"); got != "" {
		t.Errorf("version %q was installed", got)
	}
}

// TestWhatIsInstalledOutlivesItsTemplate: whose name is free at once.
func TestWhatIsInstalledOutlivesItsTemplate(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	template := p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	p.until("installed", installed("1.0.0"))
	check(t, p.client.Delete(t.Context(), template))
	if err := p.client.Get(t.Context(), client.ObjectKeyFromObject(template), template); !apierrors.IsNotFound(err) {
		t.Fatalf("the template is there: %v", err)
	}
	p.until("that is told", is(modulesv1.ResolvedCondition, metav1.ConditionFalse, modulesv1.ModuleNotFoundReason))
	p.tamper()
	p.until("what is installed is healed", func(*modulesv1.ModuleInstallation) bool { return p.version("settings") == "1.0.0" })

	// Another content under its name and version is not what is installed.
	other := p.release("1.0.0", "", configMap("more", "1.0.0"))
	p.until("the clash is told", func(obj *modulesv1.ModuleInstallation) bool {
		return obj.Status.Pending != nil && obj.Status.Pending.Reason == modulesv1.ReleaseConflictReason
	})
	check(t, p.client.Delete(t.Context(), other))
	p.release("1.0.0", "")
	p.until("the same is", installed("1.0.0"))
}

// TestHealthIsToldWithoutTheTemplate: what it says beside its artifact is on record.
func TestHealthIsToldWithoutTheTemplate(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	template := p.release("1.0.0", "")
	before := template.DeepCopy()
	template.Spec.Health = &modulesv1.TemplateHealth{Expressions: []modulesv1.HealthExpression{{
		APIVersion: "v1", Kind: "ConfigMap", Current: "data.version == '1.0.0'",
	}}}
	check(t, p.client.Patch(t.Context(), template, client.MergeFrom(before)))
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	p.until("installed", installed("1.0.0"))
	check(t, p.client.Delete(t.Context(), template))
	p.until("that is told", is(modulesv1.ResolvedCondition, metav1.ConditionFalse, modulesv1.ModuleNotFoundReason))
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Management = modulesv1.ManagementPaused })
	p.tamper()
	p.until("it is told by the template's word", func(obj *modulesv1.ModuleInstallation) bool {
		return !is(modulesv1.HealthyCondition, metav1.ConditionTrue, modulesv1.SucceededReason)(obj)
	})
	if recorded := p.inventory().Data.Health; len(recorded) != 1 {
		t.Errorf("on record is %+v", recorded)
	}
}

// TestAnEditedStatusLetsNothingGo: what is installed is in the Inventory, whatever somebody writes into status.
func TestAnEditedStatusLetsNothingGo(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	template := p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	obj := p.until("installed", installed("1.0.0"))
	before := obj.DeepCopy()
	obj.Status.Desired, obj.Status.Current = nil, nil
	check(t, p.client.Status().Patch(t.Context(), obj, client.MergeFrom(before)))
	check(t, p.client.Delete(t.Context(), template))
	sources := func(context.Context) (bool, string) {
		check(t, p.sweeper.Sweep(t.Context()))
		p.clock.SetTime(p.clock.Now().Add(time.Hour))
		var list sourcev1.OCIRepositoryList
		check(t, p.client.List(t.Context(), &list, client.InNamespace(p.namespace)))
		return len(list.Items) == 0, "the source is there"
	}
	for range 3 {
		if gone, _ := sources(t.Context()); gone {
			t.Fatal("the source of what is installed is gone")
		}
	}
	check(t, p.client.Delete(t.Context(), obj))
	testenv.Eventually(t, "the source goes with the installation", sources)
}
