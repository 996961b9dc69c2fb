package lookups

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/engine/cluster"
)

// How many objects are listed at a time: of their metadata, and whole.
const (
	metadataPage = 500
	wholePage    = 100
)

// feed reads what is selected: only metadata, unless more of it may be seen.
type feed struct {
	selection

	seen  tree
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// end gives up, with the reason, and hears of one that is tried again.
	end, hears func(error)
}

// IsWatchListSemanticsUnSupported has everything listed page by page: a stream of it has no bound.
func (*feed) IsWatchListSemanticsUnSupported() bool { return true }

// follow keeps the store as the API server says, until ctx ends. Its error says why that cannot be done.
func (t *Targets) follow(ctx context.Context, s selection, seen tree, kept *store) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	f := &feed{selection: s, seen: seen, end: end, hears: kept.hear}
	if err := f.connect(t.connector); err != nil {
		return fmt.Errorf("ask for the kind %s: %w", s.gvk.Kind, err)
	}
	kept.overflows = func() { end(f.tooMany()) }
	source := struct {
		*cache.ListWatch
		*feed
	}{&cache.ListWatch{ListWithContextFunc: f.all, WatchFuncWithContext: f.changes}, f}
	cache.NewReflectorWithOptions(source, nil, kept, cache.ReflectorOptions{Name: "targets"}).RunWithContext(ctx)
	return context.Cause(ctx)
}

// connect finds out how to ask for the kind.
func (f *feed) connect(connector *cluster.Connector) error {
	if len(f.seen) == 0 {
		api, mapping, err := connector.Connect(f.identity, f.gvk)
		if err != nil {
			return err
		}
		resource := api.Resource(mapping.Resource).Namespace(f.namespace)
		f.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return resource.List(ctx, o) }
		f.watch = resource.Watch
		return f.inPlace(mapping)
	}
	api, mapping, err := connector.Whole(f.identity, f.gvk)
	if err != nil {
		return err
	}
	resource := api.Resource(mapping.Resource).Namespace(f.namespace)
	f.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return resource.List(ctx, o) }
	f.watch = resource.Watch
	return f.inPlace(mapping)
}

// inPlace refuses to look into all namespaces: whoever has asked did not know yet that the kind lives in one.
func (f *feed) inPlace(mapping *meta.RESTMapping) error {
	if f.namespace == "" && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return fmt.Errorf("%w: it has come just now", cluster.ErrNoKind)
	}
	return nil
}

func (f *feed) tooMany() error {
	return fmt.Errorf("%w: there are more than %d of kind %s; make several sets of it", ErrTooMany, MaxTargets, f.gvk.Kind)
}

// all lists what is selected, and keeps of each page what is seen of it.
func (f *feed) all(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	options := metav1.ListOptions{LabelSelector: f.labels, FieldSelector: f.name, Limit: metadataPage}
	if len(f.seen) > 0 {
		options.Limit = wholePage
	}
	all := &metav1.List{}
	for {
		page, err := f.list(ctx, options)
		if err != nil {
			return nil, f.failed("list", err)
		}
		err = meta.EachListItem(page, func(object runtime.Object) error {
			all.Items = append(all.Items, runtime.RawExtension{Object: f.kept(object)})
			return nil
		})
		about, isList := page.(metav1.ListInterface)
		if err != nil || !isList {
			return nil, fmt.Errorf("list %s: the answer is no list: %w", f.gvk.Kind, err)
		}
		if len(all.Items) > MaxTargets {
			return nil, f.failed("list", f.tooMany())
		}
		all.ResourceVersion = about.GetResourceVersion()
		if options.Continue = about.GetContinue(); options.Continue == "" {
			return all, nil
		}
	}
}

// changes watches what is selected.
func (f *feed) changes(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.LabelSelector, options.FieldSelector = f.labels, f.name
	from, err := f.watch(ctx, options)
	if err != nil {
		return nil, f.failed("watch", err)
	}
	return watch.Filter(from, func(e watch.Event) (watch.Event, bool) {
		if e.Type != watch.Error {
			e.Object = f.kept(e.Object)
		}
		return e, true
	}), nil
}

// failed gives up what does not come right by trying again.
func (f *feed) failed(verb string, err error) error {
	err = fmt.Errorf("%s %s as %s: %w", verb, f.gvk.Kind, f.identity, err)
	if f.hears(err); isHopeless(err) {
		f.end(err)
	}
	return err
}

// kept is what is kept of an object.
func (f *feed) kept(object runtime.Object) *Object {
	made := &Object{}
	if o, err := meta.Accessor(object); err == nil {
		made.ObjectMeta = metav1.ObjectMeta{
			Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
			Labels: o.GetLabels(), Annotations: short(o.GetAnnotations()),
		}
		made.Err = made.bound()
	}
	if o, ok := object.(*unstructured.Unstructured); ok && made.Err == nil {
		made.Fields, made.Err = f.seen.of(o.Object)
	}
	return made
}
