package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/catalog/objects"
	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/revision"
)

// why is one call of the command.
type why struct {
	*base

	shown   answers
	version string
	paths   []string
	offline bool
	given   string
	guessed string // where nobody has given it

	asked revision.Version
	// moved says that the files edit which catalogue is asked for, so that the one of before is not kept.
	moved      bool
	files      *manifests
	catalogues *catalogues
}

func whyCommand(b *base) *cobra.Command {
	w := &why{base: b}
	command := &cobra.Command{
		Use:   "why NAME",
		Short: "Explain which release an installation gets, rule by rule, and what leads to another one",
		Example: `  sluice why redis -n team-a
  sluice why redis --version 2.0.0
  sluice why redis -f catalogue/
  sluice why redis --offline -f export.yaml -o json`,
		ValidArgsFunction: b.completeInstallations,
	}
	flags := command.Flags()
	w.shown = bindAnswers(command)
	flags.StringVar(&w.version, "version", "", "Explain why it is not this version, and which edits lead to it.")
	bindCatalogue(flags, &w.paths, &w.given)
	flags.BoolVar(&w.offline, "offline", false, "Read the files alone, the installation too; no API server is asked.")
	cobra.CheckErr(command.RegisterFlagCompletionFunc("version", w.completeVersions))
	return b.onUnless(&w.offline, command, w.run)
}

func (w *why) run(ctx context.Context, args []string) error {
	_, name, err := one(args, kinds()[0].resource)
	if err != nil {
		return err
	}
	if w.version != "" {
		if w.asked, err = revision.ParseStrict(w.version); err != nil {
			return usage("--version: " + err.Error())
		}
	}
	if w.offline && len(w.paths) == 0 {
		return usage("--offline needs files", "name them with -f")
	}
	if err := w.readFiles(); err != nil {
		return err
	}
	obj, err := w.installation(ctx, name)
	if err != nil {
		return err
	}
	told, unread := w.explain(ctx, obj)
	if isGeneral(unread) {
		return unread
	}
	err = w.shown.show(w.Out, "Explanation", told, told.print)
	return errors.Join(err, unread)
}

// readFiles reads the files.
func (w *why) readFiles() (err error) {
	if w.files, err = readManifests(w.paths, w.namespace); err != nil {
		return err
	}
	if unplaced := w.files.unplaced; len(unplaced) > 0 {
		fmt.Fprintf(w.ErrOut, "Taken to be in namespace %s, as they name none: %s\n", w.namespace, printable.Line(printable.List(unplaced, maxFew), maxProblem))
	}
	w.catalogues = newCatalogues(w.WithWatch, w.files, time.Now())
	return nil
}

// installation is the one that is asked about, with the spec that the files give it.
func (w *why) installation(ctx context.Context, name string) (*modulesv1.ModuleInstallation, error) {
	edited := w.files.installation(w.namespace, name)
	if w.WithWatch == nil {
		if edited != nil {
			return edited, nil
		}
		told := &CommandError{Code: ExitUnanswered, What: fmt.Sprintf("find ModuleInstallation %q of namespace %q in the files", name, w.namespace), Why: "not found"}
		var names []string
		for _, other := range w.files.installations {
			names = append(names, other.Namespace+"/"+other.Name)
		}
		if len(names) > 0 {
			told.Help = []string{"they have " + printable.List(names, maxFew)}
		}
		return nil, told
	}
	obj := &modulesv1.ModuleInstallation{}
	err := w.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, obj)
	switch {
	case apierrors.IsNotFound(err) && edited != nil:
		return edited, nil
	case err != nil:
		return nil, w.notHad(ctx, kinds()[0], name, err)
	case edited != nil:
		w.moved = edited.Spec.Module.GetCatalog() != obj.Spec.Module.GetCatalog()
		obj.Spec, obj.Undecodable = edited.Spec, ""
	}
	if obj.Undecodable != "" {
		return nil, &CommandError{Code: ExitUnanswered, What: "read " + ref{modulesv1.ModuleInstallationKind, obj.Namespace, obj.Name}.String(), Why: obj.Undecodable}
	}
	return obj, nil
}

// explain chooses as the controller does. Where the catalogue cannot be read, it tells what status says beside the error.
func (w *why) explain(ctx context.Context, obj *modulesv1.ModuleInstallation) (explanation, error) {
	request, installed, index, d, err := w.decide(ctx, obj)
	if err != nil {
		return stated(obj), err
	}
	told := explained(obj, d, whyThere(request, installed, d))
	told.Notes = notes(obj, d, len(w.paths) > 0 && w.WithWatch != nil)
	if w.version != "" {
		told.About = about(w.asked, d, releasesOf(index, d))
		if !told.About.Chosen {
			told.About.offer(obj, request, installed, index, w.catalogues.now)
		}
	}
	if w.catalogues.lacking != nil {
		return stated(obj), w.catalogues.lacking
	}
	return told, nil
}

