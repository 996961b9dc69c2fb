package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/ui"
	"sluice.dev/sluice/internal/view"
)

// sight is what the pages see of the cluster: what the commands tell, to the same person.
type sight struct {
	*base

	runs lastRunning
}

// quiet is what a command is made of whose words go to a page.
func (s *sight) quiet(namespace string, out io.Writer) *base {
	return &base{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: io.Discard}, session: s.in(namespace), scheme: s.scheme, config: s.config}
}

func ours(k ui.Kind) kind {
	found, _ := kindOf(k.Resource)
	return found
}

// Objects implements ui.Reader. Where the person may not read the objects of all namespaces, it is those of the context's.
func (s *sight) Objects(ctx context.Context, of ui.Kind) (cache.ListerWatcherWithContext, error) {
	k := ours(of)
	everywhere := s.watcher(k, "")
	_, err := everywhere.ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if !apierrors.IsForbidden(err) && !isUnserved(err) {
		return everywhere, nil
	}
	told := explain("list "+k.resource+" in all namespaces", err, "sluice-view")
	here := s.watcher(k, s.namespace)
	if _, err := here.ListWithContext(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return nil, told
	}
	told.Help = append(told.Help, "those of namespace "+s.namespace+" are shown")
	return here, told
}

// isUnserved says that the API server does not serve the kind.
func isUnserved(err error) bool {
	return apierrors.IsNotFound(err) || err != nil && strings.Contains(err.Error(), "no matches for kind")
}

func (s *sight) watcher(k kind, namespace string) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := k.list()
			err := s.List(ctx, list, &client.ListOptions{Namespace: namespace, Raw: &options, Limit: options.Limit, Continue: options.Continue})
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return s.Watch(ctx, k.list(), &client.ListOptions{Namespace: namespace, Raw: &options})
		},
	}
}

// Object implements ui.Reader.
func (s *sight) Object(ctx context.Context, of ui.Kind, namespace, name string) (*ui.Object, error) {
	k, there := ours(of), s.in(namespace)
	obj, err := there.named(ctx, k, name)
	if err != nil {
		if problem, ok := errors.AsType[*CommandError](err); ok && problem.missing {
			return nil, &ui.NotFoundError{What: err.Error()}
		}
		return nil, err
	}
	told := describe(k, obj)
	made := &ui.Object{
		Fact: view.Of(obj), Kind: of, Namespace: namespace, Name: name, Version: obj.GetResourceVersion(),
		Remedies: told.Remedies, Facts: told.Facts, Conditions: told.Conditions, Suspended: view.IsSuspended(obj), Module: moduleOf(obj),
	}
	events, err := there.happened(ctx, told.Object, obj.GetUID())
	if err != nil {
		made.Lacking = append(made.Lacking, err.Error())
	}
	for _, event := range events[max(0, len(events)-maxHappened):] {
		made.Events = append(made.Events, ui.Event{Last: event.Last, Count: event.Count, Type: event.Type, Reason: event.Reason, Message: event.Message})
	}
	if k.resource == kinds()[0].resource {
		s.installation(made, obj)
	}
	var text bytes.Buffer
	if err := manifestPrinter().PrintObj(shownManifest(obj), &text); err != nil {
		made.Lacking = append(made.Lacking, err.Error())
	}
	made.YAML = text.String()
	return made, nil
}

// installation adds what only installations have.
func (s *sight) installation(made *ui.Object, obj *unstructured.Unstructured) {
	var installation modulesv1.ModuleInstallation
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &installation); err != nil {
		made.Lacking = append(made.Lacking, err.Error())
		return
	}
	made.Attempts = installation.Status.History
	if pending := installation.Status.Pending; pending != nil && pending.Plan != nil && installation.Status.ObservedGeneration == installation.Generation {
		made.Awaited = pending.Plan.Digest
	}
}

// shownManifest is the object without what nobody wants to read: who has written which field, and what was applied with kubectl.
func shownManifest(obj *unstructured.Unstructured) *unstructured.Unstructured {
	shown := obj.DeepCopy()
	shown.SetManagedFields(nil)
	annotations := shown.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	shown.SetAnnotations(annotations)
	return shown
}

