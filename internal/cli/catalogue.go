package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/catalog/objects"
)

const (
	// defaultSystem is the namespace that the controllers run in where nothing says another.
	defaultSystem = "sluice-system"
	// catalogueRole is what reading a catalogue takes, bound in its namespace.
	catalogueRole = "sluice-catalogue"
)

// catalogues are what installations choose from: as the API server has it, and as it is once the files are applied. Each
// namespace is read once.
type catalogues struct {
	// api is where the objects are; nil where nothing but the files counts.
	api   client.Client
	files *manifests
	now   time.Time

	known map[string]*catalog.Contents
	// everything is what all namespaces have, where that was read at once; nil where each is read for itself.
	everything map[string]*offered
	labels     map[string]labels.Set
	// lacking is why the labels of a namespace that was asked about are not known, and unread that of each.
	lacking error
	unread  map[string]error
}

// bindCatalogue adds the flags that say where a catalogue is.
func bindCatalogue(flags *pflag.FlagSet, paths *[]string, system *string) {
	flags.StringSliceVarP(paths, "filename", "f", nil, "Files, or folders of files, with objects to count as if they were applied.")
	bindSystem(flags, system)
}

// bindSystem adds the flag that says where the system catalogue is.
func bindSystem(flags *pflag.FlagSet, system *string) {
	flags.StringVar(system, "system-namespace", "",
		"Namespace of the system catalogue. Empty: as status says, or else where the Deployment of the controllers is found.")
}

func newCatalogues(api client.Client, files *manifests, now time.Time) *catalogues {
	return &catalogues{api: api, files: files, now: now, known: map[string]*catalog.Contents{}, labels: map[string]labels.Set{}, unread: map[string]error{}}
}

// in is what the namespace offers, in two requests whatever there is.
func (c *catalogues) in(ctx context.Context, namespace string) (*catalog.Contents, error) {
	if known := c.known[namespace]; known != nil {
		return known, nil
	}
	live, err := c.offers(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var releases []catalog.Release
	for _, template := range c.files.templatesOver(slices.Clone(live.templates), namespace, c.now) {
		releases = append(releases, objects.ReleaseOf(&template))
	}
	var pointers []catalog.Module
	for _, module := range c.files.modulesOver(slices.Clone(live.modules), namespace, c.now) {
		pointers = append(pointers, objects.ModuleOf(&module, func(consumer string) (labels.Set, bool) { return c.labelsOf(ctx, consumer) }))
	}
	c.known[namespace] = catalog.New(namespace, releases, pointers)
	return c.known[namespace], nil
}

// offered is what a namespace has.
type offered struct {
	templates []modulesv1.ModuleTemplate
	modules   []modulesv1.Module
}

// offers reads what the namespace has, in two requests.
func (c *catalogues) offers(ctx context.Context, namespace string) (*offered, error) {
	if c.everything != nil {
		return cmp.Or(c.everything[namespace], &offered{}), nil
	}
	if c.api == nil {
		return &offered{}, nil
	}
	var templates modulesv1.ModuleTemplateList
	var modules modulesv1.ModuleList
	if err := c.list(ctx, "moduletemplates", namespace, &templates); err != nil {
		return nil, err
	}
	if err := c.list(ctx, "modules", namespace, &modules); err != nil {
		return nil, err
	}
	return &offered{templates.Items, modules.Items}, nil
}

// list lists in one request: what is chosen from is small beside what it takes to ask often.
func (c *catalogues) list(ctx context.Context, resource, namespace string, list client.ObjectList) error {
	err := c.api.List(kept(ctx), list, client.InNamespace(namespace))
	if err == nil {
		return nil
	}
	told := explain(fmt.Sprintf("list %s in namespace %q", resource, namespace), err, catalogueRole)
	if apierrors.IsForbidden(err) {
		told.Help = []string{fmt.Sprintf("ask for the ClusterRole %s, bound in namespace %s", catalogueRole, namespace)}
	}
	return told
}

// labelsOf are the namespace's labels, if it is there. They are asked for once.
func (c *catalogues) labelsOf(ctx context.Context, namespace string) (labels.Set, bool) {
	if known, ok := c.files.namespaces[namespace]; ok {
		return known, true
	}
	if known, ok := c.labels[namespace]; ok {
		c.lacking = cmp.Or(c.lacking, c.unread[namespace])
		return known, known != nil
	}
	c.labels[namespace] = nil
	defer func() { c.lacking = cmp.Or(c.lacking, c.unread[namespace]) }()
	what := fmt.Sprintf("read the labels of namespace %q", namespace)
	if c.api == nil {
		c.unread[namespace] = &CommandError{Code: ExitUnanswered, What: what, Why: "no file has it, and a module asks for some", Help: []string{"add the Namespace to the files"}}
		return nil, false
	}
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := c.api.Get(ctx, client.ObjectKey{Name: namespace}, obj)
	switch {
	case err == nil:
		c.labels[namespace] = labels.Merge(obj.Labels, nil)
	case !apierrors.IsNotFound(err):
		c.unread[namespace] = explain(what, err, "view")
	}
	return c.labels[namespace], err == nil
}

// need says which catalogues have a say in what an installation is to run.
type need struct{ local, system bool }

// both are needed where nothing says that one is enough.
func both() need { return need{true, true} }

// needOf is what the choice for an installation in the namespace takes: the catalogue that it names or keeps, and where it
// came from by a channel, which it may not be free to leave.
func needOf(namespace string, request catalog.Request, installed catalog.Installed) need {
	var n need
	ran := []*modulesv1.Release{installed.Current, installed.Attempted}
	which := request.Catalog
	if which != modulesv1.CatalogLocal && which != modulesv1.CatalogSystem && cmp.Or(ran...) != nil {
		which = installed.Catalog
	}
	switch which {
	case modulesv1.CatalogLocal:
		n.local = true
	case modulesv1.CatalogSystem:
		n.system = true
	default:
		return both()
	}
	for _, release := range ran {
		if release != nil && release.Channel != "" {
			n.local, n.system = n.local || release.Namespace == namespace, n.system || release.Namespace != namespace
		}
	}
	return n
}

// index is what an installation in the namespace chooses from, as far as it is needed.
func (c *catalogues) index(ctx context.Context, namespace, system string, n need) (index catalog.Index, err error) {
	if namespace == system {
		index.Local, err = c.in(ctx, namespace)
		index.System = index.Local
		return index, err
	}
	if n.local {
		if index.Local, err = c.in(ctx, namespace); err != nil {
			return index, err
		}
	}
	if n.system {
		index.System, err = c.in(ctx, system)
	}
	return index, err
}

// systemOf is the namespace of the system catalogue as an installation knows it; empty where it does not.
func systemOf(obj *modulesv1.ModuleInstallation) string {
	if found := obj.Status.Resolution; found != nil && found.Catalog == modulesv1.CatalogSystem {
		return found.Namespace
	}
	if current := obj.Status.Current; current != nil && current.Namespace != obj.Namespace {
		return current.Namespace
	}
	return ""
}