// decide chooses a release from what there is.
func (w *why) decide(ctx context.Context, obj *modulesv1.ModuleInstallation) (request catalog.Request, installed catalog.Installed, index catalog.Index, d catalog.Decision, err error) {
	request, installed = objects.Stated(obj)
	if request.Explain = true; w.moved {
		installed.Catalog = ""
	}
	needed := needOf(obj.Namespace, request, installed)
	if index, err = w.index(ctx, obj, needed); err != nil {
		return request, installed, index, d, err
	}
	d = catalog.Resolve(request, installed, index, w.catalogues.now)
	if needed != both() && w.lacks(index, d) {
		// The other catalogue may have it. Who may not read that is told of this one.
		if all, err := w.index(ctx, obj, both()); err == nil {
			index = all
			d = catalog.Resolve(request, installed, index, w.catalogues.now)
		}
	}
	return request, installed, index, d, nil
}

// lacks says whether something was asked for that the catalogue does not have.
func (w *why) lacks(index catalog.Index, d catalog.Decision) bool {
	if d.Hold != nil && (d.Hold.Reason == modulesv1.ModuleNotFoundReason || d.Hold.Reason == modulesv1.TemplateNotFoundReason) {
		return true
	}
	return w.version != "" && !slices.ContainsFunc(releasesOf(index, d), func(r catalog.Release) bool { return states(r.Version, w.asked) })
}

// index reads what is needed.
func (w *why) index(ctx context.Context, obj *modulesv1.ModuleInstallation, n need) (catalog.Index, error) {
	system := ""
	if n.system {
		var err error
		if system, err = w.systemFor(ctx, obj); err != nil {
			return catalog.Index{}, err
		}
	}
	return w.catalogues.index(ctx, obj.Namespace, system, n)
}

// systemFor is the namespace of the system catalogue: the one that is given, that of which status speaks, that of the
// controllers, or else the usual one.
func (w *why) systemFor(ctx context.Context, obj *modulesv1.ModuleInstallation) (string, error) {
	if known := cmp.Or(w.given, systemOf(obj)); known != "" || w.WithWatch == nil {
		return cmp.Or(known, defaultSystem), nil
	}
	return w.fallback(ctx)
}

// fallback is the namespace of the controllers, or else the usual one. It is looked for once.
func (w *why) fallback(ctx context.Context) (string, error) {
	if w.guessed != "" {
		return w.guessed, nil
	}
	found, err := w.system(ctx, "")
	if problem, ok := errors.AsType[*CommandError](err); ok && !problem.general {
		fmt.Fprintf(w.ErrOut, "The namespace of the controllers is taken to be %s (%s); --system-namespace names another.\n", defaultSystem, printable.Line(problem.Why, maxProblem))
		found, err = defaultSystem, nil
	}
	w.guessed = found
	return found, err
}

// releasesOf are those of the module in the catalogue that was looked into.
func releasesOf(index catalog.Index, d catalog.Decision) []catalog.Release {
	contents := index.Local
	if d.Catalog == modulesv1.CatalogSystem {
		contents = index.System
	}
	if contents == nil {
		return nil
	}
	return contents.Releases(d.Module)
}

// whyThere is why the catalogue was looked into.
func whyThere(request catalog.Request, installed catalog.Installed, d catalog.Decision) string {
	what := "the module"
	if request.Name == "" {
		what = "the template, or its module"
	}
	switch {
	case d.Catalog == "":
		return ""
	case request.Catalog == modulesv1.CatalogLocal || request.Catalog == modulesv1.CatalogSystem:
		return "as spec.module.catalog says"
	case installed.Catalog != "":
		return "Auto; kept since the first install"
	case d.Catalog == modulesv1.CatalogLocal:
		return fmt.Sprintf("Auto; namespace %s has %s", request.Namespace, what)
	default:
		return fmt.Sprintf("Auto; namespace %s does not have %s", request.Namespace, what)
	}
}

// completeVersions offers the versions of the module that the installation is of.
func (w *why) completeVersions(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	ctx, stop := context.WithTimeout(cmd.Context(), completionTime)
	defer stop()
	w.ErrOut = io.Discard
	_, name, err := one(args, kinds()[0].resource)
	if err != nil || w.open(w.offline, io.Discard) != nil || w.readFiles() != nil {
		return nil, none
	}
	obj, err := w.installation(ctx, name)
	if err != nil {
		return nil, none
	}
	request, installed := objects.Stated(obj)
	index, err := w.index(ctx, obj, needOf(obj.Namespace, request, installed))
	if err != nil {
		return nil, none
	}
	var offered []string
	for _, release := range releasesOf(index, catalog.Resolve(request, installed, index, w.catalogues.now)) {
		if release.Version != "" && strings.HasPrefix(release.Version, begun) {
			offered = append(offered, release.Version)
		}
	}
	return slices.Compact(offered), none
}
