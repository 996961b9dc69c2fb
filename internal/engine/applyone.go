package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/watch"
)

// maxTries is how often an object that others keep changing is asked for again within a round.
const maxTries = 5

// applyOne applies an object: without force first, so that it is known whom something is taken from. An object that
// changed between the two requests is asked for anew, for it may belong to somebody else by now.
func (r *round) applyOne(ctx context.Context, o object, m *modulesv1.Member) result {
	options := cluster.ApplyOptions{Manager: r.manager()}
	if m != nil {
		options.Before = cluster.Applied{UID: types.UID(m.UID), Fingerprint: m.Fingerprint}
	}
	done := result{object: o}
	for range maxTries {
		done.notes, done.rivals = nil, nil
		done.applied, done.err = r.client.Apply(ctx, o.Unstructured, options)
		if conflict, ok := errors.AsType[*cluster.ConflictError](done.err); ok {
			done.applied, done.notes, done.err = r.take(ctx, o, m, conflict, options)
			if conflict.Owner == "" {
				done.rivals = managersIn(conflict)
			}
		}
		if !errors.Is(done.err, cluster.ErrChanged) {
			break
		}
	}
	if errors.Is(done.err, cluster.ErrImmutable) {
		done.applied, done.err = r.recreate(ctx, o, m, options, done.err)
	}
	if done.err == nil && done.applied.Deleting {
		done.err = fmt.Errorf("%s is being deleted, and can be applied once it is gone", describe(refOfObject(o.Unstructured)))
	}
	return done
}

// take takes over the fields of an object that others hold. It is forced on the one version that is known not to belong
// to another installation: two that take over the same object at once would else overwrite each other without a word.
func (r *round) take(
	ctx context.Context, o object, m *modulesv1.Member, conflict *cluster.ConflictError, options cluster.ApplyOptions,
) (cluster.Applied, []Note, error) {
	options.Force = true
	notes := []Note{taken(conflict)}
	if meta := r.seen(m); meta != nil && conflict.Owner == "" {
		options.Only = cluster.Version{UID: meta.UID, ResourceVersion: meta.ResourceVersion}
		applied, err := r.client.Apply(ctx, o.Unstructured, options)
		if !errors.Is(err, cluster.ErrChanged) {
			return applied, notes, err
		}
		// The watch is behind.
	}
	live, err := r.client.Metadata(ctx, refOfObject(o.Unstructured))
	switch {
	case errors.Is(err, cluster.ErrNotFound):
		return cluster.Applied{}, nil, fmt.Errorf("%w: %w", cluster.ErrChanged, err)
	case err != nil:
		return cluster.Applied{}, nil, err
	}
	if label := live.Labels[Label]; conflict.Owner != "" || label != "" && label != r.id() {
		if notes, err = r.handOver(ctx, o, m, conflict, live); err != nil {
			return cluster.Applied{}, nil, err
		}
	}
	options.Only = cluster.Version{UID: live.UID, ResourceVersion: live.ResourceVersion}
	applied, err := r.client.Apply(ctx, o.Unstructured, options)
	return applied, notes, err
}

// seen is what the watch has of a member that carries this installation's label; nil when it has nothing.
func (r *round) seen(m *modulesv1.Member) *watch.Meta {
	if m == nil {
		return nil
	}
	if meta, _ := r.state(m); meta != nil && meta.PartOf == r.id() {
		return meta
	}
	return nil
}

// taken tells who had set the fields that are now taken over.
func taken(conflict *cluster.ConflictError) Note {
	var paths []string
	for _, field := range conflict.Fields[:min(len(conflict.Fields), maxNamed)] {
		paths = append(paths, field.Path)
	}
	return Note{Reason: modulesv1.OwnershipTakenReason, Warning: true, Message: bounded(fmt.Sprintf(
		"took over fields of %s that %s had set: %s", describe(conflict.Ref), strings.Join(managersIn(conflict), ", "), strings.Join(paths, ", ")))}
}

// managersIn are the managers that hold the fields, quoted, each once.
func managersIn(conflict *cluster.ConflictError) []string {
	var managers []string
	for _, field := range conflict.Fields {
		if name := strconv.Quote(field.Manager); !slices.Contains(managers, name) {
			managers = append(managers, name)
		}
	}
	return managers[:min(len(managers), maxNamed)]
}
