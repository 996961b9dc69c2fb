package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/printable"
)

// approver is one call of approve.
type approver struct {
	*planner

	digest string
	yes    bool
}

func approveCommand(b *base) *cobra.Command {
	a := &approver{planner: newPlanner(b)}
	command := &cobra.Command{
		Use:   "approve NAME",
		Short: "Show the plan that waits for approval, and approve it",
		Example: `  sluice approve redis -n team-a
  sluice approve redis --digest sha256:5f21c0d94e11...`,
		ValidArgsFunction: b.completeInstallations,
	}
	a.shown = bindAnswers(command)
	a.bind(command)
	flags := command.Flags()
	flags.StringVar(&a.digest, "digest", "", "Approve this plan, without being asked. Whatever else waits is not approved.")
	flags.BoolVarP(&a.yes, "yes", "y", false, "Approve the plan that is shown, without being asked.")
	bindSystem(flags, &a.given)
	return b.on(command, a.run)
}

func (a *approver) run(ctx context.Context, args []string) error {
	_, name, err := one(args, kinds()[0].resource)
	if err != nil {
		return err
	}
	if !a.yes && a.digest == "" && !isTerminal(a.In) {
		return unasked("say with --digest which plan is approved")
	}
	obj, err := a.waiting(ctx, name)
	if err != nil {
		return err
	}
	digest := obj.Status.Pending.Plan.Digest
	if a.digest != "" && a.digest != digest {
		return &CommandError{Code: ExitNo, What: a.what(name), Why: "the plan that waits is " + digest, Help: []string{"sluice plan " + name + " -n " + a.namespace + " shows it"}}
	}
	if err := a.tell(ctx, name, obj.Status.Pending); err != nil {
		return err
	}
	if a.digest == "" && !a.yes {
		if err := a.agreed(ctx, a.what(name), "Approve "+digest); err != nil {
			return err
		}
	}
	return a.approve(ctx, obj, digest)
}

func (a *approver) what(name string) string { return "approve the plan of " + a.namespace + "/" + name }

// waiting is the installation, of which a plan waits.
func (a *approver) waiting(ctx context.Context, name string) (*modulesv1.ModuleInstallation, error) {
	obj := &modulesv1.ModuleInstallation{}
	if err := a.Get(ctx, client.ObjectKey{Namespace: a.namespace, Name: name}, obj); err != nil {
		return nil, a.notHad(ctx, kinds()[0], name, err)
	}
	if obj.Status.Pending == nil || obj.Status.Pending.Plan == nil || obj.Status.ObservedGeneration != obj.Generation {
		told := &CommandError{Code: ExitNo, What: a.what(name), Why: "no plan waits"}
		if pending := obj.Status.Pending; pending != nil {
			told.Why += ": " + (&reasoned{pending.Reason, pending.Message}).String()
		}
		return nil, told
	}
	return obj, nil
}

// tell shows the plan that waits. Where it cannot be made here, whoever has named its digest has seen it.
func (a *approver) tell(ctx context.Context, name string, pending *modulesv1.Pending) error {
	told, err := a.make(ctx, name)
	if err != nil {
		if a.digest == "" || isGeneral(err) {
			return err
		}
		fmt.Fprintln(a.ErrOut, "The plan is not shown: "+printable.Line(err.Error(), maxProblem))
		return nil
	}
	if err := a.show(told); err != nil {
		return err
	}
	if !told.isOf(pending) {
		return &CommandError{Code: ExitNo, What: a.what(name), Why: "the plan of now is another one than the controllers have made", Help: []string{"they make it anew; try again then"}}
	}
	return nil
}

// isOf says that what was shown is what waits. Without the Inventory there is no digest to tell by, and then it is the release that does.
func (p planned) isOf(pending *modulesv1.Pending) bool {
	if p.Digest != "" {
		return p.Digest == pending.Plan.Digest
	}
	return p.To.Version == pending.Version && p.To.Template == pending.Template
}

// approve writes the digest into the spec that it was shown for.
func (a *approver) approve(ctx context.Context, obj *modulesv1.ModuleInstallation, digest string) error {
	const tries = 5
	generation := obj.Generation
	for range tries {
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"resourceVersion": obj.ResourceVersion},
			"spec":     map[string]any{"upgrade": map[string]any{"approve": digest}},
		})
		if err != nil {
			return fmt.Errorf("encode the patch: %w", err)
		}
		err = a.Patch(ctx, obj.DeepCopy(), client.RawPatch(types.MergePatchType, patch), manager)
		if err == nil {
			fmt.Fprintf(a.ErrOut, "Approved %s.\n", printable.Line(digest, maxProblem))
			return nil
		}
		if !apierrors.IsConflict(err) {
			return explain(a.what(obj.Name), err, "sluice-edit")
		}
		// A report of the controllers changes the object too, and nothing of what was approved.
		now, err := a.waiting(ctx, obj.Name)
		if err != nil {
			return err
		}
		if obj = now; obj.Generation != generation || obj.Status.Pending.Plan.Digest != digest {
			break
		}
	}
	changed := &CommandError{Code: ExitNo, What: a.what(obj.Name), Why: "it has changed since the plan was shown, and was not approved"}
	told, err := a.make(ctx, obj.Name)
	if err == nil {
		err = a.show(told)
	}
	return errors.Join(changed, err)
}
