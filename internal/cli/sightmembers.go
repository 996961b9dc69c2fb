package cli

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/ui"
)

// maxWatches is how many watches the page of an installation has of its own, with that of the installation.
const maxWatches = 32

// vigil watches where an installation has members, and where these make something. It keeps nothing of what it sees.
type vigil struct {
	there *session
	label client.MatchingLabels
	stir  func()
	// watched are the places, with what ends their watches.
	watched map[guarded]context.CancelFunc
	all     sync.WaitGroup
}

// guarded is a place, of which members alone may count.
type guarded struct {
	place

	members bool
}

// Members implements ui.Reader. Of an installation of very many kinds those that it has first are watched.
func (s *sight) Members(ctx context.Context, of ui.Kind, namespace, name string, stir func()) {
	there := s.in(namespace)
	v := &vigil{there: there, stir: stir, label: client.MatchingLabels{engine.Label: engine.InstallationID(name, namespace)}, watched: map[guarded]context.CancelFunc{}}
	defer v.all.Wait()
	chosen := func() *client.ListOptions {
		return (&client.ListOptions{}).ApplyOptions([]client.ListOption{client.InNamespace(namespace), client.MatchingFields{metav1.ObjectNameField: name}})
	}
	_ = there.follow(ctx, follower{
		kind: ours(of), patient: true, options: chosen,
		list: func(found []unstructured.Unstructured) error {
			for i := range found {
				v.watch(ctx, &found[i])
			}
			return nil
		},
		change: func(obj *unstructured.Unstructured, gone bool) error {
			if !gone {
				v.watch(ctx, obj)
			}
			return nil
		},
	})
}

// placesOf are where an installation has members, and where these make something.
func placesOf(obj *unstructured.Unstructured) []guarded {
	var installation modulesv1.ModuleInstallation
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &installation); err != nil || installation.Status.Inventory == nil {
		return nil
	}
	var all []guarded
	for _, content := range installation.Status.Inventory.Contents {
		gvk := schema.GroupVersionKind{Group: content.Group, Version: content.Version, Kind: content.Kind}
		for _, namespace := range namespacesOf(content) {
			all = append(all, guarded{place{gvk, namespace}, true})
			for _, made := range makes(gvk.GroupKind()) {
				all = append(all, guarded{place{made, namespace}, false})
			}
		}
	}
	return all
}

// watch watches what the installation has now. Once something is watched that was not before, it says so.
func (v *vigil) watch(ctx context.Context, obj *unstructured.Unstructured) {
	wanted := map[guarded]bool{}
	for _, at := range placesOf(obj) {
		if len(wanted) < maxWatches-1 {
			wanted[at] = true
		}
	}
	for at, leave := range v.watched {
		if !wanted[at] {
			leave()
			delete(v.watched, at)
		}
	}
	var begun sync.WaitGroup
	known := len(v.watched)
	for at := range wanted {
		if v.watched[at] != nil {
			continue
		}
		life, leave := context.WithCancel(ctx)
		v.watched[at] = leave
		begun.Add(1)
		isOn := sync.OnceFunc(begun.Done)
		v.all.Go(func() {
			defer isOn()
			v.follow(life, at, isOn)
			// For want of a right, of which the page tells when it is read.
			v.stir()
		})
	}
	if len(v.watched) > known {
		begun.Wait()
		v.stir()
	}
}

// follow says that something may have changed at the place. Where a watch begins is known from a list of one. A place that cannot be had
// at first keeps nobody waiting, and says so once it can.
func (v *vigil) follow(ctx context.Context, at guarded, isOn func()) {
	asked := 0
	options := func() *client.ListOptions {
		if asked++; asked > 1 {
			isOn()
		}
		chosen := (&client.ListOptions{}).ApplyOptions([]client.ListOption{client.InNamespace(at.namespace), client.Limit(1)})
		if at.members {
			v.label.ApplyToList(chosen)
		}
		return chosen
	}
	_ = v.there.follow(ctx, follower{
		kind: kind{GroupVersionKind: at.GroupVersionKind}, barely: true, patient: true, options: options,
		list: func([]unstructured.Unstructured) error {
			isOn()
			if asked > 1 {
				v.stir()
			}
			return nil
		},
		change: func(*unstructured.Unstructured, bool) error {
			v.stir()
			return nil
		},
	})
}
