package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	builder "sluice.dev/sluice/internal/engine/build"
	"sluice.dev/sluice/internal/plan"
	"sluice.dev/sluice/internal/printable"
)

// renderer is one call of build.
type renderer struct {
	*base

	folder      string
	file        string
	values      []string
	showSecrets bool
}

func buildCommand(b *base) *cobra.Command {
	r := &renderer{base: b}
	command := &cobra.Command{
		Use:   "build PATH",
		Short: "Show the objects that a folder becomes, as the controllers build them",
		Example: `  sluice build deploy
  sluice build deploy -f installation.yaml --set replicas=2`,
	}
	flags := command.Flags()
	flags.StringVar(&r.folder, "path", "", "Folder in PATH to build, as a template names it. Empty: PATH itself.")
	flags.StringVarP(&r.file, "filename", "f", "", "File with an installation, whose spec.config is applied.")
	flags.StringArrayVar(&r.values, "set", nil, "Value of a variable, as NAME=VALUE, over those of the installation.")
	flags.BoolVar(&r.showSecrets, "show-secrets", false, "Show the values of Secrets.")
	return b.onUnless(new(true), command, r.run)
}

func (r *renderer) run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return usage("one folder has to be named")
	}
	request := builder.Request{Namespace: r.namespace, Path: r.folder}
	if err := r.configure(&request); err != nil {
		return err
	}
	root, err := os.OpenRoot(args[0])
	if err != nil {
		return unreadable(args[0], err)
	}
	defer func() { _ = root.Close() }()
	request.Tree = root.FS()
	made, err := builder.New(builder.Options{}).Build(ctx, request)
	if err != nil {
		told := &CommandError{Code: ExitUnanswered, What: "build " + args[0], Why: err.Error()}
		if errors.Is(err, context.Canceled) {
			told.Code = ExitInterrupted
		}
		return told
	}
	if len(made.Unused) > 0 {
		fmt.Fprintln(r.ErrOut, printable.Line("Variables that no object asks for: "+list(made.Unused), maxProblem))
	}
	objects := made.Objects
	if !r.showSecrets {
		objects = plan.Hide(objects)
	}
	return r.print(objects)
}

// configure takes over what the installation and the flags say.
func (r *renderer) configure(request *builder.Request) error {
	request.Substitute = map[string]string{}
	if r.file != "" {
		files, err := readManifests([]string{r.file}, r.namespace)
		if err != nil {
			return err
		}
		if len(files.installations) != 1 {
			return usage(fmt.Sprintf("%s has %d installations", r.file, len(files.installations)), "name a file with one")
		}
		r.apply(files.installations[0].Spec.Config, request)
	}
	for _, pair := range r.values {
		name, value, found := strings.Cut(pair, "=")
		if !found || name == "" {
			return usage("--set is to be NAME=VALUE")
		}
		request.Substitute[name] = value
	}
	if len(request.Substitute) == 0 {
		request.Substitute = nil
	}
	return nil
}

func (r *renderer) apply(config *modulesv1.InstallationConfig, request *builder.Request) {
	if config == nil {
		return
	}
	maps.Copy(request.Substitute, config.Substitute)
	request.TargetNamespace, request.Images, request.Patches = config.TargetNamespace, config.Images, config.Patches
	if config.CommonMetadata != nil {
		request.Labels, request.Annotations = config.CommonMetadata.Labels, config.CommonMetadata.Annotations
	}
	if len(config.SubstituteFrom) > 0 {
		fmt.Fprintln(r.ErrOut, "What substituteFrom names is not read; give the values with --set.")
	}
}

// print writes the objects as YAML, one document each.
func (r *renderer) print(objects []*unstructured.Unstructured) error {
	for _, obj := range objects {
		text, err := yaml.Marshal(obj.Object)
		if err != nil {
			return fmt.Errorf("write the objects: %w", err)
		}
		if _, err := fmt.Fprintf(r.Out, "---\n%s", text); err != nil {
			return unprinted(err)
		}
	}
	return nil
}
