package installation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/controllers/modules/wakes"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/catalog/objects"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/printable"
)

// round is what came of one look at an installation: what was chosen, what is in the way, and what the engine did.
type round struct {
	// looked says that the record could be read, so that status can say what is installed.
	looked    bool
	inventory *modulesv1.Inventory
	// lost says that there was a record before the round, and that nothing is left of it.
	lost bool

	// chosen says that the catalogue was asked, decision is what it answered, and resolve what it answers of the inventory
	// that the round has by now.
	chosen   bool
	decision catalog.Decision
	resolve  func() catalog.Decision
	// desired is the release that the spec leads to; pending is why it is not being installed.
	desired *modulesv1.Release
	pending *modulesv1.Pending
	// unread is why the catalogue, or what it says of a release, could not be read. What is installed is kept all the same.
	unread error
	// planAgain is when a plan that could not be made is tried again; 0 when there is none.
	planAgain time.Duration

	identity cluster.Identity
	outcome  engine.Outcome
	// acted says that the engine had something to do or to look after.
	acted bool
	// halted says that an attempt has stopped half way, because it was approved with another config.
	halted bool
	// awaited is what has to move before the installation can, and does not belong to it.
	awaited []wakes.Awaited
	// asking says that an edit of the spec waits for its approval, so that what is installed is kept as it was made.
	asking bool
}

// Work implements kernel.Kind: it chooses a release, and has the engine bring the cluster there. Whatever is in the way
// of the choice, what is installed is looked after.
func (k *installations) Work(ctx context.Context, obj *modulesv1.ModuleInstallation, _ kernel.Announce) (round, error) {
	var r round
	record, other, lost, err := k.load(ctx, obj)
	if err != nil {
		return r, err
	}
	r.inventory, r.lost = record, lost
	switch {
	case other != nil && !other.DeletionTimestamp.IsZero():
		// The object that it was kept for went without its finalizer, so that nobody else lets it go.
		if err := k.options.Records.Delete(ctx, other); err != nil {
			return r, err
		}
	case other != nil:
		// It is on its way out as well, which somebody else writes down: what is in memory would never say so.
		k.options.Records.Forget(client.ObjectKeyFromObject(obj))
	}
	r.looked = true
	defer k.need(obj, &r)
	identity, identityErr := k.identity(ctx, obj)
	r.identity = identity
	memory := k.memoryOf(obj)

	if obj.Undecodable != "" {
		// Without the spec nobody knows as whom to work, nor what config to keep.
		return r, failure.Stall(modulesv1.InvalidRequestReason, errors.New(obj.Undecodable))
	}
	in := k.installation(obj, identity)
	target, unread := k.choose(ctx, obj, &r, func(candidate *engine.Target) (*planned, error) {
		if identityErr != nil {
			return nil, identityErr
		}
		return k.plan(ctx, obj, in, candidate, &r, memory)
	})
	if unread != nil {
		r.unchoose(unread)
	}
	if identityErr != nil {
		return r, cmp.Or(unread, identityErr)
	}
	in.Target, in.Choice = target, objects.CatalogChoice(obj, r.decision)
	current, currentErr := k.current(ctx, r.inventory)
	if currentErr != nil {
		r.unread = cmp.Or(unread, currentErr)
		if r.inventory.Data.Attempt != nil {
			// What its template says of health is not known, so that nothing says when the attempt has come to its end.
			current = nil
		}
	}
	in.Current = current
	if err := k.keep(ctx, obj, in, &r, memory); err != nil {
		return r, err
	}
	return r, cmp.Or(r.unread, stall(r.decision.Hold), leftAlone(obj, r))
}

// keep has the engine work with the values that there are, and says what they lack after that.
func (k *installations) keep(ctx context.Context, obj *modulesv1.ModuleInstallation, in engine.Installation, r *round, memory *memory) error {
	values, variablesErr := k.readVariables(ctx, obj, in.Identity, memory)
	in.Variables = values
	if variablesErr != nil {
		// What is installed is kept with the values that it was made with.
		in.Target = nil
	}
	if variablesErr != nil && values == nil {
		// These are not known any more, so that nothing can be rendered. What is there is looked at all the same.
		in.Current = nil
	}
	switch {
	case r.asking:
		in = memory.asMade(in, r.inventory)
		r.halted = r.inventory.Data.Attempt != nil
	case !k.mayGoOn(ctx, obj, in, r):
		in.Current, r.halted = nil, true
	}
	k.options.Wakes.Judge(client.ObjectKeyFromObject(obj), expressions(in)...)
	err := k.act(ctx, in, r)
	if err == nil && r.outcome.Settled && (in.Target != nil || in.Current != nil) {
		memory.made = &made{config: in.Spec.Config, prune: in.Spec.Prune, variables: in.Variables}
	}
	if in.Target != nil && r.pending == nil && r.inventory != nil {
		r.lookBack()
	}
	r.awaited = dependencies(*r, err)
	return cmp.Or(err, variablesErr)
}

