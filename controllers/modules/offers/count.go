package offers

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog/objects"
)

// countIndex finds the installations of a module, by the catalogue's namespace and the module's name.
const countIndex = "status.resolution.module"

func indexCount(obj client.Object) []string {
	installation, ok := obj.(*modulesv1.ModuleInstallation)
	if !ok {
		return nil
	}
	if key := CountKey(installation); key != "" {
		return []string{key}
	}
	return nil
}

// CountKey is the module that the installation was last resolved to; empty for none.
func CountKey(obj *modulesv1.ModuleInstallation) string {
	resolution := obj.Status.Resolution
	if resolution == nil || resolution.Module == "" || resolution.Namespace == "" {
		return ""
	}
	return resolution.Namespace + "/" + resolution.Module
}

// Counts are how many installations a module has, and how many of them follow each channel.
type Counts struct {
	Installations int
	Channels      map[string]int
}

// Count says how many installations follow the module of the catalogue in the namespace.
func (o *Offers) Count(ctx context.Context, namespace, module string) (Counts, error) {
	var list modulesv1.ModuleInstallationList
	err := o.reader.List(ctx, &list, client.MatchingFields{countIndex: namespace + "/" + module}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return Counts{}, fmt.Errorf("list the installations of module %q: %w", module, err)
	}
	found := Counts{Installations: len(list.Items), Channels: map[string]int{}}
	for i := range list.Items {
		if channel := objects.ChannelOf(&list.Items[i]); channel != "" {
			found.Channels[channel]++
		}
	}
	return found, nil
}
