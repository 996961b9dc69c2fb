package cli

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// follow shows each object of a kind as it is, and whenever it changes, until the context ends or a right is missing. A watch that
// ends is begun anew. Of an object that is gone the last that was seen of it is shown.
func (s *session) follow(ctx context.Context, k kind, see func(obj *unstructured.Unstructured, gone bool) error, options ...client.ListOption) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	fresh := func() *unstructured.UnstructuredList {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
		return list
	}
	asked := func(given metav1.ListOptions) *client.ListOptions {
		chosen := (&client.ListOptions{}).ApplyOptions(options)
		chosen.Raw = &given
		chosen.Limit, chosen.Continue = given.Limit, given.Continue
		return chosen
	}
	refused := func(err error) error {
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			stop(err)
		}
		return err
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, given metav1.ListOptions) (runtime.Object, error) {
			list := fresh()
			return list, refused(s.List(ctx, list, asked(given)))
		},
		WatchFuncWithContext: func(ctx context.Context, given metav1.ListOptions) (watch.Interface, error) {
			opened, err := s.Watch(ctx, fresh(), asked(given))
			return opened, refused(err)
		},
	}
	_, _, changes, done := watchtools.NewIndexerInformerWatcherWithLogger(klog.FromContext(ctx), source, &unstructured.Unstructured{})
	defer func() { changes.Stop(); <-done }()
	for {
		select {
		case <-ctx.Done():
			return explain("watch "+k.resource, context.Cause(ctx), "sluice-view")
		case change := <-changes.ResultChan():
			obj, ok := change.Object.(*unstructured.Unstructured)
			if !ok {
				return &CommandError{Code: ExitUnanswered, What: "watch " + k.resource, Why: fmt.Sprintf("got a %T", change.Object)}
			}
			if err := see(obj, change.Type == watch.Deleted); err != nil {
				return err
			}
		}
	}
}

// ended is the error of a command that goes on until it is interrupted: of that nothing is told.
func ended(err error) error {
	if problem, ok := errors.AsType[*CommandError](err); ok && problem.Code == ExitInterrupted {
		return &CommandError{Code: ExitInterrupted}
	}
	return err
}
