package installation_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/controllers/modules/installation"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/tests/testenv"
)

// condition is a condition as "Status Reason"; empty when there is none.
func condition(obj conditions.Getter, kind string) string {
	found := conditions.Get(obj, kind)
	if found == nil {
		return ""
	}
	return string(found.Status) + " " + found.Reason
}

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

// kept waits until the template that was deleted says why it is still there.
func (p *plane) kept(template *modulesv1.ModuleTemplate) {
	p.t.Helper()
	testenv.Eventually(p.t, "the template is kept", func(ctx context.Context) (bool, string) {
		err := p.client.Get(ctx, client.ObjectKeyFromObject(template), template)
		return err == nil && condition(template, meta.ReadyCondition) == "False Installed", fmt.Sprint(err, condition(template, meta.ReadyCondition))
	})
}

// TestAChosenTemplateStaysFromTheChoiceOn: not only from when status tells, after the first round.
func TestAChosenTemplateStaysFromTheChoiceOn(t *testing.T) {
	t.Parallel()
	intruder := &intruder{act: func() {}}
	p := newPlane(t, func(options *installation.Options) {
		intruder.Rounds, options.Engine = options.Engine, intruder
	})
	template, found := p.release("1.0.0", "regular"), &modulesv1.ModuleTemplate{}
	testenv.Eventually(t, "the artifact is there before anybody wants it", func(ctx context.Context) (bool, string) {
		err := p.client.Get(ctx, client.ObjectKeyFromObject(template), template)
		return err == nil && condition(template, modulesv1.ArtifactVerifiedCondition) == "True Succeeded" && len(template.Finalizers) == 0, fmt.Sprint(err, template.Finalizers)
	})
	var deleted, read error
	intruder.act = func() {
		deleted = p.client.Delete(t.Context(), template)
		read = p.client.Get(t.Context(), client.ObjectKeyFromObject(template), found)
	}
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Channel = "regular" })
	testenv.Eventually(t, "the release is installed", func(context.Context) (bool, string) {
		got := p.version("settings")
		return got == "1.0.0", got
	})
	if deleted != nil || read != nil {
		t.Fatalf("deleted before the first round, the template is gone: %v, %v", deleted, read)
	}
	if diff := cmp.Diff([]string{modulesv1.InUseFinalizer}, found.Finalizers); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	p.kept(template)
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
	p.kept(template)
}
