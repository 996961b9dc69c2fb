package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/view"
)

// reconciler is one call of reconcile.
type reconciler struct {
	*base

	selection  selection
	waiting    waiting
	withSource bool
	noWait     bool
}

func reconcileCommand(b *base) *cobra.Command {
	r := &reconciler{base: b, selection: selection{
		can: func(k kind) bool { return k.answers }, cannot: "have no controller that could be asked: others make them",
	}}
	command := &cobra.Command{
		Use:   "reconcile [KIND] NAME... | KIND/NAME...",
		Short: "Have objects looked at now, and wait for what comes of it",
		Example: `  sluice reconcile redis --with-source
  sluice reconcile gitrepository/app -n team-a
  sluice reconcile sources --all --no-wait`,
		ValidArgsFunction: b.complete(kindNames("sources")),
	}
	r.selection.bind(command)
	r.waiting.bind(command)
	command.Flags().BoolVar(&r.withSource, "with-source", false, "First do the same for what the objects take from.")
	command.Flags().BoolVar(&r.noWait, "no-wait", false, "Ask, and do not wait for what comes of it.")
	command.MarkFlagsMutuallyExclusive("no-wait", timeoutFlag)
	return r.on(command, r.run)
}

func (r *reconciler) run(ctx context.Context, args []string) error {
	targets, err := r.find(ctx, args)
	if err != nil {
		return err
	}
	inTime, stop, err := r.waiting.within(ctx)
	if err != nil {
		return err
	}
	defer stop()
	layers := [][]*target{targets}
	if r.withSource {
		if layers, err = layered(ctx, r.session, targets); err != nil {
			return err
		}
	}
	var problems []error
	for _, layer := range layers {
		if err := r.round(ctx, inTime, layer); err != nil {
			problems = append(problems, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(append(problems, answered(slices.Concat(layers...)))...)
}

// round asks for a layer, and waits in time for what comes of it.
func (r *reconciler) round(ctx, inTime context.Context, layer []*target) error {
	if inTime.Err() != nil {
		for _, t := range layer {
			t.at = "not asked for"
		}
		return unsettled(inTime, layer)
	}
	asked, err := r.ask(ctx, layer)
	if r.noWait {
		return err
	}
	return errors.Join(err, r.waiting.on(r.base, attempted).await(inTime, asked))
}

// find finds what is to be reconciled, and refuses what cannot be.
func (r *reconciler) find(ctx context.Context, args []string) ([]*target, error) {
	targets, err := r.selection.find(ctx, r.base, args)
	if err != nil {
		return nil, err
	}
	var problems []error
	targets = slices.DeleteFunc(targets, func(t *target) bool {
		why := t.unasked()
		if why != nil && r.selection.named() {
			problems = append(problems, why)
		} else if why != nil {
			r.leaveOut(t, why)
		}
		return why != nil
	})
	return targets, errors.Join(problems...)
}

// unasked is why nobody would work on an object if asked to.
func (t *target) unasked() *CommandError {
	why := &CommandError{Code: ExitUnanswered, What: "reconcile " + t.String()}
	switch {
	case view.IsSuspended(t.obj):
		why.Why, why.Help = "it is suspended"+view.SuspendedNote(t.obj), []string{"sluice resume " + t.typed()}
	case !t.answers, view.IsStatic(t.obj):
		why.Why = "nobody works on it: it says where something is, and others look there"
	default:
		return nil
	}
	return why
}

// ask asks for those that nothing stands in the way of, and says for which it waits.
func (r *reconciler) ask(ctx context.Context, layer []*target) (asked []*target, err error) {
	var problems []error
	for _, t := range layer {
		if at := slices.IndexFunc(t.from, func(f *target) bool { return !r.noWait && f.verdict != yes }); at >= 0 {
			t.verdict, t.at = no, "not asked for, as "+t.from[at].String()+" is not ready"
			t.print(r.Out)
			continue
		}
		if why := t.unasked(); why != nil {
			// It is there for others alone, and they may do without.
			t.verdict = yes
			r.leaveOut(t, why)
			continue
		}
		if err := r.request(ctx, t, map[string]any{}); err != nil {
			t.verdict = no
			problems = append(problems, err)
			if ctx.Err() != nil {
				break
			}
			continue
		}
		if r.noWait {
			fmt.Fprintln(r.Out, t.String()+"  asked for")
		}
		asked = append(asked, t)
	}
	return asked, errors.Join(problems...)
}

// leaveOut tells that an object is not asked for, where that may surprise.
func (r *reconciler) leaveOut(t *target, why *CommandError) {
	if !r.waiting.quiet && len(why.Help) > 0 {
		fmt.Fprintf(r.ErrOut, "%s is left out: %s.\n", t, printable.Line(why.Why, maxProblem))
	}
}

// request patches an object, and asks for it to be looked at.
func (s *session) request(ctx context.Context, t *target, patch map[string]any) error {
	t.asked = time.Now()
	t.token = t.asked.Format(time.RFC3339Nano)
	return s.patch(ctx, t, annotated(patch, map[string]any{meta.ReconcileRequestAnnotation: t.token}))
}

// annotated is the patch with further annotations; one that is nil is taken away.
func annotated(patch map[string]any, annotations map[string]any) map[string]any {
	metadata, _ := patch["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		patch["metadata"] = metadata
	}
	all, _ := metadata["annotations"].(map[string]any)
	if all == nil {
		all = map[string]any{}
		metadata["annotations"] = all
	}
	maps.Copy(all, annotations)
	return patch
}

// patch changes these fields of an object, and no others.
func (s *session) patch(ctx context.Context, t *target, patch map[string]any) error {
	raw, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	obj := t.obj.DeepCopy()
	if err := s.Patch(ctx, obj, client.RawPatch(types.MergePatchType, raw), manager); err != nil {
		told := explain("patch "+t.String(), err, "sluice-edit")
		if apierrors.IsNotFound(err) && len(told.Help) == 0 {
			told.Why = "it was deleted meanwhile"
		}
		if told.changed = apierrors.IsConflict(err); told.changed {
			told.Code, told.Why = ExitNo, "it has changed meanwhile"
		}
		return told
	}
	t.obj = obj
	return nil
}

// attempted says how the attempt ended that was asked for.
func attempted(t *target) (verdict, string) {
	switch {
	case t.obj == nil && t.first.GetDeletionTimestamp() != nil:
		return yes, "gone"
	case t.obj == nil:
		return no, "deleted meanwhile"
	case view.IsStatic(t.obj):
		return yes, string(view.Ready)
	}
	if !t.isAnswered() {
		return pending, "nobody has answered yet; " + described(view.Of(t.obj))
	}
	fact := view.Of(t.obj)
	switch work := view.Work(t.obj); {
	case fact.State == view.Suspended:
		return no, described(fact)
	case !view.IsObserved(t.obj):
		return pending, described(fact)
	case fact.State == view.Blocked, work.State == view.Failed, work.State == view.Stalled:
		return no, described(fact)
	case fact.State == view.Deleting:
		return pending, described(fact)
	case work.State == view.Ready, work.State == view.Held, work.State == view.Conflicted:
		return yes, t.cameOf(fact)
	}
	return pending, described(fact)
}

// isAnswered says that the request was answered, or a later one of somebody else.
func (t *target) isAnswered() bool {
	handled := field("", "status.lastHandledReconcileAt").value(t.obj)
	return handled == t.token || handled != "" && handled == t.obj.GetAnnotations()[meta.ReconcileRequestAnnotation]
}

// cameOf says what came of the attempt.
func (t *target) cameOf(fact view.Fact) string {
	product := field("", t.product).value
	before, after := shorten(product(t.first)), shorten(product(t.obj))
	said := []string{"unchanged"}
	switch {
	case before != after && before == "":
		said = []string{after}
	case before != after:
		said = []string{before + table{plain: isPlain(environment)}.arrow() + after}
	case after != "" && !t.isSource:
		said = []string{after, "unchanged"}
	}
	if fact.State != view.Ready {
		said = append(said, described(fact))
	}
	return strings.Join(said, ", ")
}
