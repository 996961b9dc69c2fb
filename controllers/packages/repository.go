package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/status"
)

// +kubebuilder:rbac:groups=packages.sluice.dev,resources=repositories,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=packages.sluice.dev,resources=repositories/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=packages.sluice.dev,resources=repositories/finalizers,verbs=update
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=gitrepositories,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// repositories makes Repository a kernel.Kind: what is in Git, and the orders for it.
type repositories struct{ shared Shared }

var (
	_ kernel.Kind[*packagesv1.Repository, round]  = (*repositories)(nil)
	_ kernel.Owner[*packagesv1.Repository, round] = (*repositories)(nil)
	_ kernel.Forgetter                            = (*repositories)(nil)
)

// round is what came of one look at a repository.
type round struct {
	url      string
	snapshot *pkgrepo.Snapshot
	pruned   pruned
}

// New implements kernel.Kind.
func (*repositories) New() *packagesv1.Repository { return &packagesv1.Repository{} }

// View implements kernel.Kind.
func (*repositories) View(obj *packagesv1.Repository) kernel.View {
	return kernel.View{
		Suspended: obj.Spec.Suspend, Unreadable: obj.UnreadableStatus,
		Interval: obj.GetRequeueAfter(), Timeout: obj.Spec.GetTimeout(),
		ObservedGeneration: &obj.Status.ObservedGeneration, LastHandledReconcileAt: &obj.Status.LastHandledReconcileAt,
	}
}

// Table implements kernel.Kind.
func (*repositories) Table() status.Table {
	return status.Table{Facts: []string{packagesv1.HistoryBlockedCondition, packagesv1.IncompleteCondition}}
}

// Work implements kernel.Kind: it looks what is in Git, carries out what is ordered, and shows what there is as objects.
func (k *repositories) Work(ctx context.Context, obj *packagesv1.Repository, _ kernel.Announce) (round, error) {
	key := client.ObjectKeyFromObject(obj)
	ctx, cancel := context.WithTimeout(ctx, k.shared.Allowed(obj.Spec.GetTimeout()))
	defer cancel()
	r, err := k.look(ctx, key, obj)
	if err != nil {
		k.shared.desk.refuse(key, failure.Wait(packagesv1.RepositoryNotReadyReason, 0, fmt.Errorf("repository %s: %w", obj.Name, err)))
	}
	return r, err
}

func (k *repositories) look(ctx context.Context, key types.NamespacedName, obj *packagesv1.Repository) (round, error) {
	var r round
	if obj.Undecodable != "" {
		return r, failure.Stall(packagesv1.InvalidSpecReason, errors.New(obj.Undecodable))
	}
	m, err := k.mirror(ctx, obj)
	if err != nil {
		return r, err
	}
	r.url = m.url
	before, isAsked := m.Snapshot(), obj.Annotations[meta.ReconcileRequestAnnotation] != obj.Status.LastHandledReconcileAt
	if err = k.shared.inBudget(ctx, obj, func(ctx context.Context) error {
		_, _, err := m.Sync(ctx)
		return err
	}); err != nil {
		return r, failure.Retry(packagesv1.SyncFailedReason, err)
	}
	known := k.shared.mirrors.get(key)
	k.shared.mirrors.put(m)
	k.shared.reviews.look(key, m.Snapshot() != before, isAsked)
	if known != nil && known.isDeployment != m.isDeployment {
		before = nil // Each of its packages is to be another one.
	}
	r.pruned = k.carryOut(ctx, obj, m)
	r.snapshot = m.Snapshot()
	err = k.show(ctx, obj, r.snapshot)
	if before != r.snapshot { // Also if not all is shown: the next look finds nothing that has moved.
		k.tell(ctx, key, before, r.snapshot)
	}
	return r, err
}

// mirror is what is known of the repository, as its objects say how to reach it now.
func (k *repositories) mirror(ctx context.Context, obj *packagesv1.Repository) (*mirror, error) {
	source, err := k.source(ctx, obj)
	if err != nil {
		return nil, err
	}
	made := &mirror{key: client.ObjectKeyFromObject(obj), branch: obj.Spec.GetBranch(), directory: obj.Spec.Directory, isDeployment: obj.Spec.Deployment}
	known := k.shared.mirrors.get(made.key)
	if made.trust, err = k.trust(ctx, source, known); err != nil || known != nil && known.trust != made.trust {
		k.shared.mirrors.forget(made.key) // Whatever fails from here on, nobody reads it under the trust of before.
	}
	if err != nil {
		return nil, err
	}
	settings, err := k.settings(ctx, obj, source)
	if err != nil {
		return nil, err
	}
	if made.trust != nil {
		settings.Push = git.Remote{}
	}
	if made.url, _, err = auth.SplitURL(settings.Fetch.URL); err != nil {
		return nil, err
	}
	if known := k.shared.mirrors.get(made.key); known != nil && known.Use(settings) {
		made.Repository = known.Repository
		return made, nil
	}
	made.Repository = k.shared.Depot.Repository(settings)
	return made, nil
}

// source is the GitRepository of the repository.
func (k *repositories) source(ctx context.Context, obj *packagesv1.Repository) (*sourcev1.GitRepository, error) {
	var source sourcev1.GitRepository
	name := obj.Spec.GitRepositoryRef.Name
	err := k.shared.Client.Get(ctx, types.NamespacedName{Namespace: obj.Namespace, Name: name}, &source)
	switch {
	case apierrors.IsNotFound(err):
		return nil, failure.Wait(packagesv1.GitRepositoryNotFoundReason, 0, fmt.Errorf("spec.gitRepositoryRef: there is no GitRepository %s in the namespace", name))
	case err != nil:
		return nil, fmt.Errorf("get GitRepository %s: %w", name, err)
	case source.Undecodable != "":
		return nil, failure.Wait(packagesv1.GitRepositoryNotFoundReason, 0, fmt.Errorf("GitRepository %s: %s", name, source.Undecodable))
	}
	return &source, nil
}

