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

func indexCount(installation *modulesv1.ModuleInstallation) []string {
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
	installations, err := o.installations(ctx, client.MatchingFields{countIndex: namespace + "/" + module})
	if err != nil {
		return Counts{}, fmt.Errorf("list the installations of module %q: %w", module, err)
	}
	found := Counts{Installations: len(installations), Channels: map[string]int{}}
	for i := range installations {
		if channel := objects.ChannelOf(&installations[i]); channel != "" {
			found.Channels[channel]++
		}
	}
	return found, nil
}
