package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// follower is told of the objects of a kind.
type follower struct {
	kind kind
	// barely says that their metadata alone is read.
	barely bool
	// patient says that what cannot be had at first is asked for again.
	patient bool
	// options choose the objects anew for each look.
	options func() *client.ListOptions
	// list takes all of them as they are, and change one that has changed since, or is gone. errEnough ends it well, and any other
	// error with that.
	list   func([]unstructured.Unstructured) error
	change func(obj *unstructured.Unstructured, gone bool) error
}

// errEnough says that a follower has seen all that it wants to see.
var errEnough = errors.New("enough was seen")

// follow tells until the follower has enough, the context ends, or a right is missing. A watch that ends is begun anew, with growing
// pauses until one holds for a minute.
func (s *session) follow(ctx context.Context, f follower) error {
	fresh := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 5}
	pauses := fresh
	for first := true; ; first = false {
		begun := time.Now()
		stopped, err := s.look(ctx, f)
		if time.Since(begun) > time.Minute {
			pauses = fresh
		}
		switch {
		case errors.Is(stopped, errEnough):
			return nil
		case stopped != nil:
			return stopped
		case ctx.Err() != nil:
			return ctx.Err()
		case first && !f.patient && errors.Is(err, errUnlisted), apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), meta.IsNoMatchError(err):
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pauses.Step()):
		}
	}
}

// errUnlisted says that the objects could not be had at all.
var errUnlisted = errors.New("list")

// look tells of the objects once, and of what changes until the watch ends. Stopped is the follower's own error.
func (s *session) look(ctx context.Context, f follower) (stopped, err error) {
	fresh := func() client.ObjectList {
		if f.barely {
			return bareList(f.kind.GroupVersionKind)
		}
		return f.kind.list()
	}
	// What opens the watch anew does so beside the follower, which may choose others meanwhile.
	found, chosen := fresh(), f.options()
	if err := s.List(ctx, found, chosen); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnlisted, err)
	}
	var items []unstructured.Unstructured
	switch found := found.(type) {
	case *unstructured.UnstructuredList:
		items = found.Items
	case *metav1.PartialObjectMetadataList:
		items = bared(f.kind.GroupVersionKind, found)
	}
	if stopped = f.list(items); stopped != nil {
		return stopped, nil
	}
	open := func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		asked := *chosen
		asked.Raw = &options
		return s.Watch(ctx, fresh(), &asked)
	}
	_, err = watchtools.Until(ctx, found.GetResourceVersion(), &cache.ListWatch{WatchFuncWithContext: open}, func(event watch.Event) (bool, error) {
		if event.Type == watch.Error {
			return false, apierrors.FromObject(event.Object)
		}
		switch obj := event.Object.(type) {
		case *unstructured.Unstructured:
			stopped = f.change(obj, event.Type == watch.Deleted)
		case *metav1.PartialObjectMetadata:
			for _, one := range bared(f.kind.GroupVersionKind, &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{*obj}}) {
				stopped = f.change(&one, event.Type == watch.Deleted)
			}
		}
		return stopped != nil, nil
	})
	return stopped, err
}

// ended is the error of a command that goes on until it is interrupted: of that nothing is told.
func ended(what string, err error) error {
	if errors.Is(err, context.Canceled) {
		return &CommandError{Code: ExitInterrupted}
	}
	if problem, ok := errors.AsType[*CommandError](err); ok {
		return problem
	}
	return explain(what, err, "sluice-view")
}
