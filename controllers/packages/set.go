package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/predicates"
	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/fanout"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/status"
)

// +kubebuilder:rbac:groups=packages.sluice.dev,resources=packagevariantsets,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=packages.sluice.dev,resources=packagevariantsets/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=packages.sluice.dev,resources=packagevariantsets/finalizers,verbs=update
// +kubebuilder:rbac:groups=packages.sluice.dev,resources=packagevariants,verbs=create;delete

// sets makes PackageVariantSet a kernel.Kind: which targets there are, and a variant for each.
type sets struct {
	shared   Shared
	compiler *fanout.Compiler
	written  *written
	log      logr.Logger
	previews *previews
	// failed says of sets why variants could not be deleted, until their next reconciliation reports it.
	failed sync.Map
}

var (
	_ kernel.Kind[*packagesv1.PackageVariantSet, *spread]  = (*sets)(nil)
	_ kernel.Owner[*packagesv1.PackageVariantSet, *spread] = (*sets)(nil)
	_ kernel.Forgetter                                     = (*sets)(nil)
)

// spread is what came of one look at a set.
type spread struct {
	// isDone says that it came so far as to look at the variants.
	isDone bool
	// targets is how many there are.
	targets int
	wanted  fanout.Wanted
	// there are the variants that were there before, by name, and marks what they say of their revisions.
	there map[string]*packagesv1.PackageVariant
	marks map[packagesv1.Downstream]marks
	// rollout is how far the newest revision is, waits what it waits for, isStopped that it is a variant that fails, and
	// again when time alone changes something.
	rollout   *packagesv1.RolloutStatus
	waits     string
	isStopped bool
	again     time.Duration
	// have are the variants that are there now, and guard what is decided about those without a target.
	have  []*packagesv1.PackageVariant
	guard guard
	// repositories are those of the namespace, by name.
	repositories map[string]*packagesv1.Repository
	// late is how many variants were not what they were taken for: they are looked at again.
	late int
	// preview is what would become of the variants, and previewText the whole of it. held says why a revision is, and approved
	// which preview of it was.
	preview        *packagesv1.SetPreview
	previewText    []byte
	artifact       *meta.Artifact
	held, approved string
	// made, changed and gone count what was done.
	made, changed, gone int
}

