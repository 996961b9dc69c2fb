package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// history is what became of the attempts at an installation.
type history struct {
	Object   ref                      `json:"object"`
	Attempts []modulesv1.HistoryEntry `json:"attempts"`
}

func historyCommand(b *base) *cobra.Command {
	command := &cobra.Command{
		Use:               "history NAME",
		Short:             "Show what became of the last installations and upgrades, the newest first",
		Example:           "  sluice history redis -n team-a",
		ValidArgsFunction: b.complete(nil),
	}
	shown := bindAnswers(command)
	return b.on(command, func(ctx context.Context, args []string) error {
		k, name, err := one(args, kinds()[0].resource)
		if err != nil {
			return err
		}
		var obj modulesv1.ModuleInstallation
		if err := b.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: name}, &obj); err != nil {
			return b.notHad(ctx, k, name, err)
		}
		told := history{ref{k.Kind, b.namespace, name}, obj.Status.History}
		if len(told.Attempts) == 0 {
			fmt.Fprintln(b.ErrOut, "Nothing has been installed yet.")
		}
		return shown.show(b.Out, "History", told, told.print)
	})
}

func (h history) print(t table) error {
	if len(h.Attempts) == 0 {
		return nil
	}
	rows := [][]string{{"ENDED", "OUTCOME", "VERSION", "TEMPLATE", "DIGEST", "MESSAGE"}}
	for _, one := range h.Attempts {
		digest := one.Digest
		if !t.wide {
			digest = shorten(digest)
		}
		rows = append(rows, []string{t.since(one.At.Time), string(one.Outcome), one.Version, one.Template, digest, one.Message})
	}
	return t.rows(rows)
}
