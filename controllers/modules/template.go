package modules

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/status"
)

// +kubebuilder:rbac:groups=modules.sluice.dev,resources=moduletemplates,verbs=get;list;watch
// +kubebuilder:rbac:groups=modules.sluice.dev,resources=moduletemplates/status,verbs=get;update;patch

// lookInterval is the time between two looks at a template or module of which nothing was heard: support may have ended.
const lookInterval = 10 * time.Minute

// templates makes ModuleTemplate a kernel.Kind.
type templates struct{ shared Shared }

var _ kernel.Kind[*modulesv1.ModuleTemplate, finding] = (*templates)(nil)

// NewTemplateReconciler returns the reconciler of ModuleTemplate objects.
func NewTemplateReconciler(shared Shared, backoff *kernel.Backoff) reconcile.Reconciler {
	return kernel.New(shared.Shell, &templates{shared: shared}, "", backoff)
}

// New implements kernel.Kind.
func (*templates) New() *modulesv1.ModuleTemplate { return &modulesv1.ModuleTemplate{} }

// View implements kernel.Kind.
func (*templates) View(obj *modulesv1.ModuleTemplate) kernel.View {
	return kernel.View{
		Interval:               lookInterval,
		Unreadable:             obj.UnreadableStatus,
		ObservedGeneration:     &obj.Status.ObservedGeneration,
		LastHandledReconcileAt: &obj.Status.LastHandledReconcileAt,
	}
}

// Table implements kernel.Kind. What the conditions say beside Ready is stated with each run.
func (*templates) Table() status.Table {
	return status.Table{Facts: []string{
		modulesv1.OfferedCondition, modulesv1.ArtifactVerifiedCondition, modulesv1.ConflictCondition, modulesv1.InUseCondition,
	}}
}
