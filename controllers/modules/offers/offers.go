// Package offers is the catalogue as the cluster has it: what the objects of a namespace offer, whom a change of them
// concerns, and what of them is needed.
// It does not know how a release is chosen, nor what becomes of one.
package offers

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
	"sluice.dev/sluice/internal/catalog/objects"
)

// +kubebuilder:rbac:groups=modules.sluice.dev,resources=moduletemplates;modules;moduleinstallations,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// Offers give what the namespaces offer, as values that never change. It looks at the objects' versions whenever it
// is asked, and reads them again only when one has changed: whoever was woken by a change sees that change.
type Offers struct {
	reader client.Reader
	system string
	seed   maphash.Seed

	needs needs

	mu    sync.Mutex
	built map[string]built
}

// built is a catalogue, and the versions of the objects that it was made from.
type built struct {
	version   version
	catalogue *catalog.Contents
}

// version stands for a set of objects in their versions, whatever their order.
type version struct {
	sum   uint64
	count int
}

// New reads with the reader, which is meant to be the manager's client: every question lists the templates and
// modules of a namespace. The system's namespace is what every installation can choose from; empty, there is none.
func New(reader client.Reader, system string) *Offers {
	return &Offers{reader: reader, system: system, seed: maphash.MakeSeed(), built: map[string]built{}, needs: newNeeds()}
}

// Index is what an installation in the namespace can choose from.
func (o *Offers) Index(ctx context.Context, namespace string) (catalog.Index, error) {
	local, err := o.Namespace(ctx, namespace)
	if err != nil || namespace == o.system {
		return catalog.Index{Local: local, System: local}, err
	}
	if o.system == "" {
		return catalog.Index{Local: local}, nil
	}
	system, err := o.Namespace(ctx, o.system)
	return catalog.Index{Local: local, System: system}, err
}

// Reach says whether installations in a namespace can choose from the catalogue.
func (o *Offers) Reach(catalogue, to string) bool {
	return catalogue == to || o.system != "" && catalogue == o.system
}

// Namespace is what the namespace offers.
func (o *Offers) Namespace(ctx context.Context, namespace string) (*catalog.Contents, error) {
	var templates modulesv1.ModuleTemplateList
	if err := o.reader.List(ctx, &templates, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list templates in %q: %w", namespace, err)
	}
	var modules modulesv1.ModuleList
	if err := o.reader.List(ctx, &modules, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list modules in %q: %w", namespace, err)
	}
	var seen version
	for i := range templates.Items {
		o.add(&seen, &templates.Items[i])
	}
	for i := range modules.Items {
		o.add(&seen, &modules.Items[i])
	}
	if known := o.known(namespace); known.catalogue != nil && known.version == seen {
		return known.catalogue, nil
	}
	releases := make([]catalog.Release, 0, len(templates.Items))
	for i := range templates.Items {
		releases = append(releases, objects.ReleaseOf(&templates.Items[i]))
	}
	pointers := make([]catalog.Module, 0, len(modules.Items))
	for i := range modules.Items {
		pointers = append(pointers, o.moduleOf(ctx, &modules.Items[i]))
	}
	fresh := catalog.New(namespace, releases, pointers)
	o.keep(namespace, built{version: seen, catalogue: fresh})
	return fresh, nil
}

// add makes the object in its version part of the set.
func (o *Offers) add(set *version, obj metav1.Object) {
	set.sum += maphash.String(o.seed, string(obj.GetUID())+"/"+obj.GetResourceVersion())
	set.count++
}

func (o *Offers) known(namespace string) built {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.built[namespace]
}

// keep remembers a catalogue; what is empty is made again faster than it is found.
func (o *Offers) keep(namespace string, fresh built) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if fresh.version.count == 0 {
		delete(o.built, namespace)
		return
	}
	o.built[namespace] = fresh
}

// moduleOf is the module as the catalogue reads it.
func (o *Offers) moduleOf(ctx context.Context, obj *modulesv1.Module) catalog.Module {
	ctx = context.WithoutCancel(ctx)
	return objects.ModuleOf(obj, func(namespace string) (labels.Set, bool) { return o.labelsOf(ctx, namespace) })
}

// labelsOf are the namespace's labels, if it is there.
func (o *Offers) labelsOf(ctx context.Context, namespace string) (labels.Set, bool) {
	obj := namespaceMetadata()
	err := o.reader.Get(ctx, client.ObjectKey{Name: namespace}, obj)
	if client.IgnoreNotFound(err) != nil {
		ctrllog.FromContext(ctx).Error(err, "cannot read the labels of a namespace; it is not admitted", "consumer", namespace)
	}
	return obj.GetLabels(), err == nil
}

// namespaceMetadata asks for a namespace without its spec and status.
func namespaceMetadata() *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return obj
}
