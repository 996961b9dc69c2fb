// Package cli is what people type: commands that read what the controllers work on, with the rights of whoever types.
// It does not know the controllers, nor how a process runs them.
package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Commands are the commands for people. The scheme has our kinds.
func Commands(streams genericiooptions.IOStreams, scheme *runtime.Scheme) []*cobra.Command {
	var commands []*cobra.Command
	for _, made := range []func(*base) *cobra.Command{
		getCommand, describeCommand, whyCommand, treeCommand, traceCommand, eventsCommand, planCommand, approveCommand, impactCommand, buildCommand, historyCommand, logsCommand, exportCommand, versionCommand, checkCommand, verifyCommand, installCommand, uiCommand,
		reconcileCommand, suspendCommand, resumeCommand, waitCommand, pushCommand, releaseCommand,
	} {
		command := made(newBase(streams, scheme))
		command.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
			return usage(err.Error(), "see "+cmd.CommandPath()+" --help")
		})
		commands = append(commands, command)
	}
	return commands
}
