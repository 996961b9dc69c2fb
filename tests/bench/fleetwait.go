package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// patience bounds every wait.
const patience = 10 * time.Minute

var errTooLong = errors.New("it takes too long")

// installed waits until the version is installed and healthy in all of the namespaces.
func (f *fleet) installed(ctx context.Context, version string, namespaces ...string) error {
	missing, last := map[string]bool{}, ""
	for _, namespace := range namespaces {
		missing[namespace] = true
	}
	err := follow(ctx, f, &modulesv1.ModuleInstallationList{}, func(obj *modulesv1.ModuleInstallation) bool {
		if conditions.IsReady(obj) && obj.Status.ObservedGeneration == obj.Generation &&
			obj.Status.Current != nil && obj.Status.Current.Version == version {
			delete(missing, obj.Namespace)
		} else if missing[obj.Namespace] {
			last = obj.Namespace + ": " + conditions.GetMessage(obj, meta.ReadyCondition)
		}
		return len(missing) == 0
	})
	if err != nil {
		return fmt.Errorf("%d installations are not ready with %s: %w; last seen: %s", len(missing), version, err, last)
	}
	return nil
}

// gone waits until there is no installation in the namespace.
func (f *fleet) gone(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		var list modulesv1.ModuleInstallationList
		if err := f.client.List(ctx, &list, client.InNamespace(namespace)); err != nil || len(list.Items) == 0 {
			return err
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return errTooLong
		}
	}
}

// follow watches objects until one of them, or all, are as wanted. It begins with those that exist.
func follow[O client.Object](ctx context.Context, f *fleet, list client.ObjectList, holds func(O) bool, options ...client.ListOption) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	events, err := f.client.Watch(ctx, list, options...)
	if err != nil {
		return err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		obj, ok := event.Object.(O)
		if !ok {
			return fmt.Errorf("watch %T: %+v", list, event.Object)
		}
		if event.Type != apiwatch.Deleted && holds(obj) {
			return nil
		}
	}
	return errTooLong
}

// settle waits until the program has asked the API server nothing for a while.
func (f *fleet) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	last, since := -1.0, time.Now()
	for {
		now, err := f.metric(ctx, requestsMetric)
		if err == nil && now != last {
			last, since = now, time.Now()
		}
		if err == nil && time.Since(since) >= f.quiet {
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("the program does not come to rest: %w", err)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