// setupSet adds the controller of PackageVariantSet objects to the manager.
func setupSet(mgr ctrl.Manager, shared Shared, backoff *kernel.Backoff) error {
	compiler, err := fanout.NewCompiler()
	if err != nil {
		return err
	}
	compiler.Compiled = shared.Compiled
	k := &sets{
		shared: shared, compiler: compiler, written: newWritten(), previews: newPreviews(), log: mgr.GetLogger().WithName("packagevariantset"),
	}
	asked := predicate.Or(predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}, predicate.AnnotationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("packagevariantset").
		For(&packagesv1.PackageVariantSet{}, builder.WithPredicates(asked)).
		Watches(&packagesv1.PackageVariant{}, k.ofVariant()).
		Watches(&packagesv1.Repository{}, k.ofRepository(), builder.WithPredicates(predicate.Or(
			predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WatchesRawSource(ctrlsource.Func(shared.sets.Start)).
		WatchesRawSource(ctrlsource.Channel(shared.RebuildSet, &handler.EnqueueRequestForObject{})).
		WithOptions(shared.ControllerOptions(backoff)).
		Complete(kernel.New(shared.Shell, k, "", backoff))
}

// New implements kernel.Kind.
func (*sets) New() *packagesv1.PackageVariantSet { return &packagesv1.PackageVariantSet{} }

// View implements kernel.Kind.
func (*sets) View(obj *packagesv1.PackageVariantSet) kernel.View {
	return kernel.View{
		Suspended: obj.Spec.Suspend, Unreadable: obj.UnreadableStatus,
		Interval: obj.GetRequeueAfter(), Timeout: obj.Spec.GetTimeout(),
		ObservedGeneration: &obj.Status.ObservedGeneration, LastHandledReconcileAt: &obj.Status.LastHandledReconcileAt,
	}
}

// Table implements kernel.Kind.
func (*sets) Table() status.Table {
	return status.Table{SuspendedReason: packagesv1.SuspendedReason, Facts: []string{packagesv1.DeletionGuardedCondition, packagesv1.RolledOutCondition}}
}

// Forget implements kernel.Forgetter.
func (k *sets) Forget(key client.ObjectKey) {
	k.shared.SetLookups.Forget(key)
	k.shared.Gates.Forget(key)
	k.written.forget(key)
	k.failed.Delete(key)
	k.forgetPreview(key)
}

// Work implements kernel.Kind: it finds the targets, and makes their variants what they should be.
func (k *sets) Work(ctx context.Context, obj *packagesv1.PackageVariantSet, _ kernel.Announce) (*spread, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, k.shared.Allowed(obj.Spec.GetTimeout()), fmt.Errorf("spec.timeout is over"))
	defer cancel()
	s := &spread{}
	if obj.Undecodable != "" {
		return s, failure.Stall(packagesv1.InvalidSpecReason, errors.New(obj.Undecodable))
	}
	compiled, err := k.compiler.Compile(fmt.Sprintf("%s/%d", obj.UID, obj.Generation), &obj.Spec)
	if err != nil {
		return s, failure.Stall(packagesv1.InvalidSpecReason, err)
	}
	found, err := k.targets(ctx, obj)
	if err != nil {
		return s, err
	}
	s.targets, s.repositories = len(found.found), found.repositories
	if s.there, err = k.variants(ctx, obj); err != nil {
		return s, err
	}
	lacks, err := k.want(ctx, obj, s, compiled, found)
	if err != nil && s.preview != nil {
		return s, cmp.Or(k.publish(ctx, obj, s), err) // Nothing goes on before somebody has looked at it.
	}
	if err != nil {
		return s, err
	}
	if err := k.apply(ctx, obj, s); err != nil {
		return s, err
	}
	if err := k.publish(ctx, obj, s); err != nil {
		return s, err
	}
	if s.guard.isClosed {
		return s, failure.Wait(packagesv1.DeletionGuardedReason, 0, errors.New(s.guard.message))
	}
	if err := k.failedDeletion(client.ObjectKeyFromObject(obj)); err != nil {
		return s, err
	}
	if problems := len(s.wanted.Problems); problems > 0 {
		first := s.wanted.Problems[0]
		return s, failure.Retry(packagesv1.TargetsFailedReason, fmt.Errorf("%d of %d targets have no variant as they should, such as %s: %w", problems, s.targets, first.Target, first.Err))
	}
	if lacks == nil && s.isStopped {
		return s, failure.Wait(packagesv1.RolloutStoppedReason, 0, errors.New(s.waits))
	}
	return s, lacks
}

// apply makes the variants what they are to be, unless that is only to be shown.
func (k *sets) apply(ctx context.Context, obj *packagesv1.PackageVariantSet, s *spread) error {
	if s.preview == nil {
		k.forgetPreview(client.ObjectKeyFromObject(obj))
	}
	if obj.Spec.DryRun {
		s.have, s.isDone = slices.Collect(maps.Values(s.there)), true
		return nil
	}
	if err := k.spread(ctx, obj, s); err != nil {
		return err
	}
	s.isDone = true
	// Targets that a revision does not know have no problem: they wait, and whatever they have stays.
	s.wanted.Problems = slices.DeleteFunc(s.wanted.Problems, func(p fanout.Problem) bool { return errors.Is(p.Err, errNotThen) })
	return nil
}

// want works out what the variants are to be: with a rollout, in their turns.
func (k *sets) want(ctx context.Context, obj *packagesv1.PackageVariantSet, s *spread, compiled *fanout.Set, found *finding) (lacks, err error) {
	if obj.Spec.DryRun {
		return nil, k.dryRun(ctx, obj, s, compiled, found)
	}
	if obj.Spec.Rollout != nil {
		return k.rollOut(ctx, obj, s, compiled, found)
	}
	s.wanted = compiled.Variants(found.found, found.upstream(), found.seen)
	return nil, k.unroll(ctx, obj, s)
}

// Report implements kernel.Kind.
func (*sets) Report(obj *packagesv1.PackageVariantSet, s *spread, err error) kernel.Report {
	if s.isDone || s.preview != nil {
		obj.Status.Preview, obj.Status.Artifact = s.preview, s.artifact
	}
	if !s.isDone {
		return kernel.Report{Facts: (&sets{}).Table().Stated(obj)}
	}
	ready, open := tally(s.have)
	obj.Status.Targets, obj.Status.Variants, obj.Status.ReadyVariants, obj.Status.OpenVariants = capped(s.targets), capped(len(s.have)), capped(ready), capped(open)
	obj.Status.Unwanted, obj.Status.ProblemCount, obj.Status.Problems = capped(s.guard.kept()), capped(len(s.wanted.Problems)), nil
	for _, p := range s.wanted.Problems[:min(len(s.wanted.Problems), maxProblems)] {
		obj.Status.Problems = append(obj.Status.Problems, packagesv1.TargetProblem{
			Target: printable.Line(p.Target.String(), maxProblemText), Message: printable.Line(p.Err.Error(), maxProblemText),
		})
	}
	report := kernel.Report{Message: fmt.Sprintf("%d targets have their variants", s.targets) + failing(s), Again: s.again}
	if obj.Spec.DryRun {
		return dry(obj, s, report)
	}
	obj.Status.DeletionGuard = &s.guard.record
	switch {
	case len(s.guard.due) > 0 && err == nil:
		report.Progress, report.Again = "Deleting "+counted(len(s.guard.due), "variant")+" without a target", kernel.Sooner(s.again, countDelay)
	case s.guard.kept() > 0:
		report.Message += fmt.Sprintf("; %s without a target will stay for spec.deletionGuard.gracePeriod", counted(s.guard.kept(), "variant"))
	}
	if s.late > 0 {
		report.Progress, report.Again = fmt.Sprintf("%d variants have changed meanwhile", s.late), kernel.Sooner(s.again, countDelay)
	}
	if obj.Status.Rollout = s.rollout; s.rollout != nil {
		report.Facts = append(report.Facts, rolledOut(s))
	}
	if s.guard.isClosed {
		report.Facts = append(report.Facts, status.True(packagesv1.DeletionGuardedCondition, packagesv1.DeletionGuardedReason, s.guard.message))
	}
	return report
}

// dry is what is reported while nothing is done.
func dry(obj *packagesv1.PackageVariantSet, s *spread, report kernel.Report) kernel.Report {
	report.Facts = (&sets{}).Table().Stated(obj)
	report.Message = "dryRun leaves the variants as they are; status.preview shows what would become of them"
	if s.preview.Pending > 0 {
		report.Progress = "Working out what would become of the packages"
	}
	return report
}

// rolledOut says whether a rollout has come to its end.
func rolledOut(s *spread) status.Fact {
	switch {
	case s.isStopped:
		return status.False(packagesv1.RolledOutCondition, packagesv1.RolloutStoppedReason, s.waits)
	case s.held != "":
		return status.False(packagesv1.RolledOutCondition, packagesv1.PreviewNotApprovedReason, s.held)
	case s.waits != "":
		return status.False(packagesv1.RolledOutCondition, packagesv1.RolloutWaitsReason, s.waits)
	}
	return status.True(packagesv1.RolledOutCondition, packagesv1.SucceededReason, "All waves are done")
}

// The bounds that the schema has for problems.
const (
	maxProblems    = 50
	maxProblemText = 512
)

// Events implements kernel.Kind.
func (k *sets) Events(before, after *packagesv1.PackageVariantSet, s *spread, err error) []event.Event {
	about := event.About(after, packagesv1.GroupVersion.WithKind(packagesv1.PackageVariantSetKind))
	var events []event.Event
	if s.made+s.changed > 0 {
		events = append(events, event.Happened(about, packagesv1.VariantsChangedReason, fmt.Sprintf("Variants: %d made, %d changed", s.made, s.changed), ""))
	}
	events = append(events, s.guard.events(about)...)
	events = append(events, k.tellWaves(about, before, after)...)
	if s.approved != "" {
		events = append(events, event.Happened(about, packagesv1.PreviewApprovedReason, fmt.Sprintf("The preview %s was approved: its revision is rolled out", s.approved), ""))
	}
	switch {
	case err != nil && !status.SaysTheSame(before, after):
		_, reason := k.Table().Explain(err)
		events = append(events, event.Failed(about, reason, err, ""))
	case err == nil && k.Table().HasFailed(before):
		events = append(events, event.Recovered(about, event.Artifact{}, fmt.Sprintf("%d targets have their variants", s.targets)))
	}
	return events
}