// settings say how to reach the repository, as the GitRepository has it.
func (k *repositories) settings(ctx context.Context, obj *packagesv1.Repository, source *sourcev1.GitRepository) (pkgrepo.Settings, error) {
	var settings pkgrepo.Settings
	name := source.Name
	settings.Tenant, settings.Branch, settings.Directory = obj.Namespace, obj.Spec.GetBranch(), obj.Spec.Directory
	settings.Wanted = map[string][]string{}
	users, err := k.users(ctx, client.ObjectKeyFromObject(obj))
	if err != nil {
		return settings, fmt.Errorf("list the variants: %w", err)
	}
	for i := range users {
		if users[i].Spec.Downstream.Repo == obj.Name {
			pkg := users[i].Spec.GetDownstreamPackage()
			settings.Wanted[pkg] = append(settings.Wanted[pkg], ownerOf(&users[i]))
		}
	}
	settings.Index = obj.Spec.History != nil && obj.Spec.History.Index
	if settings.Fetch, err = k.remote(ctx, source, ""); err != nil {
		return settings, fmt.Errorf("GitRepository %s: %w", name, err)
	}
	settings.Push = settings.Fetch
	if ref := obj.Spec.PushSecretRef; ref != nil {
		if settings.Push, err = k.remote(ctx, source, ref.Name); err != nil {
			return settings, fmt.Errorf("spec.pushSecretRef: %w", err)
		}
	}
	return settings, k.identify(ctx, obj, &settings)
}

// remote is the way to the repository: with the Secret where it is named, else as the GitRepository says.
func (k *repositories) remote(ctx context.Context, source *sourcev1.GitRepository, secret string) (git.Remote, error) {
	request := auth.GitRequest{Namespace: source.Namespace, URL: source.Spec.URL, SecretName: secret}
	if secret == "" {
		request.Provider, request.ServiceAccountName = source.Spec.Provider, source.Spec.ServiceAccountName
		if source.Spec.SecretRef != nil {
			request.SecretName = source.Spec.SecretRef.Name
		}
	}
	if source.Spec.ProxySecretRef != nil {
		request.ProxySecretName = source.Spec.ProxySecretRef.Name
	}
	found, err := k.shared.Credentials.Git(ctx, request)
	return git.Remote{URL: source.Spec.URL, Credential: found}, err
}

// Report implements kernel.Kind.
func (k *repositories) Report(obj *packagesv1.Repository, r round, err error) kernel.Report {
	s := r.snapshot
	if s == nil || err != nil {
		return kernel.Report{Facts: k.Table().Stated(obj)}
	}
	packages, revisions, changes := count(s)
	before := obj.Status
	obj.Status.URL, obj.Status.Head = r.url, s.Head
	obj.Status.Packages, obj.Status.Revisions, obj.Status.OpenChanges = capped(packages), capped(revisions), capped(changes)
	if isAsked := obj.Annotations[meta.ReconcileRequestAnnotation] != before.LastHandledReconcileAt; isAsked || isNews(obj, &before) {
		obj.Status.LastSyncTime = new(metav1.NewTime(k.shared.Clock.Now()))
	}
	message := fmt.Sprintf("%s at %s", counted(packages, "package"), cmp.Or(s.Head, "an empty branch"))
	if hidden := leftOut(s); hidden > 0 {
		message += fmt.Sprintf("; %s without an object, as a package has more than %d", counted(hidden, "open change"), maxOpen)
	}
	message = printable.Line(message+disregarded(s), maxConditionWords)
	return kernel.Report{Message: message, Facts: append(r.pruned.facts(), incomplete(s)...), Again: r.pruned.again()}
}

// isNews tells whether a look found what the status did not say before, or could not be sure of.
func isNews(obj *packagesv1.Repository, before *packagesv1.RepositoryStatus) bool {
	now := &obj.Status
	return now.URL != before.URL || now.Head != before.Head || now.Packages != before.Packages || now.Revisions != before.Revisions ||
		now.OpenChanges != before.OpenChanges || before.ObservedGeneration != obj.Generation || !conditions.IsReady(obj)
}

// Events implements kernel.Kind.
func (k *repositories) Events(before, after *packagesv1.Repository, r round, err error) (events []event.Event) {
	about := event.About(after, packagesv1.GroupVersion.WithKind(packagesv1.RepositoryKind))
	switch {
	case err != nil && !status.SaysTheSame(before, after):
		_, reason := k.Table().Explain(err)
		events = append(events, event.Failed(about, reason, err, ""))
	case err == nil && k.Table().HasFailed(before):
		events = append(events, event.Recovered(about, event.Artifact{}, fmt.Sprintf("Repository %s is synced again", after.Name)))
	}
	if len(r.pruned.gone) > 0 { // Also if not all is shown: no later look finds it.
		events = append(events, event.Happened(about, packagesv1.HistoryPrunedReason, r.pruned.said(), ""))
	}
	return events
}

// Settle implements kernel.Owner.
func (*repositories) Settle(context.Context, *packagesv1.Repository, round) error { return nil }

// Forget implements kernel.Forgetter.
func (k *repositories) Forget(key client.ObjectKey) {
	k.shared.mirrors.forget(key)
	k.shared.signers.forget(key)
	k.shared.reviews.drop(key)
	k.shared.desk.close(key)
}
