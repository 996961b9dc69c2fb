package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	builder "sluice.dev/sluice/internal/engine/build"
	"sluice.dev/sluice/internal/plan"
	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/publish"
	"sluice.dev/sluice/internal/registry"
)

// renderer is one call of build.
type renderer struct {
	*planner

	folder      string
	insecure    bool
	values      []string
	showSecrets bool
}

func buildCommand(b *base) *cobra.Command {
	r := &renderer{planner: newPlanner(b)}
	command := &cobra.Command{
		Use:   "build PATH | oci://REPOSITORY:TAG | moduleinstallation/NAME",
		Short: "Show the objects that a folder, an artifact or an installation becomes, as the controllers build them",
		Example: `  sluice build deploy
  sluice build deploy -f installation.yaml --set replicas=2
  sluice build oci://registry.example.com/modules/foo:2.0.0
  sluice build mi/redis --version 2.0.0 -n team-a`,
	}
	flags := command.Flags()
	flags.StringVar(&r.folder, "path", "", "Folder in PATH, or in the artifact, to build, as a template names it. Empty: all of it.")
	flags.StringArrayVar(&r.values, "set", nil, "Value of a variable, as NAME=VALUE, over those of the installation.")
	flags.BoolVar(&r.showSecrets, "show-secrets", false, "Show the values of Secrets.")
	flags.BoolVar(&r.insecure, "insecure-registry", false, "Speak plain HTTP where the registry does not speak TLS.")
	bindCatalogue(flags, &r.paths, &r.given)
	flags.Lookup("filename").Usage = "Files with an installation, whose spec.config is applied. For an installation of the cluster: files, or folders of files, with objects to count as if they were applied."
	r.bindRelease(command)
	r.bindContent(command)
	command.PreRunE = func(_ *cobra.Command, args []string) error {
		r.offline = !isInstallation(args)
		of, meaningless := "an installation", []string{"path", "insecure-registry"}
		if r.offline {
			of, meaningless = "a folder or an artifact", []string{"version", "channel", "artifact", "from-upstream", "as-installation"}
		}
		for _, name := range meaningless {
			if flags.Changed(name) {
				return usage("--" + name + " is not for " + of)
			}
		}
		return nil
	}
	return b.onUnless(&r.offline, command, r.run)
}

// isInstallation says that an installation is named by its kind. A folder of that name is meant with ./ before it.
func isInstallation(args []string) bool {
	_, _, err := one(args, kinds()[0].resource)
	return err == nil && (len(args) > 1 || strings.Contains(args[0], "/"))
}

func (r *renderer) run(ctx context.Context, args []string) error {
	switch {
	case isInstallation(args):
		return r.ofInstallation(ctx, args)
	case len(args) != 1:
		return usage("one folder has to be named, or one artifact, or one installation", "as PATH, oci://REPOSITORY:TAG, or moduleinstallation/NAME")
	}
	request := builder.Request{Namespace: r.namespace, Path: r.folder}
	if err := r.configure(&request); err != nil {
		return err
	}
	if strings.HasPrefix(args[0], "oci://") {
		return r.ofArtifact(ctx, args[0], request)
	}
	made, err := publish.RenderFolder(ctx, args[0], request)
	if err != nil {
		return unpushed("build "+args[0], err)
	}
	return r.print(r.hidden(made))
}

// ofArtifact builds what a registry has under a tag or a digest.
func (r *renderer) ofArtifact(ctx context.Context, at string, request builder.Request) error {
	from := registry.Repository{Insecure: r.insecure}
	var reference string
	var err error
	if from.Host, from.Name, reference, err = publish.ParseTarget(at); err != nil {
		return usage(err.Error(), "it is written as oci://REPOSITORY:TAG or oci://REPOSITORY@DIGEST")
	}
	if reference == "" {
		return usage("a tag or a digest has to be named", "as in "+at+":1.0.0")
	}
	client, err := registryFor(ctx, &from)
	if err != nil {
		return err
	}
	made, err := publish.Render(ctx, client, from, reference, request)
	if err != nil {
		return unpushed("build "+at, err)
	}
	return r.print(r.hidden(made))
}

// ofInstallation builds what an installation of the cluster applies, or would of another release or with another spec.
func (r *renderer) ofInstallation(ctx context.Context, args []string) error {
	_, name, err := one(args)
	if err != nil {
		return err
	}
	set, err := r.set()
	if err != nil {
		return err
	}
	if err := r.readFiles(); err != nil {
		return err
	}
	asked, held, done, err := r.ask(ctx, name)
	if err != nil {
		return err
	}
	defer done()
	if spec := &asked.Installation.Spec; len(set) > 0 {
		spec.Config = cmp.Or(spec.Config, &modulesv1.InstallationConfig{})
		spec.Config.Substitute = labels.Merge(spec.Config.Substitute, set)
	}
	made, err := r.works(asked.Installation).Render(ctx, asked, r.showSecrets)
	if err != nil {
		return r.unplanned("build "+strings.Join(args, " "), err)
	}
	told := "Of release " + asked.Chosen.Version + " (template " + asked.Chosen.Template + ")"
	if held != nil {
		told += ", which is held: " + held.String()
	}
	fmt.Fprintln(r.ErrOut, printable.Line(told, maxProblem))
	return r.print(made)
}

// hidden is what was made without the values of Secrets, unless they are asked for.
func (r *renderer) hidden(made builder.Built) builder.Built {
	if !r.showSecrets {
		made.Objects = plan.Hide(made.Objects)
	}
	return made
}

// set are the variables of the flags.
func (r *renderer) set() (map[string]string, error) {
	set := map[string]string{}
	for _, pair := range r.values {
		name, value, found := strings.Cut(pair, "=")
		if !found || name == "" {
			return nil, usage("--set is to be NAME=VALUE")
		}
		set[name] = value
	}
	return set, nil
}

// configure takes over what the installation and the flags say.
func (r *renderer) configure(request *builder.Request) error {
	request.Substitute = map[string]string{}
	if len(r.paths) > 0 {
		files, err := readManifests(r.paths, r.namespace)
		if err != nil {
			return err
		}
		if len(files.installations) != 1 {
			return usage(fmt.Sprintf("%s has %d installations", strings.Join(r.paths, ", "), len(files.installations)), "name a file with one")
		}
		r.apply(files.installations[0].Spec.Config, request)
	}
	set, err := r.set()
	if err != nil {
		return err
	}
	maps.Copy(request.Substitute, set)
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
func (r *renderer) print(made builder.Built) error {
	if len(made.Unused) > 0 {
		fmt.Fprintln(r.ErrOut, printable.Line("Variables that no object asks for: "+list(made.Unused), maxProblem))
	}
	printer := manifestPrinter()
	printer.printed = true // Each document has its own line of dashes.
	for _, obj := range made.Objects {
		if err := printer.PrintObj(obj, r.Out); err != nil {
			return unprinted(err)
		}
	}
	return nil
}
