package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

const (
	// maxActions bounds a round. The longest way, a first installation, takes seven.
	maxActions = 24
	// parallel is how many members of one installation are worked on at once.
	parallel = 8
	// budget is the time after which a round begins no request for a member any more, and leaves the rest to the next one.
	budget = 2 * time.Minute
	// goOn is how soon a round follows one whose time was up.
	goOn = time.Second
)

// errLate says that something was not begun, because the round had taken its time: the next one goes on with it.
var errLate = errors.New("this takes longer than one round; it goes on in the next one")

// round is one look at an installation, and what follows from it.
type round struct {
	owner

	engine  *Engine
	in      Installation
	memory  *memory
	client  *cluster.Client
	record  *modulesv1.Inventory
	renders rendering
	out     Outcome

	// until is when the round begins nothing new any more.
	until time.Time
	// aim is the release that the round works for; nil is none.
	aim *aim
	// kept is the release on record, once it was asked for.
	kept *aim
	// held is why the round begins no new attempt: its error, once what can be done all the same is done.
	held error
	// heirs are who claims members, once that was asked.
	heirs heirs
	// homeless says that the installation's namespace is being deleted.
	homeless bool
	// removed are members that are gone, or were let go of, and still in the record.
	removed map[key]fate
	// deprived says that the round lacked rights for a deletion.
	deprived bool
	// did are the names of the actions that were begun.
	did map[string]bool
}

// round begins a round, which is the only one of its installation until it ends.
func (e *Engine) round(in Installation) (made *round, end func()) {
	mem := e.memory(in)
	mem.mu.Lock()
	made = &round{
		owner: owner{
			sight: sight{e.parts.Watcher, in.Identity, in.Key(), InstallationID(in.Name, in.Namespace), Manager(in.UID)},
			name:  in.Name, namespace: in.Namespace, policy: in.Spec.GetAdopt(),
		},
		engine: e, in: in, memory: mem, until: e.clock.Now().Add(budget), did: map[string]bool{}, removed: map[key]fate{},
	}
	return made, func() {
		made.renders.close()
		mem.mu.Unlock()
	}
}

// run chooses an action and does it, until there is none, or one has to wait.
func (r *round) run(ctx context.Context) error {
	if err := r.open(ctx); err != nil {
		return err
	}
	switch {
	case r.in.Deleting && r.record != nil:
		r.leaveHome(ctx)
	case !r.in.Deleting && r.in.Spec.GetManagement() != modulesv1.ManagementPaused:
		if err := r.takeAim(ctx); err != nil {
			return err
		}
	}
	for i := range maxActions {
		next := r.choose(ctx)
		if next.do == nil {
			return r.held
		}
		if i > 0 && errors.Is(r.over(ctx), errLate) {
			if r.in.Deleting {
				return late(StageDelete)
			}
			return late(StageApply)
		}
		if more, err := r.do(ctx, next); err != nil || !more {
			return cmp.Or(err, r.held)
		}
	}
	r.out.again(time.Second)
	return r.held
}

// do does an action, and says whether there may be more to do.
func (r *round) do(ctx context.Context, next action) (more bool, err error) {
	r.did[next.name] = true
	began := r.engine.clock.Now()
	more, err = next.do(ctx)
	if observer := r.engine.options.Observer; observer != nil {
		observer.Did(next.name, r.engine.clock.Now().Sub(began), err)
	}
	return more, err
}

// open loads the record and gets the client.
func (r *round) open(ctx context.Context) error {
	var err error
	if r.record, err = r.engine.parts.Records.Load(ctx, r.in.Namespace, r.in.Name); err != nil {
		return failure.At(StageRecord, fmt.Errorf("load the inventory: %w", err))
	}
	if r.record != nil && r.record.Data.InstallationUID != r.in.UID {
		if !r.in.Deleting {
			return failure.At(StageRecord, failure.Wait(modulesv1.OwnershipConflictReason, 0, fmt.Errorf(
				"the Inventory %s/%s is that of an earlier installation of the same name: it has to go first",
				r.in.Namespace, r.in.Name)))
		}
		// It is not ours to delete by, and nothing else says that this installation ever had anything.
		r.record = nil
	}
	r.client, err = r.engine.parts.Connector.As(r.in.Identity)
	if err != nil {
		return failure.At(StageApply, failure.Retry(modulesv1.FailedReason, err))
	}
	r.renders = rendering{renders: &r.engine.renders, in: r.in, client: r.client, salt: r.salt(), members: r.members()}
	return nil
}

