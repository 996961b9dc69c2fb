package modules

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
)

// countDelay is how long changes of installations are gathered before a module counts them: a channel that moves changes
// many at once.
const countDelay = 5 * time.Second

// countIndex finds the installations of a module, by the catalogue's namespace and the module's name.
const countIndex = "status.resolution.module"

func indexCount(obj client.Object) []string {
	installation, ok := obj.(*modulesv1.ModuleInstallation)
	if !ok {
		return nil
	}
	if key := countKey(installation); key != "" {
		return []string{key}
	}
	return nil
}

// countKey is the module that the installation was last resolved to; empty for none.
func countKey(obj *modulesv1.ModuleInstallation) string {
	resolution := obj.Status.Resolution
	if resolution == nil || resolution.Module == "" || resolution.Namespace == "" {
		return ""
	}
	return resolution.Namespace + "/" + resolution.Module
}

// followed is the channel that the installation follows; empty for none.
func followed(obj *modulesv1.ModuleInstallation) string {
	if obj.Status.Resolution == nil {
		return ""
	}
	channel, _ := strings.CutPrefix(obj.Status.Resolution.SelectedBy, string(catalog.ByChannel)+"/")
	if channel == obj.Status.Resolution.SelectedBy {
		return ""
	}
	return channel
}

// counts are how many installations a module has, and how many of them follow each channel.
type counts struct {
	installations int
	channels      map[string]int
}

func (c *Catalogue) counts(ctx context.Context, namespace, module string) (counts, error) {
	var list modulesv1.ModuleInstallationList
	err := c.reader.List(ctx, &list, client.MatchingFields{countIndex: namespace + "/" + module}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return counts{}, fmt.Errorf("list the installations of module %q: %w", module, err)
	}
	found := counts{installations: len(list.Items), channels: map[string]int{}}
	for i := range list.Items {
		if channel := followed(&list.Items[i]); channel != "" {
			found.channels[channel]++
		}
	}
	return found, nil
}