// lookBack sees the choice from what the round has made of it, as the next one would, so that status is written once.
func (r *round) lookBack() {
	now := r.resolve()
	if now.Target != nil && now.Target.Template == r.decision.Target.Template && now.Target.Digest == r.decision.Target.Digest {
		r.decision = now
	}
	// What was one step on the way to another release is no upgrade any more either.
	r.decision.Upgrades = now.Upgrades
	r.decision.Changed = !objects.SameRelease(r.inventory.Data.Current, r.desired)
}

// expressions are what templates say of the health of what is, or comes to be, installed.
func expressions(in engine.Installation) []modulesv1.HealthExpression {
	var all []modulesv1.HealthExpression
	for _, target := range []*engine.Target{in.Target, in.Current} {
		if target != nil {
			all = append(all, target.Health...)
		}
	}
	return all
}

// unchoose takes back what was found so far, so that status goes on saying what it said: the catalogue could not be read.
func (r *round) unchoose(because error) {
	r.unread = because
	r.chosen, r.decision, r.desired, r.pending = false, catalog.Decision{}, nil, nil
}

// act has the engine do a round, unless there is nothing to install and nothing installed.
func (k *installations) act(ctx context.Context, in engine.Installation, r *round) error {
	if in.Target == nil && r.inventory == nil {
		return nil
	}
	outcome, err := k.options.Engine.Reconcile(ctx, in)
	r.outcome, r.acted = outcome, true
	if outcome.Inventory != nil {
		r.inventory = outcome.Inventory
	}
	if err == nil || failure.Of(err).Reason != modulesv1.DependencyNotReadyReason {
		return err
	}
	if r.inventory == nil || r.inventory.Data.Current == nil {
		return err
	}
	// Something is installed and goes on working: the new release waits as it would for any other consent.
	k.hold(r, modulesv1.DependencyNotReadyReason, err.Error())
	return nil
}

// dependencies are the objects that the installation waits for, if it does.
func dependencies(r round, err error) []wakes.Awaited {
	if (r.pending == nil || r.pending.Reason != modulesv1.DependencyNotReadyReason) &&
		(err == nil || failure.Of(err).Reason != modulesv1.DependencyNotReadyReason) {
		return nil
	}
	waiting := make([]wakes.Awaited, 0, len(r.outcome.Depends))
	for _, ref := range r.outcome.Depends {
		waiting = append(waiting, wakes.Awaited{Identity: r.identity, GVK: ref.GVK, Namespace: ref.Namespace, Name: ref.Name})
	}
	return waiting
}

// installation is what the engine has to know of the object, whatever is chosen.
func (k *installations) installation(obj *modulesv1.ModuleInstallation, identity cluster.Identity) engine.Installation {
	request, asked := meta.ReconcileAnnotationValue(obj.Annotations)
	in := engine.Installation{
		Name: obj.Name, Namespace: obj.Namespace, UID: string(obj.UID), Spec: obj.Spec, Identity: identity,
		Deleting: !obj.DeletionTimestamp.IsZero(),
		Verify:   asked && request != obj.Status.LastHandledReconcileAt,
	}
	in.Spec.Timeout = &metav1.Duration{Duration: k.options.Allowed(obj.Spec.GetTimeout())}
	if len(obj.Spec.DependsOn) > 0 {
		// It was decoded from JSON, so that it can be encoded again.
		fields, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		in.Self = &unstructured.Unstructured{Object: fields}
		in.Self.SetGroupVersionKind(modulesv1.GroupVersion.WithKind(modulesv1.ModuleInstallationKind))
	}
	return in
}

// stall is the error of a request that leads nowhere; nil where something is installed that can be kept.
func stall(hold *catalog.Hold) error {
	if hold == nil || !hold.Stalled {
		return nil
	}
	return failure.Stall(hold.Reason, errors.New(hold.Message))
}

// leftAlone is the error of an installation that is not as it was installed, and that nobody is to mend; nil where it is.
func leftAlone(obj *modulesv1.ModuleInstallation, r round) error {
	if obj.Spec.GetManagement() != modulesv1.ManagementPaused || len(r.outcome.Drifted) == 0 {
		return nil
	}
	return failure.Stall(modulesv1.PausedReason, fmt.Errorf(
		"%s not as applied; objects are left alone while management is Paused", named(r.outcome.Drifted)))
}

// hold says what the chosen release waits for.
func (k *installations) hold(r *round, reason, message string) {
	pending := &modulesv1.Pending{Reason: reason, Message: printable.Cut(message, maxMessage)}
	if r.desired != nil {
		pending.Version, pending.Template = r.desired.Version, r.desired.Template
	}
	r.pending = pending
}

// Settle implements kernel.Owner: it watches what the installation waits for, and only while it waits.
func (k *installations) Settle(_ context.Context, obj *modulesv1.ModuleInstallation, r round) error {
	k.lookouts.Set(client.ObjectKeyFromObject(obj), r.awaited) //nolint:contextcheck,nolintlint // The watches outlive the round.
	return nil
}
