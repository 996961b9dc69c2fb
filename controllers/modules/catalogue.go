package modules

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
)

// +kubebuilder:rbac:groups=modules.sluice.dev,resources=moduletemplates;modules;moduleinstallations,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// Catalogue gives what the namespaces offer, as values that never change. It looks at the objects' versions whenever it
// is asked, and reads them again only when one has changed: whoever was woken by a change sees that change.
type Catalogue struct {
	reader client.Reader
	system string
	seed   maphash.Seed

	// needs are told by the installations' controller.
	needs *needs

	mu    sync.Mutex
	built map[string]built
}

// built is a catalogue, and the versions of the objects that it was made from.
type built struct {
	version   version
	catalogue *catalog.Catalogue
}

// version stands for a set of objects in their versions, whatever their order.
type version struct {
	sum   uint64
	count int
}

// NewCatalogue reads with the reader, which is meant to be the manager's client: every question lists the templates and
// modules of a namespace. The system's namespace is what every installation can choose from; empty, there is none.
func NewCatalogue(reader client.Reader, system string) *Catalogue {
	return &Catalogue{reader: reader, system: system, seed: maphash.MakeSeed(), built: map[string]built{}, needs: newNeeds()}
}

// Index is what an installation in the namespace can choose from.
func (c *Catalogue) Index(ctx context.Context, namespace string) (catalog.Index, error) {
	local, err := c.Namespace(ctx, namespace)
	if err != nil || namespace == c.system {
		return catalog.Index{Local: local, System: local}, err
	}
	if c.system == "" {
		return catalog.Index{Local: local}, nil
	}
	system, err := c.Namespace(ctx, c.system)
	return catalog.Index{Local: local, System: system}, err
}

// offers says whether installations in a namespace can choose from the catalogue.
func (c *Catalogue) offers(catalogue, to string) bool {
	return catalogue == to || c.system != "" && catalogue == c.system
}

// Namespace is what the namespace offers.
func (c *Catalogue) Namespace(ctx context.Context, namespace string) (*catalog.Catalogue, error) {
	var templates modulesv1.ModuleTemplateList
	if err := c.reader.List(ctx, &templates, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list templates in %q: %w", namespace, err)
	}
	var modules modulesv1.ModuleList
	if err := c.reader.List(ctx, &modules, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list modules in %q: %w", namespace, err)
	}
	var seen version
	for i := range templates.Items {
		c.add(&seen, &templates.Items[i])
	}
	for i := range modules.Items {
		c.add(&seen, &modules.Items[i])
	}
	if known := c.known(namespace); known.catalogue != nil && known.version == seen {
		return known.catalogue, nil
	}
	releases := make([]catalog.Release, 0, len(templates.Items))
	for i := range templates.Items {
		releases = append(releases, releaseOf(&templates.Items[i]))
	}
	objects := make([]catalog.Module, 0, len(modules.Items))
	for i := range modules.Items {
		objects = append(objects, c.moduleOf(ctx, &modules.Items[i]))
	}
	fresh := catalog.New(namespace, releases, objects)
	c.keep(namespace, built{version: seen, catalogue: fresh})
	return fresh, nil
}

// add makes the object in its version part of the set.
func (c *Catalogue) add(set *version, obj metav1.Object) {
	set.sum += maphash.String(c.seed, string(obj.GetUID())+"/"+obj.GetResourceVersion())
	set.count++
}

func (c *Catalogue) known(namespace string) built {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.built[namespace]
}

// keep remembers a catalogue; what is empty is made again faster than it is found.
func (c *Catalogue) keep(namespace string, fresh built) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if fresh.version.count == 0 {
		delete(c.built, namespace)
		return
	}
	c.built[namespace] = fresh
}

// moduleOf is the module as the catalogue reads it. One that cannot be decoded admits nobody.
func (c *Catalogue) moduleOf(ctx context.Context, obj *modulesv1.Module) catalog.Module {
	module := moduleOf(obj)
	switch consumers := obj.Spec.Consumers; {
	case obj.Undecodable != "":
		module.Admits = func(string) bool { return false }
	case consumers != nil:
		selector, err := metav1.LabelSelectorAsSelector(&consumers.NamespaceSelector)
		if err != nil {
			selector = labels.Nothing() // The module's status tells.
		}
		ctx = context.WithoutCancel(ctx)
		module.Admits = func(namespace string) bool { return c.selects(ctx, selector, namespace) }
	}
	return module
}

// moduleOf is what the object says, without whom it admits.
func moduleOf(obj *modulesv1.Module) catalog.Module {
	module := catalog.Module{Name: obj.Name, DefaultChannel: obj.Spec.DefaultChannel}
	for _, channel := range obj.Spec.Channels {
		module.Channels = append(module.Channels, catalog.Channel{
			Name: channel.Name, Version: channel.Version,
			Suspended: channel.Suspended, Message: channel.Message, OneWay: channel.OneWay,
		})
	}
	return module
}

// selects says whether the namespace has labels that the selector takes. Without the labels, it has not.
func (c *Catalogue) selects(ctx context.Context, selector labels.Selector, namespace string) bool {
	if selector.Empty() {
		return true
	}
	obj := namespaceMetadata()
	if err := c.reader.Get(ctx, client.ObjectKey{Name: namespace}, obj); err != nil {
		if client.IgnoreNotFound(err) != nil {
			ctrllog.FromContext(ctx).Error(err, "cannot read the labels of a namespace; it is not admitted", "consumer", namespace)
		}
		return false
	}
	return selector.Matches(labels.Set(obj.GetLabels()))
}

// namespaceMetadata asks for a namespace without its spec and status.
func namespaceMetadata() *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return obj
}
