package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	builder "sluice.dev/sluice/internal/engine/build"
	"sluice.dev/sluice/internal/publish"
	"sluice.dev/sluice/internal/registry"
)

// releaser is a release, and the flags of its publication.
type releaser struct {
	*base

	module, version    string
	repository         registry.Repository
	digest             string
	channel, deprecate string
	apply              bool
	// managed are the kinds that the release brings.
	managed []modulesv1.ManagedResource
}

func releaseCommand(b *base) *cobra.Command {
	r := &releaser{base: b}
	command := &cobra.Command{
		Use:   "release MODULE VERSION REPOSITORY@sha256:DIGEST",
		Short: "Publish what was pushed as a release of a module",
		Example: `  sluice release foo 2.0.0 registry.example.com/modules/foo@sha256:… > foo-2.0.0.yaml
  sluice release foo 2.0.0 registry.example.com/modules/foo@sha256:… --channel regular --deprecate 1.0.0 --apply`,
	}
	flags := command.Flags()
	flags.StringVar(&r.channel, "channel", "", "Channel to point at the release, by a template of its own.")
	flags.StringVar(&r.deprecate, "deprecate", "", "Version to deprecate in favour of this one. Its template is read from the cluster.")
	flags.BoolVar(&r.apply, "apply", false, "Apply the templates, instead of writing them, if nothing in the catalogue contradicts them.")
	flags.BoolVar(&r.repository.Insecure, "insecure-registry", false, "Speak plain HTTP where the registry does not speak TLS.")
	b.bindConnection(command)
	command.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if err := r.read(args); err != nil {
			return err
		}
		if err := r.build(cmd.Context()); err != nil {
			return err
		}
		if r.apply || r.deprecate != "" {
			if b.session, err = newSession(b.config, b.scheme, b.ErrOut); err != nil {
				return err
			}
		}
		return r.publish(cmd.Context())
	}
	return command
}

func (r *releaser) read(args []string) (err error) {
	if len(args) != 3 {
		return usage("a module, a version and an artifact have to be named", "as MODULE VERSION REPOSITORY@sha256:DIGEST")
	}
	r.module, r.version = args[0], args[1]
	if !publish.IsVersion(r.version) {
		return usage(r.version+" is not a semantic version in full", "as in 1.0.0")
	}
	at := "oci://" + strings.TrimPrefix(args[2], "oci://")
	if r.repository.Host, r.repository.Name, r.digest, err = publish.ParseTarget(at); err != nil {
		return usage(err.Error(), "it is written as REPOSITORY@sha256:DIGEST, as sluice push prints it")
	}
	if digest.Digest(r.digest).Validate() != nil {
		return usage("the artifact has to be named by its digest: tags move", "as REPOSITORY@sha256:DIGEST, as sluice push prints it")
	}
	return nil
}

// build makes the objects of the release, as an installation does, to see that there are any.
func (r *releaser) build(ctx context.Context) error {
	client, err := registryFor(ctx, &r.repository)
	if err != nil {
		return err
	}
	what := "build " + r.repository.Host + "/" + r.repository.Name + "@" + r.digest
	built, err := publish.Render(ctx, client, r.repository, r.digest, builder.Request{})
	if err != nil {
		return unpushed(what, err)
	}
	fmt.Fprintf(r.ErrOut, "Objects in it: %d\n", len(built.Objects))
	r.managed = managedBy(built.Objects)
	return nil
}

