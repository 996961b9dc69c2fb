package installation_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

// TestHealthIsThatOfWhatWasObserved: that the release before was healthy says nothing of one that could not be applied.
func TestHealthIsThatOfWhatWasObserved(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	p.release("2.0.0", "", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: wrong\ndata:\n  number: {}\n")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	obj := p.until("installed", installed("1.0.0"))
	if message := conditions.GetMessage(obj, modulesv1.HealthyCondition); message != "Release 1.0.0 is healthy" {
		t.Errorf("Healthy says %q", message)
	}
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Module.Version = "2.0.0" })
	obj = p.until("refused", is(modulesv1.AppliedCondition, metav1.ConditionFalse, modulesv1.ApplyFailedReason))
	if healthy := conditions.Get(obj, modulesv1.HealthyCondition); healthy == nil || healthy.Status == metav1.ConditionTrue {
		t.Errorf("%s", summary(obj))
	}
}

// TestAPausedInstallationSaysWhatIsMissing: for as long as it is, and it is mended when somebody takes the pause back.
func TestAPausedInstallationSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Module.Version, spec.Interval = "1.0.0", &metav1.Duration{Duration: time.Second}
	})
	p.until("installed", installed("1.0.0"))
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Management = modulesv1.ManagementPaused })
	p.until("paused, and whole", is(meta.ReadyCondition, metav1.ConditionTrue, modulesv1.SucceededReason))
	check(t, p.client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "settings"}}))
	missing := is(meta.ReadyCondition, metav1.ConditionFalse, modulesv1.PausedReason)
	obj := p.until("it says so", missing)
	if message := conditions.GetMessage(obj, meta.ReadyCondition); !strings.Contains(message, "settings") {
		t.Errorf("Ready says %q", message)
	}
	p.more(1)
	p.until("it goes on saying so", missing)
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Management = modulesv1.ManagementManaged })
	p.until("mended", installed("1.0.0"))
	p.wantVersion("settings", "1.0.0")
}

// TestNothingIsDoneAsAnAccountThatIsGone: the API server takes its name all the same, with the rights of a binding that was
// left.
func TestNothingIsDoneAsAnAccountThatIsGone(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Module.Version, spec.RetryInterval = "1.0.0", &metav1.Duration{Duration: modulesv1.DefaultInterval}
	})
	p.until("installed", installed("1.0.0"))
	absent := is(meta.ReadyCondition, metav1.ConditionFalse, modulesv1.ServiceAccountNotFoundReason)
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.ServiceAccountName = "later" })
	p.until("there is no such account", absent)
	p.give("later", "cluster-admin")
	p.until("it has come", installed("1.0.0"))

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "later"}}
	check(t, p.client.Delete(t.Context(), account))
	p.until("it has gone", absent)
	p.tamper()
	p.edit(func(obj *modulesv1.ModuleInstallation) {
		metav1.SetMetaDataAnnotation(&obj.ObjectMeta, meta.ReconcileRequestAnnotation, "now")
	})
	p.until("looked at", func(obj *modulesv1.ModuleInstallation) bool { return obj.Status.LastHandledReconcileAt == "now" })
	p.wantVersion("settings", "tampered")
	account.ObjectMeta = metav1.ObjectMeta{Namespace: p.namespace, Name: "later"}
	p.create(account)
	testenv.Eventually(t, "drift is healed", func(context.Context) (bool, string) {
		got := p.version("settings")
		return got == "1.0.0", got
	})
}

// dependent makes an installation that depends on others.
func (p *plane) dependent(name string, on ...string) *modulesv1.ModuleInstallation {
	p.t.Helper()
	obj := &modulesv1.ModuleInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name},
		Spec:       modulesv1.ModuleInstallationSpec{Module: modulesv1.ModuleRequest{Name: "bar"}, ServiceAccountName: deployer},
	}
	for _, other := range on {
		obj.Spec.DependsOn = append(obj.Spec.DependsOn, modulesv1.Dependency{
			APIVersion: modulesv1.GroupVersion.String(), Kind: modulesv1.ModuleInstallationKind, Name: other,
		})
	}
	p.create(obj)
	return obj
}

func TestWhatOthersDependOnStays(t *testing.T) {
	t.Parallel()
	waits := is(meta.ReadyCondition, metav1.ConditionFalse, modulesv1.DependentsReason)
	for name, tc := range map[string]struct {
		reason string
		free   func(*plane, *modulesv1.ModuleInstallation)
		want   string
	}{
		"Deleted": {reason: "until they go", free: func(p *plane, bar *modulesv1.ModuleInstallation) {
			check(p.t, p.client.Delete(p.t.Context(), bar))
		}},
		"Edited": {reason: "or depend on it no more", free: func(p *plane, bar *modulesv1.ModuleInstallation) {
			before := bar.DeepCopy()
			bar.Spec.DependsOn = nil
			check(p.t, p.client.Patch(p.t.Context(), bar, client.MergeFrom(before)))
		}},
		"Orphaned": {reason: "or it leaves them what they need", want: "1.0.0", free: func(p *plane, _ *modulesv1.ModuleInstallation) {
			p.edit(func(obj *modulesv1.ModuleInstallation) {
				obj.Spec.Deletion = &modulesv1.InstallationDeletion{Mode: modulesv1.DeletionOrphan}
			})
		}},
		"Namespace": {reason: "or the namespace goes, and takes all of it", want: "1.0.0", free: func(p *plane, _ *modulesv1.ModuleInstallation) {
			check(p.t, p.client.Delete(p.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}))
			p.edit(func(obj *modulesv1.ModuleInstallation) {
				metav1.SetMetaDataAnnotation(&obj.ObjectMeta, meta.ReconcileRequestAnnotation, "now")
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlane(t, nil)
			p.release("1.0.0", "")
			p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
			p.until("installed", installed("1.0.0"))
			bar := p.dependent("bar", "foo")
			p.delete()
			obj := p.until(tc.reason, waits)
			if message := conditions.GetMessage(obj, meta.ReadyCondition); !strings.Contains(message, "bar") ||
				!conditions.IsTrue(obj, modulesv1.DeletionBlockedCondition) {
				t.Errorf("%s", summary(obj))
			}
			p.wantWarned(modulesv1.DependentsReason)
			p.wantVersion("settings", "1.0.0")
			check(t, p.client.Get(t.Context(), client.ObjectKeyFromObject(bar), bar))
			tc.free(p, bar)
			p.gone()
			p.wantVersion("settings", tc.want)
		})
	}
}

// TestThoseThatDependOnEachOtherCanGo: one waits, until the other is deleted as well.
func TestThoseThatDependOnEachOtherCanGo(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	p.until("installed", installed("1.0.0"))
	p.edit(func(obj *modulesv1.ModuleInstallation) {
		obj.Spec.DependsOn = []modulesv1.Dependency{{APIVersion: modulesv1.GroupVersion.String(), Kind: modulesv1.ModuleInstallationKind, Name: "bar"}}
	})
	bar := p.dependent("bar", "foo")
	p.delete()
	p.until("one waits", is(meta.ReadyCondition, metav1.ConditionFalse, modulesv1.DependentsReason))
	check(t, p.client.Delete(t.Context(), bar))
	p.gone()
	testenv.Eventually(t, "the other is gone as well", func(ctx context.Context) (bool, string) {
		err := p.client.Get(ctx, client.ObjectKeyFromObject(bar), bar)
		return apierrors.IsNotFound(err), summary(bar)
	})
}
