package engine

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// rights are what was found about the right to count users' data.
type rights struct {
	// again is when they are asked for once more; zero before the first time.
	again   time.Time
	missing []string
}

// askRights asks, once an attempt, whether the identity may list all users' data: whoever learns only at a deletion that
// it may not has nobody left to ask. The installation goes on without. What is missing is asked for again.
func (r *round) askRights(ctx context.Context) {
	known, now := &r.memory.rights, r.engine.clock.Now()
	if known.again.IsZero() || r.in.Verify || len(known.missing) > 0 && !now.Before(known.again) {
		*known = rights{again: now.Add(r.in.interval())}
		if r.mode() == modulesv1.DeletionBlock {
			known.missing = r.missingRights(ctx)
		}
	}
	r.out.Uncounted = known.missing
}

// missingRights are what the identity may not list, sorted. What cannot be found out is asked with the next attempt.
func (r *round) missingRights(ctx context.Context) (missing []string) {
	// A CRD's name tells its resource.
	resources := map[schema.GroupResource]string{}
	for kind, namespace := range r.managedKinds() {
		if resource, err := r.client.Resource(kind.WithVersion("")); err == nil {
			resources[resource] = namespace
		}
	}
	for _, m := range r.members() {
		if kindOf(&m).GroupKind() == definitionKind() {
			resources[schema.ParseGroupResource(m.Name)] = ""
		}
	}
	for _, one := range each(ctx, r.over, slices.Collect(maps.Keys(resources)), func(resource schema.GroupResource) (bool, error) {
		return r.client.MayList(ctx, resource, resources[resource])
	}) {
		place := " in all namespaces"
		if namespace := resources[one.of]; namespace != "" {
			place = " in namespace " + namespace
		}
		if one.err == nil && !one.found {
			missing = append(missing, one.of.String()+place)
		}
	}
	slices.Sort(missing)
	return missing
}

// reviewRights asks anew, for an attempt that begins, and tells what is missing.
func (r *round) reviewRights(ctx context.Context) {
	r.memory.rights = rights{}
	r.askRights(ctx)
	if missing := r.out.Uncounted; len(missing) > 0 {
		r.out.warn(modulesv1.ForbiddenReason, "%s may not list %s: in mode Block a deletion will not know whether there are users' data, and delete nothing; grant list on them",
			r.in.Identity, strings.Join(missing, ", "))
	}
}
