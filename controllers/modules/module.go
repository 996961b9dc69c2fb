package modules

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/predicates"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/controllers/modules/offers"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/catalog/objects"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/status"
)

// +kubebuilder:rbac:groups=modules.sluice.dev,resources=modules,verbs=get;list;watch
// +kubebuilder:rbac:groups=modules.sluice.dev,resources=modules/status,verbs=get;update;patch

// countDelay is how long changes of installations are gathered before a module counts them: a channel that moves changes
// many at once.
const countDelay = 5 * time.Second

// pointers makes Module a kernel.Kind: where its channels lead.
type pointers struct{ shared Shared }

var _ kernel.Kind[*modulesv1.Module, lookup] = (*pointers)(nil)

// NewModuleReconciler returns the reconciler of Module objects. Nothing is put on them but their status.
func NewModuleReconciler(shared Shared, backoff *kernel.Backoff) reconcile.Reconciler {
	return kernel.New(shared.Shell, &pointers{shared: shared}, "", backoff)
}

// SetupModule adds the controller of Module objects to the manager. The catalogue's fields are indexed by then.
func SetupModule(mgr ctrl.Manager, shared Shared, backoff *kernel.Backoff) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("module").
		For(&modulesv1.Module{}, builder.WithPredicates(
			predicate.Or(predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}))).
		Watches(&modulesv1.ModuleTemplate{}, offers.Changes(0, modulesOfTemplate)).
		Watches(&modulesv1.ModuleInstallation{}, offers.Changes(countDelay, modulesOfInstallation)).
		WithOptions(shared.ControllerOptions(backoff)).
		Complete(NewModuleReconciler(shared, backoff))
}

// modulesOfTemplate are the modules that a template is, or was, a release of.
func modulesOfTemplate(_ context.Context, before, after *modulesv1.ModuleTemplate) offers.Names {
	if before != nil && after != nil && objects.ReleaseOf(before) == objects.ReleaseOf(after) {
		return nil
	}
	names := offers.Names{}
	for _, template := range []*modulesv1.ModuleTemplate{before, after} {
		if template != nil && template.GetModuleName() != "" {
			names.Insert(types.NamespacedName{Namespace: template.Namespace, Name: template.GetModuleName()})
		}
	}
	return names
}

// modulesOfInstallation are the modules that count an installation, or did.
func modulesOfInstallation(_ context.Context, before, after *modulesv1.ModuleInstallation) offers.Names {
	if before != nil && after != nil && offers.CountKey(before) == offers.CountKey(after) && objects.ChannelOf(before) == objects.ChannelOf(after) {
		return nil
	}
	names := offers.Names{}
	for _, installation := range []*modulesv1.ModuleInstallation{before, after} {
		if installation != nil && offers.CountKey(installation) != "" {
			resolution := installation.Status.Resolution
			names.Insert(types.NamespacedName{Namespace: resolution.Namespace, Name: resolution.Module})
		}
	}
	return names
}

// lookup is what came of one look at a module.
type lookup struct {
	looked   bool
	channels []catalog.ChannelStatus
	releases []catalog.Release
	// contested are the templates whose version stands for other content elsewhere.
	contested map[string]bool
	latest    *catalog.Release
	counts    offers.Counts
	// broken says what is wrong with the channels; empty when nothing is.
	broken string
}

// New implements kernel.Kind.
func (*pointers) New() *modulesv1.Module { return &modulesv1.Module{} }

// View implements kernel.Kind.
func (*pointers) View(obj *modulesv1.Module) kernel.View {
	return kernel.View{
		Interval:               lookInterval,
		Unreadable:             obj.UnreadableStatus,
		ObservedGeneration:     &obj.Status.ObservedGeneration,
		LastHandledReconcileAt: &obj.Status.LastHandledReconcileAt,
	}
}

// Table implements kernel.Kind.
func (*pointers) Table() status.Table {
	return status.Table{Facts: []string{modulesv1.ChannelsValidCondition}}
}

// Work implements kernel.Kind: it follows the channels.
func (k *pointers) Work(ctx context.Context, obj *modulesv1.Module, _ kernel.Announce) (lookup, error) {
	var l lookup
	if obj.Undecodable != "" {
		return l, failure.Stall(modulesv1.FailedReason, errors.New(obj.Undecodable))
	}
	if consumers := obj.Spec.Consumers; consumers != nil {
		if _, err := metav1.LabelSelectorAsSelector(&consumers.NamespaceSelector); err != nil {
			return l, failure.Stall(modulesv1.FailedReason, fmt.Errorf("read consumers.namespaceSelector: %w", err))
		}
	}
	catalogue, err := k.shared.Offers.Namespace(ctx, obj.Namespace)
	if err != nil {
		return l, err
	}
	if l.counts, err = k.shared.Offers.Count(ctx, obj.Namespace, obj.Name); err != nil {
		return l, err
	}
	now := k.shared.Clock.Now()
	l.channels, l.releases = catalogue.Channels(obj.Name, now), catalogue.Releases(obj.Name)
	l.contested = map[string]bool{}
	for _, release := range l.releases {
		for _, found := range catalogue.Findings(release.Template) {
			if found.Reason == modulesv1.ReleaseConflictReason {
				l.contested[release.Template] = true
			}
		}
	}
	if latest, found := catalogue.Latest(obj.Name, now); found {
		l.latest = &latest
	}
	l.broken = l.complain(obj.Spec.DefaultChannel)
	l.looked = true
	if l.broken != "" {
		// Templates may come after their module, and each that comes is looked at: it is not this object alone that helps.
		return l, failure.Wait(modulesv1.ChannelsBrokenReason, lookInterval, errors.New(l.broken))
	}
	return l, nil
}

// complain says which channels lead nowhere, or nothing.
func (l *lookup) complain(defaultChannel string) string {
	exists := defaultChannel == ""
	var broken []string
	for _, channel := range l.channels {
		exists = exists || channel.Name == defaultChannel
		if channel.Reason != "" {
			broken = append(broken, fmt.Sprintf("Channel %s: %s", channel.Name, channel.Detail))
		}
	}
	if !exists {
		broken = append(broken, fmt.Sprintf("There is no channel %s, which is the default", defaultChannel))
	}
	return cut(strings.Join(broken, "; "))
}
