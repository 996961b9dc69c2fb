package cli

import (
	"context"
	"io"
	"slices"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
)

// base is what every command has that asks an API server.
type base struct {
	genericiooptions.IOStreams
	*session

	scheme *runtime.Scheme
	config *genericclioptions.ConfigFlags
}

func newBase(streams genericiooptions.IOStreams, scheme *runtime.Scheme) *base {
	return &base{IOStreams: streams, scheme: scheme, config: genericclioptions.NewConfigFlags(true)}
}

// on lets the command run with a session, which the flags of kubectl's name describe.
func (b *base) on(command *cobra.Command, run func(ctx context.Context, args []string) error) *cobra.Command {
	return b.onUnless(new(false), command, run)
}

// onUnless is on for a command that may be told to ask no API server: its session then has no more than a namespace.
func (b *base) onUnless(offline *bool, command *cobra.Command, run func(ctx context.Context, args []string) error) *cobra.Command {
	b.bindConnection(command)
	command.RunE = func(cmd *cobra.Command, args []string) error {
		out, err := inColor(cmd, b.Out, environment)
		if err != nil {
			return err
		}
		b.Out = out
		if err := b.open(*offline, b.ErrOut); err != nil {
			return err
		}
		// The libraries write to their log what they mend, or what is told anyway.
		return concluded(cmd, run(klog.NewContext(cmd.Context(), logr.Discard()), args))
	}
	return command
}

// open makes the session.
func (b *base) open(offline bool, hints io.Writer) (err error) {
	if !offline {
		b.session, err = newSession(b.config, b.scheme, hints)
		return err
	}
	namespace, _, err := b.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return explain("read the kubeconfig", err, "")
	}
	b.session = &session{namespace: namespace}
	return nil
}

// one reads the arguments of a command that is about one object: KIND/NAME, KIND NAME, or the NAME of an installation. The
// object may have to be of some kinds, which are given by their resources.
func one(args []string, resources ...string) (kind, string, error) {
	asked, err := parse(args)
	switch {
	case err != nil:
		return kind{}, "", err
	case len(asked) != 1 || len(asked[0].names) != 1:
		return kind{}, "", usage("one object has to be named", "as NAME of an installation, KIND/NAME, or KIND NAME")
	case len(resources) > 0 && !slices.Contains(resources, asked[0].kind.resource):
		return kind{}, "", usage("this is not for "+asked[0].kind.resource, "it is for "+list(resources))
	}
	return asked[0].kind, asked[0].names[0], nil
}
