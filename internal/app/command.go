// Package app wires the parts into one program: flags in, a running manager out.
// It does not know how any part does its work.
package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fluxcd/pkg/runtime/logger"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"sluice.dev/sluice/internal/cli"
	"sluice.dev/sluice/internal/engine/build"
)

// Main runs the command line and returns the process's exit status. The name is the one that the process was called by.
func Main(name string, args []string) int {
	if len(args) > 0 && args[0] == build.Subcommand {
		// One build in a confined process of this same program: nothing else of it is started.
		return build.Main()
	}
	if filepath.Base(name) == completer {
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // A second signal ends the process at once.

	root := &cobra.Command{
		Use:           "sluice",
		Short:         "Sluice turns Git commits and OCI artifacts into verified artifacts, and puts them to use in a cluster",
		SilenceUsage:  true,
		SilenceErrors: true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: calledAs(name)},
	}
	root.AddCommand(managerCommand())
	scheme, err := newScheme()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sluice:", err)
		return 1
	}
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root.AddCommand(cli.Commands(streams, scheme)...)
	root.SetArgs(args)
	return exit(root.ExecuteContext(ctx))
}

// completer is what kubectl calls to complete what is typed after "kubectl sluice".
const completer = "kubectl_complete-sluice"

// calledAs is what people type: a plugin is a word after its program's.
func calledAs(name string) string {
	switch base := filepath.Base(name); base {
	case completer:
		return "kubectl sluice"
	case "kubectl-sluice", "flux-sluice":
		return strings.Replace(base, "-", " ", 1)
	}
	return "sluice"
}

// exit tells why a command failed, and what the process ends with.
func exit(err error) int {
	if err == nil {
		return 0
	}
	for line := range strings.SplitSeq(strings.TrimSpace(err.Error()), "\n") {
		if line == "" {
			continue
		}
		if !strings.HasPrefix(line, " ") {
			line = "sluice: " + line
		}
		fmt.Fprintln(os.Stderr, line)
	}
	if _, isManager := errors.AsType[*managerError](err); isManager {
		return 1
	}
	return cli.ExitCode(err)
}

// managerError is why the manager does not run: of that, the status is 1.
type managerError struct{ error }

// Unwrap gives what was wrong.
func (e *managerError) Unwrap() error { return e.error }

func managerCommand() *cobra.Command {
	options := Options{}
	command := &cobra.Command{
		Use:   "manager",
		Short: "Run the controllers and the artifact server",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := options.Validate()
			if err == nil {
				logger.SetLogger(logger.NewLogger(options.Log))
				err = Run(cmd.Context(), options)
			}
			if err != nil {
				return &managerError{err}
			}
			return nil
		},
	}
	options.BindFlags(command.Flags(), os.LookupEnv)
	return command
}
