package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/view"
)

// aim is what objects are waited for to be.
type aim struct {
	// holds says that an object is so, and why it is not yet.
	holds func(*target) (bool, string)
	// installations says that only those can be so, and absence that what is not there is.
	installations, absence bool
}

// aimOf reads what --for asks for.
func aimOf(text string) (aim, error) {
	word, version, _ := strings.Cut(text, "=")
	switch {
	case text == "ready":
		return aim{holds: isReady}, nil
	case text == "healthy":
		return aim{holds: isHealthy, installations: true}, nil
	case text == "uptodate":
		return aim{holds: isUpToDate}, nil
	case word == "version" && version != "":
		return aim{holds: func(t *target) (bool, string) { return hasVersion(t, version) }, installations: true}, nil
	case text == "gone":
		return aim{holds: isGone, absence: true}, nil
	}
	return aim{}, usage("--for "+text+" is nothing to wait for", "it is one of: ready, healthy, uptodate, version=V, gone")
}

func waitCommand(b *base) *cobra.Command {
	var chosen selection
	var waiting waiting
	var aimed string
	command := &cobra.Command{
		Use:   "wait [KIND] NAME... | KIND/NAME...",
		Short: "Wait until objects are ready, healthy, up to date or gone",
		Example: `  sluice wait redis --for version=1.4.2
  sluice wait sources --all --timeout 1m
  sluice wait mi/redis --for gone`,
		ValidArgsFunction: b.complete(kindNames("sources")),
	}
	chosen.bind(command)
	waiting.bind(command)
	command.Flags().StringVar(&aimed, "for", "ready", "What to wait for: ready, healthy, uptodate, version=V, gone.")
	cobra.CheckErr(command.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(
		[]string{"ready", "healthy", "uptodate", "version=", "gone"}, cobra.ShellCompDirectiveNoFileComp)))
	return b.on(command, func(ctx context.Context, args []string) error {
		aim, err := aimOf(aimed)
		if err != nil {
			return err
		}
		chosen.can = func(k kind) bool { return !aim.installations || k.Kind == modulesv1.ModuleInstallationKind }
		chosen.cannot, chosen.absenceWillDo = "cannot be waited for to be "+aimed, aim.absence
		targets, err := chosen.find(ctx, b, args)
		if err != nil {
			return err
		}
		inTime, stop, err := waiting.within(ctx)
		if err != nil {
			return err
		}
		defer stop()
		return errors.Join(waiting.on(b, aim.judge).await(inTime, targets), answered(targets))
	})
}

// judge says whether an object is as it is to be, or never will without an edit.
func (a aim) judge(t *target) (verdict, string) {
	holds, how := a.holds(t)
	switch {
	case holds:
		return yes, how
	case t.obj == nil:
		return no, "deleted meanwhile"
	case !a.absence && view.IsObserved(t.obj) && view.Of(t.obj).State == view.Stalled:
		return no, how
	}
	return pending, how
}

// isReady says that an object is as its spec asks for.
func isReady(t *target) (bool, string) {
	if t.obj == nil {
		return false, ""
	}
	work := view.Work(t.obj).State
	is := t.obj.GetDeletionTimestamp() == nil && view.IsObserved(t.obj) && slices.Contains([]view.State{view.Ready, view.Held, view.Conflicted}, work)
	return is, described(view.Of(t.obj))
}

// isHealthy says that the members of an installation are.
func isHealthy(t *target) (bool, string) {
	_, how := isReady(t)
	if t.obj == nil || !view.IsTrue(t.obj, modulesv1.HealthyCondition) {
		return false, how
	}
	return true, "healthy"
}

// isUpToDate says that an object is ready, and holds nothing back.
func isUpToDate(t *target) (bool, string) {
	ready, how := isReady(t)
	if !ready || view.Work(t.obj).State != view.Ready {
		return false, how
	}
	return t.Kind != modulesv1.ModuleInstallationKind || view.IsTrue(t.obj, modulesv1.UpToDateCondition), how
}

// hasVersion says that an installation has this version installed, and is ready.
func hasVersion(t *target, version string) (bool, string) {
	ready, how := isReady(t)
	if t.obj == nil {
		return false, how
	}
	current := cmp.Or(field("", t.product).value(t.obj), "no version")
	return ready && current == version, fmt.Sprintf("%s; %s", current, how)
}

// isGone says that an object is not there any more; one of its name that was made since is another one.
func isGone(t *target) (bool, string) {
	if t.obj == nil || t.first == nil || t.first.GetUID() != t.obj.GetUID() {
		return true, "gone"
	}
	return false, described(view.Of(t.obj))
}
