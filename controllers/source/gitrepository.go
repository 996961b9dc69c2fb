package source

import (
	"context"
	"fmt"
	"slices"

	"github.com/fluxcd/pkg/apis/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/status"
	"sluice.dev/sluice/storage"
)

// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=gitrepositories,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=gitrepositories/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=gitrepositories/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// GitRepositoryDir is the folder of the kind's artifacts, as paths and URLs spell it.
const GitRepositoryDir = "gitrepository"

// includesIndex finds the GitRepository objects that include a given one.
const includesIndex = "spec.include.repository"

// gitTable says how a GitRepository reports what happened.
func gitTable() status.Table {
	table := newTable(sourcev1.GitOperationFailedReason, sourcev1.GitOperationFailedReason)
	table.Stages[source.StageInclude] = status.Failure{
		Condition: sourcev1.IncludeUnavailableCondition, Reason: sourcev1.FailedReason,
	}
	table.Summary = slices.Insert(table.Summary, slices.Index(table.Summary, sourcev1.FetchFailedCondition)+1, sourcev1.IncludeUnavailableCondition)
	return table
}

func gitKind(shared Shared, opener source.Opener[*sourcev1.GitRepository]) *kind[*sourcev1.GitRepository] {
	return &kind[*sourcev1.GitRepository]{
		shared: shared,
		name:   sourcev1.GitRepositoryKind,
		dir:    GitRepositoryDir,
		new:    func() *sourcev1.GitRepository { return &sourcev1.GitRepository{} },
		table:  gitTable(),
		opener: opener,
		fields: func(obj *sourcev1.GitRepository) fields {
			return fields{
				View: kernel.View{
					Suspended: obj.Spec.Suspend, Unreadable: obj.UnreadableStatus, Interval: obj.GetRequeueAfter(), Timeout: obj.Spec.GetTimeout(),
					ObservedGeneration: &obj.Status.ObservedGeneration, LastHandledReconcileAt: &obj.Status.LastHandledReconcileAt,
				},
				checksum: &obj.Status.ContentConfigChecksum,
				artifact: &obj.Status.Artifact,
			}
		},
		observe: func(obj *sourcev1.GitRepository, outcome source.Outcome) {
			obj.Status.ObservedIgnore = obj.Spec.Ignore
			obj.Status.ObservedInclude = obj.Spec.Include
			obj.Status.ObservedSparseCheckout, obj.Status.ObservedRecurseSubmodules = obj.Spec.SparseCheckout, obj.Spec.RecurseSubmodules
			obj.Status.SourceVerificationMode = nil
			if obj.Spec.Verification != nil {
				obj.Status.SourceVerificationMode = new(obj.Spec.Verification.GetMode())
			}
			obj.Status.IncludedArtifacts = nil
			for _, included := range outcome.Selected.Included {
				obj.Status.IncludedArtifacts = append(obj.Status.IncludedArtifacts, shared.published(included))
			}
		},
		proof: func(record storage.Record) string { return "verified signature of" + record.VerifiedBy },
		stored: func(record storage.Record) string {
			return fmt.Sprintf("stored artifact for revision '%s'", record.Current.Revision)
		},
		told: func(_ *sourcev1.GitRepository, record storage.Record, fetched bool) string {
			if fetched && record.Title != "" {
				return fmt.Sprintf("stored artifact for commit '%s'", record.Title)
			}
			// As in Flux, a recovery that fetches nothing is told by the revision.
			return fmt.Sprintf("stored artifact for commit '%s'", record.Current.Revision)
		},
	}
}

// SetupGitRepository adds the controller of GitRepository objects to the manager. Objects named on rebuild are
// reconciled at once.
func SetupGitRepository(
	ctx context.Context, mgr ctrl.Manager, shared Shared, opener source.Opener[*sourcev1.GitRepository], rebuild <-chan event.GenericEvent,
) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &sourcev1.GitRepository{}, includesIndex, indexIncludes); err != nil {
		return fmt.Errorf("index includes: %w", err)
	}
	made := gitKind(shared, opener)
	return newController(mgr, made, rebuild).
		Watches(&sourcev1.GitRepository{}, handler.EnqueueRequestsFromMapFunc(including(shared.Client)),
			builder.WithPredicates(sourceChanged())).
		Complete(newKernel(made))
}

func indexIncludes(obj client.Object) []string {
	repository, ok := obj.(*sourcev1.GitRepository)
	if !ok {
		return nil
	}
	names := make([]string, 0, len(repository.Spec.Include))
	for _, include := range repository.Spec.Include {
		names = append(names, include.GitRepositoryRef.Name)
	}
	return names
}

// including maps a GitRepository to those of its namespace that include it.
func including(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		var list sourcev1.GitRepositoryList
		err := reader.List(ctx, &list, client.InNamespace(obj.GetNamespace()), client.MatchingFields{includesIndex: obj.GetName()})
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot find the objects that include this one; they follow at their interval", "included", obj.GetName())
			return nil
		}
		requests := make([]reconcile.Request, 0, len(list.Items))
		for i := range list.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return requests
	}
}

// identity is what makes an artifact another one.
func identity(artifact *meta.Artifact) string {
	if artifact == nil {
		return ""
	}
	return artifact.Revision + " " + artifact.Digest
}
