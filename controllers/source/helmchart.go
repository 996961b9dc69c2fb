package source

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/helmchart"
	"sluice.dev/sluice/internal/status"
	"sluice.dev/sluice/storage"
)

// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=helmcharts,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=helmcharts/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=helmcharts/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get

// HelmChartDir is the folder of the kind's artifacts, as paths and URLs spell it.
const HelmChartDir = "helmchart"

// sourceIndex finds the HelmCharts of a source, by its kind and name.
const sourceIndex = "spec.sourceRef"

// chartTable says how a HelmChart reports what happened.
func chartTable() status.Table {
	table := newTable(sourcev1.ChartPullErrorReason, sourcev1.ChartPullErrorReason)
	table.OutdatedReason = sourcev1.NewChartReason
	table.Stages[source.StageBuild] = status.Failure{Condition: sourcev1.BuildFailedCondition, Reason: sourcev1.ChartPackageErrorReason}
	table.Summary = slices.Insert(table.Summary, slices.Index(table.Summary, sourcev1.FetchFailedCondition), sourcev1.BuildFailedCondition)
	return table
}

func helmChartKind(shared Shared, opener source.Opener[*sourcev1.HelmChart]) *kind[*sourcev1.HelmChart] {
	return &kind[*sourcev1.HelmChart]{
		shared: shared,
		name:   sourcev1.HelmChartKind,
		dir:    HelmChartDir,
		new:    func() *sourcev1.HelmChart { return &sourcev1.HelmChart{} },
		table:  chartTable(),
		opener: opener,
		fields: func(obj *sourcev1.HelmChart) fields {
			return fields{
				View: kernel.View{
					Suspended: obj.Spec.Suspend, Unreadable: obj.UnreadableStatus, Interval: obj.GetRequeueAfter(),
					ObservedGeneration: &obj.Status.ObservedGeneration, LastHandledReconcileAt: &obj.Status.LastHandledReconcileAt,
				},
				checksum: &obj.Status.ContentConfigChecksum,
				artifact: &obj.Status.Artifact,
				latest:   &obj.Status.URL,
			}
		},
		timeout: func(ctx context.Context, obj *sourcev1.HelmChart) time.Duration {
			// A chart has as long as its repository, and like that a minute where nothing is set.
			var repository sourcev1.HelmRepository
			key := client.ObjectKey{Namespace: obj.Namespace, Name: obj.Spec.SourceRef.Name}
			if obj.Spec.SourceRef.Kind == sourcev1.HelmRepositoryKind {
				_ = shared.Client.Get(ctx, key, &repository) // The opener says what is wrong with it.
			}
			return repository.Spec.GetTimeout()
		},
		observe: func(obj *sourcev1.HelmChart, outcome source.Outcome) {
			noted := helmchart.NotedIn(outcome.Record)
			obj.Status.ObservedChartName = noted.Chart
			obj.Status.ObservedSourceArtifactRevision = ""
			for _, from := range outcome.Selected.Included {
				obj.Status.ObservedSourceArtifactRevision = from.Revision
			}
			obj.Status.ObservedValuesFiles = nil
			if obj.Spec.IgnoreMissingValuesFiles {
				obj.Status.ObservedValuesFiles = noted.ValuesFiles
			}
		},
		proof: func(record storage.Record) string { return "verified signature of version " + record.VerifiedBy },
		reason: func(record storage.Record) string {
			if helmchart.NotedIn(record).IsPackaged {
				return sourcev1.ChartPackageSucceededReason
			}
			return sourcev1.ChartPullSucceededReason
		},
		stored: func(record storage.Record) string { return record.Title },
		told:   func(_ *sourcev1.HelmChart, record storage.Record, _ bool) string { return record.Title },
		warned: func(_ *meta.Artifact, record storage.Record) (reason, message string) {
			if !helmchart.NotedIn(record).IsLockStale {
				return "", ""
			}
			return sourcev1.StaleChartLockReason, "a Chart.lock was made for other dependencies than its chart has, and was followed all the same: " +
				"run 'helm dependency update', and commit what it writes"
		},
	}
}

// SetupHelmChart adds the controller of HelmChart objects to the manager. Objects named on rebuild are reconciled at once.
func SetupHelmChart(
	ctx context.Context, mgr ctrl.Manager, shared Shared, opener *helmchart.Opener, rebuild <-chan event.GenericEvent,
) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &sourcev1.HelmChart{}, sourceIndex, indexSource); err != nil {
		return fmt.Errorf("index sources of charts: %w", err)
	}
	made := helmChartKind(shared, opener)
	controller := newController(mgr, made, rebuild)
	all := handler.EnqueueRequestsFromMapFunc(chartsOf(shared.Client, nil))
	moved := handler.EnqueueRequestsFromMapFunc(chartsOf(shared.Client, opener.Moved))
	for _, from := range []Object{&sourcev1.GitRepository{}, &sourcev1.Bucket{}} {
		controller.Watches(from, all, builder.WithPredicates(sourceChanged()))
	}
	controller.Watches(&sourcev1.HelmRepository{}, handler.Funcs{
		CreateFunc: all.Create, DeleteFunc: all.Delete,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
				all.Update(ctx, e, queue)
				return
			}
			moved.Update(ctx, e, queue)
		},
	}, builder.WithPredicates(sourceChanged()))
	return controller.Complete(newKernel(made))
}

func indexSource(obj client.Object) []string {
	if chart, ok := obj.(*sourcev1.HelmChart); ok {
		return []string{sourceKey(chart.Spec.SourceRef.Kind, chart.Spec.SourceRef.Name)}
	}
	return nil
}

func sourceKey(kind, name string) string { return kind + "/" + name }

// kindOf is the kind of an object, as charts name it.
func kindOf(obj client.Object) string {
	switch obj.(type) {
	case *sourcev1.HelmRepository:
		return sourcev1.HelmRepositoryKind
	case *sourcev1.GitRepository:
		return sourcev1.GitRepositoryKind
	default:
		return sourcev1.BucketKind
	}
}

// chartsOf maps a source to the charts of its namespace that are taken from it, or to those of them that have moved.
func chartsOf(reader client.Reader, moved func(context.Context, []sourcev1.HelmChart) func(*sourcev1.HelmChart) bool) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		var list sourcev1.HelmChartList
		err := reader.List(ctx, &list, client.InNamespace(obj.GetNamespace()),
			client.MatchingFields{sourceIndex: sourceKey(kindOf(obj), obj.GetName())}, client.UnsafeDisableDeepCopy)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot find the charts of this source; they follow at their interval", "source", obj.GetName())
			return nil
		}
		wakes := func(*sourcev1.HelmChart) bool { return true }
		if moved != nil {
			wakes = moved(ctx, list.Items)
		}
		var requests []reconcile.Request
		for i := range list.Items {
			if wakes(&list.Items[i]) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
			}
		}
		return requests
	}
}

// sourceChanged lets pass what those have to know who take something from a source: that it is there, what is stored of it, and
// that its spec is another one: it may have broken a cycle of includes, or lead elsewhere.
func sourceChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(Object)
			if !ok {
				return false
			}
			after, ok := e.ObjectNew.(Object)
			return ok && (before.GetGeneration() != after.GetGeneration() || identity(before.GetArtifact()) != identity(after.GetArtifact()))
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