// Tree implements ui.Reader.
func (s *sight) Tree(ctx context.Context, of ui.Kind, namespace, name string) (*view.Node, error) {
	grown, err := s.in(namespace).grow(ctx, ours(of), name)
	if problem, ok := errors.AsType[*CommandError](err); ok && problem.missing && grown.root == nil {
		return nil, &ui.NotFoundError{What: err.Error()}
	}
	return grown.root, err
}

// Why implements ui.Reader.
func (s *sight) Why(ctx context.Context, namespace, name string) (string, error) {
	var text bytes.Buffer
	w := &why{base: s.quiet(namespace, &text)}
	if err := w.readFiles(); err != nil {
		return "", err
	}
	ctx = kept(ctx)
	obj, err := w.installation(ctx, name)
	if err != nil {
		return "", err
	}
	told, unread := w.explain(ctx, obj)
	err = told.print(newTable(&text, false))
	return text.String(), errors.Join(unread, err)
}

// Plan implements ui.Reader.
func (s *sight) Plan(ctx context.Context, namespace, name string) (string, error) {
	var text bytes.Buffer
	p := newPlanner(s.quiet(namespace, &text))
	told, err := p.make(kept(ctx), name)
	if err != nil {
		return "", err
	}
	err = told.print(newTable(&text, false), p.detail)
	return text.String(), err
}

// Can implements ui.Reader. It asks the API server whether the person may patch the object, and says what there is to do.
func (s *sight) Can(ctx context.Context, obj *ui.Object) []ui.Action {
	k := ours(obj.Kind)
	if may, err := s.may(ctx, authorizationv1.ResourceAttributes{
		Group: k.Group, Resource: k.resource, Verb: "patch", Namespace: obj.Namespace, Name: obj.Name,
	}); err != nil || !may {
		return nil
	}
	var all []ui.Action
	if k.answers && !obj.Suspended {
		all = append(all, ui.Reconcile)
	}
	switch {
	case k.suspends != nil && obj.Suspended:
		all = append(all, ui.Resume)
	case k.suspends != nil:
		all = append(all, ui.Suspend)
	}
	if obj.Awaited != "" {
		all = append(all, ui.Approve)
	}
	return all
}

// patchOf is what an action sends.
func (s *sight) patchOf(obj *ui.Object, action ui.Action, reason, by string) (map[string]any, error) {
	k := ours(obj.Kind)
	var patch map[string]any
	switch action {
	case ui.Reconcile:
		patch = annotated(map[string]any{}, map[string]any{meta.ReconcileRequestAnnotation: time.Now().Format(time.RFC3339Nano)})
	case ui.Suspend:
		patch = k.suspends.suspending(by, reason)
	case ui.Resume:
		patch = k.suspends.resuming()
	case ui.Approve:
		patch = map[string]any{"spec": map[string]any{"upgrade": map[string]any{"approve": obj.Awaited}}}
	default:
		return nil, fmt.Errorf("there is no action %s", action)
	}
	metadata, _ := annotated(patch, nil)["metadata"].(map[string]any)
	metadata["resourceVersion"] = obj.Version
	return patch, nil
}

// Patch implements ui.Reader.
func (s *sight) Patch(obj *ui.Object, action ui.Action) (string, error) {
	patch, err := s.patchOf(obj, action, "(what you write below)", "(your name)")
	if err != nil {
		return "", err
	}
	raw, err := json.MarshalIndent(patch, "", "  ")
	return string(raw), err
}

// Act implements ui.Reader.
func (s *sight) Act(ctx context.Context, obj *ui.Object, action ui.Action, reason string) error {
	by := ""
	if action == ui.Suspend {
		by = s.whoAsks(ctx)
	}
	patch, err := s.patchOf(obj, action, reason, by)
	if err != nil {
		return err
	}
	k := ours(obj.Kind)
	t := newTarget(k, obj.Namespace, obj.Name)
	t.obj = &unstructured.Unstructured{}
	t.obj.SetGroupVersionKind(k.GroupVersionKind)
	t.obj.SetNamespace(obj.Namespace)
	t.obj.SetName(obj.Name)
	err = s.patch(ctx, t, patch)
	if problem, ok := errors.AsType[*CommandError](err); ok && problem.changed {
		return &ui.ChangedError{What: "It has changed since it was shown. Nothing was done; look at it again."}
	}
	return err
}
