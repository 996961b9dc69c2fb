package installation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// newOutage has release 1.0.0 installed, and 2.0.0 asked for whose artifact is lost. Nothing but the error of the
// download says when it is tried again.
func newOutage(t *testing.T, mode modulesv1.UpgradeMode) *plane {
	t.Helper()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Module.Version = "1.0.0"
		spec.Upgrade = &modulesv1.UpgradePolicy{Mode: mode}
		spec.Interval = &metav1.Duration{Duration: 24 * time.Hour}
		spec.RetryInterval = &metav1.Duration{Duration: 24 * time.Hour}
	})
	p.until("installed", installed("1.0.0"))
	p.depot.lose(true)
	p.release("2.0.0", "")
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Module.Version = "2.0.0" })
	return p
}

func TestSourceThatRebuildsIsWaitedOut(t *testing.T) {
	t.Parallel()
	p := newOutage(t, modulesv1.UpgradeAutomatic)
	obj := p.until("its artifact is away", is(meta.ReadyCondition, metav1.ConditionFalse, modulesv1.ArtifactUnavailableReason))
	if !conditions.IsReconciling(obj) || conditions.IsStalled(obj) || obj.Status.Current == nil || obj.Status.Current.Version != "1.0.0" {
		t.Errorf("current %+v, %s", obj.Status.Current, summary(obj))
	}
	p.more(2) // It is tried again, and nothing comes of it.
	p.wantVersion("settings", "1.0.0")
	p.tamper()
	p.until("what is installed is healed", func(*modulesv1.ModuleInstallation) bool { return p.version("settings") == "1.0.0" })
	p.depot.lose(false)
	p.until("it is back", installed("2.0.0"))
}

func TestPlanWaitsForItsSource(t *testing.T) {
	t.Parallel()
	p := newOutage(t, modulesv1.UpgradeManual)
	p.until("no plan yet", func(obj *modulesv1.ModuleInstallation) bool {
		return obj.Status.Pending != nil && obj.Status.Pending.Plan == nil && strings.Contains(obj.Status.Pending.Message, "404")
	})
	p.depot.lose(false)
	p.until("planned", func(obj *modulesv1.ModuleInstallation) bool {
		return obj.Status.Pending != nil && obj.Status.Pending.Plan != nil
	})
	p.wantVersion("settings", "1.0.0")
}
