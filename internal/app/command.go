// Package app wires the parts into one program: flags in, a running manager out.
// It does not know how any part does its work.
package app

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/fluxcd/pkg/runtime/logger"
	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/engine/build"
)

// Main runs the command line and returns the process's exit status.
func Main(args []string) int {
	if len(args) > 0 && args[0] == build.Subcommand {
		// One build in a confined process of this same program: nothing else of it is started.
		return build.Main()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	root := &cobra.Command{
		Use:           "sluice",
		Short:         "Sluice turns Git commits and OCI artifacts into verified artifacts, and puts them to use in a cluster",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(managerCommand())
	root.SetArgs(args)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "sluice:", err)
		return 1
	}
	return 0
}

func managerCommand() *cobra.Command {
	options := Options{}
	command := &cobra.Command{
		Use:   "manager",
		Short: "Run the controllers and the artifact server",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := options.Validate(); err != nil {
				return err
			}
			logger.SetLogger(logger.NewLogger(options.Log))
			return Run(cmd.Context(), options)
		},
	}
	options.BindFlags(command.Flags(), os.LookupEnv)
	return command
}
