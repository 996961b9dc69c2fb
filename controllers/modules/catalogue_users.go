package modules

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// usesIndex finds the installations that need releases of a template, by namespace/name.
const usesIndex = "status.releases.template"

func indexUses(obj client.Object) []string {
	installation, ok := obj.(*modulesv1.ModuleInstallation)
	if !ok {
		return nil
	}
	var keys []string
	for _, release := range releasesOf(installation) {
		keys = append(keys, release.Namespace+"/"+release.Template)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// releasesOf are the releases that the installation runs, has begun to run, is about to run, or may go back to.
func releasesOf(installation *modulesv1.ModuleInstallation) []*modulesv1.Release {
	var releases []*modulesv1.Release
	status := &installation.Status
	for _, release := range []*modulesv1.Release{status.Desired, status.Current, status.Attempted, status.Previous} {
		if release != nil && release.Template != "" {
			releases = append(releases, release)
		}
	}
	return releases
}

// uses are what the installations need of a template.
type uses struct {
	// installations is how many need any release of it.
	installations int
	// sources are the names of the sources that these need.
	sources map[string]bool
}

// usesOf are what all installations need of the template, present and past releases: by what their status says, and by
// what this process knows of them.
func (c *Catalogue) usesOf(ctx context.Context, t *modulesv1.ModuleTemplate) (uses, error) {
	var list modulesv1.ModuleInstallationList
	err := c.reader.List(ctx, &list, client.MatchingFields{usesIndex: t.Namespace + "/" + t.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return uses{}, fmt.Errorf("list the installations that need template %q: %w", t.Name, err)
	}
	users, found := map[types.NamespacedName]struct{}{}, uses{sources: map[string]bool{}}
	for i := range list.Items {
		if !c.offers(t.Namespace, list.Items[i].Namespace) {
			continue // Its status says what cannot be.
		}
		users[client.ObjectKeyFromObject(&list.Items[i])] = struct{}{}
		for _, release := range releasesOf(&list.Items[i]) {
			switch {
			case release.Namespace != t.Namespace || release.Template != t.Name:
			case release.Source != nil:
				found.sources[release.Source.Name] = true
			default:
				found.sources[sourceOf(t).Name] = true
			}
		}
	}
	c.needs.join(client.ObjectKeyFromObject(t), users, found.sources)
	found.installations = len(users)
	return found, nil
}
