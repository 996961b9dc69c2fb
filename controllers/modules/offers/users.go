package offers

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog/objects"
)

// usesIndex finds the installations that need releases of a template, by namespace/name.
const usesIndex = "status.releases.template"

func indexUses(installation *modulesv1.ModuleInstallation) []string {
	var keys []string
	for _, release := range objects.ReleasesOf(installation) {
		keys = append(keys, release.Namespace+"/"+release.Template)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Uses are what the installations need of a template.
type Uses struct {
	// Installations is how many need any release of it.
	Installations int
	// Sources are the names of the sources that these need.
	Sources map[string]bool
}

// UsesOf are what all installations need of the template, present and past releases: by what their status says, and by
// what this process knows of them.
func (o *Offers) UsesOf(ctx context.Context, t *modulesv1.ModuleTemplate) (Uses, error) {
	installations, err := o.installations(ctx, client.MatchingFields{usesIndex: t.Namespace + "/" + t.Name})
	if err != nil {
		return Uses{}, fmt.Errorf("list the installations that need template %q: %w", t.Name, err)
	}
	users, found := Names{}, Uses{Sources: map[string]bool{}}
	for i := range installations {
		user := &installations[i]
		if !o.Reach(t.Namespace, user.Namespace) {
			continue // Its status says what cannot be.
		}
		users.Insert(client.ObjectKeyFromObject(user))
		for _, release := range objects.ReleasesOf(user) {
			switch {
			case release.Namespace != t.Namespace || release.Template != t.Name:
			case release.Source != nil:
				found.Sources[release.Source.Name] = true
			default:
				found.Sources[objects.SourceOf(t).Name] = true
			}
		}
	}
	o.needs.join(client.ObjectKeyFromObject(t), users, found.Sources)
	found.Installations = len(users)
	return found, nil
}