// managedBy are the kinds whose definitions are among the objects: what users make of them is theirs.
func managedBy(objects []*unstructured.Unstructured) []modulesv1.ManagedResource {
	var managed []modulesv1.ManagedResource
	for _, obj := range objects {
		if gk := obj.GroupVersionKind().GroupKind(); gk.Group != "apiextensions.k8s.io" || gk.Kind != "CustomResourceDefinition" {
			continue
		}
		group, _, _ := unstructured.NestedString(obj.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(obj.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(obj.Object, "spec", "versions")
		for _, one := range versions {
			version, _ := one.(map[string]any)
			if name, _ := version["name"].(string); version["storage"] == true {
				managed = append(managed, modulesv1.ManagedResource{GroupVersionKind: modulesv1.GroupVersionKind{Group: group, Version: name, Kind: kind}})
			}
		}
	}
	return managed
}

// namespace is where the templates are.
func (r *releaser) namespace() string {
	return cmp.Or(*r.config.Namespace, defaultSystem)
}

// publish writes the templates, or applies them.
func (r *releaser) publish(ctx context.Context) error {
	templates := []modulesv1.ModuleTemplate{r.template(r.module+"-"+r.version, "")}
	if r.channel != "" {
		templates = append(templates, r.template(r.module+"-"+r.channel, r.channel))
	}
	var known []modulesv1.ModuleTemplate
	if r.session != nil {
		var err error
		if known, err = r.known(ctx); err != nil {
			return err
		}
	}
	if r.apply {
		if told := contradicting(known, templates); len(told) > 0 {
			return &CommandError{
				Code: ExitUnanswered, What: "release " + r.module + " " + r.version, Why: "the catalogue contradicts it", Help: told,
			}
		}
	}
	var objects []*unstructured.Unstructured
	for i := range templates {
		obj, err := objectOf(&templates[i])
		if err != nil {
			return err
		}
		objects = append(objects, obj)
	}
	deprecated, err := r.deprecated(known)
	if err != nil {
		return err
	}
	if r.apply {
		return r.applied(ctx, objects, deprecated)
	}
	objects = slices.Concat(objects, deprecated)
	printer := manifestPrinter()
	for _, obj := range objects {
		if err := printer.PrintObj(obj, r.Out); err != nil {
			return unprinted(err)
		}
	}
	return nil
}

// template is the release under a name.
func (r *releaser) template(name, channel string) modulesv1.ModuleTemplate {
	made := modulesv1.ModuleTemplate{Spec: modulesv1.ModuleTemplateSpec{
		ModuleName: r.module, Version: r.version, Channel: channel, ManagedResources: r.managed,
		Artifact: modulesv1.TemplateArtifact{OCI: &modulesv1.OCIArtifact{
			Repository: "oci://" + r.repository.Host + "/" + r.repository.Name, Digest: r.digest, Insecure: r.repository.Insecure,
		}},
	}}
	made.SetGroupVersionKind(modulesv1.GroupVersion.WithKind(modulesv1.ModuleTemplateKind))
	made.Name, made.Namespace = name, r.namespace()
	return made
}

// objectOf is a template as it stands in a manifest.
func objectOf(template *modulesv1.ModuleTemplate) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(template)
	if err != nil {
		return nil, fmt.Errorf("encode ModuleTemplate %s: %w", template.Name, err)
	}
	return manifest(&unstructured.Unstructured{Object: fields}), nil
}

// deprecated are the templates of the version that is to be deprecated, with that in them.
func (r *releaser) deprecated(known []modulesv1.ModuleTemplate) ([]*unstructured.Unstructured, error) {
	if r.deprecate == "" {
		return nil, nil
	}
	var found []*unstructured.Unstructured
	for i := range known {
		one := &known[i]
		if one.Spec.Version != r.deprecate || one.Spec.Channel != "" && one.Spec.Channel == r.channel {
			continue
		}
		if one.Spec.Support == nil {
			one.Spec.Support = &modulesv1.TemplateSupport{}
		}
		one.Spec.Support.ReplacedBy = r.version
		if one.Spec.Support.State != modulesv1.SupportWithdrawn { // Which it stays: else it could be installed again.
			one.Spec.Support.State = modulesv1.SupportDeprecated
		}
		obj, err := objectOf(one)
		if err != nil {
			return nil, err
		}
		found = append(found, obj)
	}
	if len(found) == 0 {
		return nil, &CommandError{
			Code: ExitUnanswered, What: "deprecate " + r.module + " " + r.deprecate, Why: "no template in namespace " + r.namespace() + " has that version",
			Help: []string{"look at them with sluice get moduletemplates -n " + r.namespace()},
		}
	}
	return found, nil
}