// members are those on record.
func (r *round) members() []modulesv1.Member {
	if r.record == nil {
		return nil
	}
	return r.record.Data.Members
}

// salt is that on record, or the one that is going to be.
func (r *round) salt() string {
	switch {
	case r.record != nil && r.record.Data.Salt != "":
		return r.record.Data.Salt
	case r.memory.salt == "":
		r.memory.salt = rand.Text()
	}
	return r.memory.salt
}

// save writes the record with its data as the change leaves it.
func (r *round) save(ctx context.Context, change func(*modulesv1.InventoryData)) error {
	return r.store(ctx, func(record *modulesv1.Inventory) { change(&record.Data) })
}

// store writes the record, the first one too, as the change leaves it. Only then is it the record.
func (r *round) store(ctx context.Context, change func(*modulesv1.Inventory)) error {
	next, write := r.record.DeepCopy(), r.engine.parts.Records.Update
	if next == nil {
		write, next = r.engine.parts.Records.Create, &modulesv1.Inventory{
			TypeMeta:   metav1.TypeMeta{APIVersion: modulesv1.GroupVersion.String(), Kind: modulesv1.InventoryKind},
			ObjectMeta: metav1.ObjectMeta{Namespace: r.in.Namespace, Name: r.in.Name},
			Data:       modulesv1.InventoryData{InstallationUID: r.in.UID},
		}
	}
	next.Data.Salt = r.salt()
	change(next)
	r.memory.noteHealth(&next.Data)
	if r.in.Choice != nil {
		next.Data.Choice = r.in.Choice.DeepCopy()
	}
	if err := write(ctx, next); err != nil {
		return failure.At(StageRecord, fmt.Errorf("write the inventory: %w", err))
	}
	r.record = next
	return nil
}

// conclude fills in what the record says.
func (r *round) conclude() Outcome {
	r.out.Inventory = r.record
	if r.record != nil {
		r.out.Settled = r.record.Data.Attempt == nil && r.record.Data.Phase == modulesv1.PhaseInstalled
	}
	r.out.Unwatched, r.out.Unused = r.unwatched(), r.unused()
	byRef := func(a, b Problem) int { return strings.Compare(describe(a.Ref), describe(b.Ref)) }
	slices.SortStableFunc(r.out.Waiting, byRef)
	slices.SortStableFunc(r.out.Contested, byRef)
	return r.out
}

// unused are the variables that nothing asked for, of those that the installation itself gives.
func (r *round) unused() []string {
	if r.aim == nil || r.in.Spec.Config == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.aim.unused), func(name string) bool {
		_, own := r.in.Spec.Config.Substitute[name]
		return !own
	})
}

// over says why nothing new is to be begun. A slow API server would hold a worker else for as long as there are members.
func (r *round) over(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !r.engine.clock.Now().Before(r.until) {
		return errLate
	}
	return nil
}

// late is the failure of a round that did not come to its end, and met no error.
func late(stage failure.Stage) error {
	return failure.At(stage, failure.Wait(modulesv1.ProgressingReason, goOn, errLate))
}

// answer is what came of an item.
type answer[T, R any] struct {
	of    T
	found R
	err   error
}

// each does something for every item, some at a time, until it is over; the answers are in the items' order.
func each[T, R any](ctx context.Context, over func(context.Context) error, items []T, do func(T) (R, error)) []answer[T, R] {
	answers := make([]answer[T, R], len(items))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range items {
		group.Go(func() error {
			one := &answers[i]
			if one.of, one.err = items[i], over(ctx); one.err == nil {
				one.found, one.err = do(one.of)
			}
			return nil
		})
	}
	_ = group.Wait() // What went wrong is in the answers.
	return answers
}
