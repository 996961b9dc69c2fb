package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/health"
	"sluice.dev/sluice/internal/failure"
)

// apply applies the members that the attempt is to change, stage by stage, and writes down what came of it: in one
// write, however many they were. A stage begins once all of the one before was taken.
func (r *round) apply(ctx context.Context) (bool, error) {
	made, err := r.renders.objects(ctx, r.aim)
	if err != nil {
		return false, err
	}
	if made.digest != r.record.Data.Attempt.RenderDigest {
		// A kind that was unknown when the attempt began turned out to have no namespace: what is claimed has other names.
		return true, nil
	}
	done, err := r.applyStages(ctx, r.toApply(made))
	if done {
		err = r.letIgnoredGo(ctx, made)
	}
	if !done || err != nil {
		return false, errors.Join(err, r.saveProgress(ctx))
	}
	if err := r.applied(ctx, made); err != nil {
		return false, err
	}
	r.watch(r.record.Data.Members) //nolint:contextcheck // Watches outlive the round that asks for them.
	if len(r.engine.parts.Watcher.Problems(r.key)) > 0 {
		// A kind may have come with what was just applied.
		r.engine.parts.Watcher.Retry(r.key)
	}
	return true, nil
}

// toApply are the objects that are not known to be as the attempt has them.
func (r *round) toApply(made *render) []object {
	known := index(r.record.Data.Members)
	return slices.DeleteFunc(slices.Clone(made.objects), func(o object) bool {
		m := known[o.key]
		asIs := m != nil && wanted(m) && m.RenderHash == o.hash || r.memory.progress[o.key].hash == o.hash
		return asIs || o.once && m == nil
	})
}

// applyStages applies objects until some of a stage fail, or wait for a CRD, which is an error only once it is overdue.
func (r *round) applyStages(ctx context.Context, todo []object) (done bool, err error) {
	slices.SortStableFunc(todo, func(a, b object) int { return cmp.Compare(a.stage, b.stage) })
	for len(todo) > 0 {
		end := slices.IndexFunc(todo, func(o object) bool { return o.stage != todo[0].stage })
		if end < 0 {
			end = len(todo)
		}
		awaited, failed := map[key]object{}, []memberError(nil)
		results := r.applyAll(ctx, todo[:end])
		for _, one := range results {
			if one.err == nil {
				continue
			}
			crd, comes := r.aim.render.definition(one.of.GroupVersionKind())
			if comes && errors.Is(one.err, cluster.ErrNoKind) {
				awaited[crd.key] = one.of
			} else {
				failed = append(failed, memberError{refOfObject(one.of.Unstructured), one.err})
			}
		}
		stops := len(failed)+len(awaited) > 0
		if stops {
			results = append(results, r.claimLater(ctx, results, todo[end:])...)
		}
		r.noteResults(results) //nolint:contextcheck // Watches outlive the round that asks for them.
		if stops {
			overdue := r.await(ctx, awaited)
			return false, cmp.Or(joined(StageApply, modulesv1.ApplyFailedReason, failed), overdue)
		}
		todo = todo[end:]
	}
	return true, nil
}

// result is what became of an object that was applied.
type result struct {
	progress

	notes []Note
	// rivals are the managers, quoted, that fields were taken over from.
	rivals []string
	// fields are those that were taken over, with their managers.
	fields []cluster.Field
	// adopted says that the object was there, and not the installation's, and unfit why it had to be made anew.
	adopted bool
	unfit   error
	// left says that nothing was applied, as the object's annotation has it.
	left bool
}

// applyAll applies objects in parallel, and tells the watcher and the notes.
func (r *round) applyAll(ctx context.Context, objects []object) []answer[object, result] {
	known := index(r.record.Data.Members)
	taker := r.taker()
	results := each(ctx, r.over, objects, func(o object) (result, error) {
		if err := r.servedByOwn(o); err != nil {
			return result{}, err
		}
		return taker.apply(ctx, o, known[o.key])
	})
	for _, one := range results {
		r.out.Notes = append(r.out.Notes, one.found.notes...)
		if one.err == nil && !one.found.left {
			r.wrote(one.of, one.found.applied)
		}
	}
	r.out.Notes = fewer(r.out.Notes)
	return results
}

// saveProgress writes down what was applied, if anything was.
func (r *round) saveProgress(ctx context.Context) error {
	if len(r.memory.progress) == 0 {
		return nil
	}
	if err := r.store(ctx, func(record *modulesv1.Inventory) { fold(record, r.memory.progress) }); err != nil {
		return err
	}
	clear(r.memory.progress)
	return nil
}

// applied makes the attempt's release the current one. What is not part of it loses its hash, which makes it a leftover.
func (r *round) applied(ctx context.Context, made *render) error {
	now := metav1.NewTime(r.engine.clock.Now())
	err := r.store(ctx, func(record *modulesv1.Inventory) {
		fold(record, r.memory.progress)
		data := &record.Data
		for m := range every(data.Members) {
			if !made.keys[keyOf(m)] {
				m.RenderHash, m.Fingerprint = "", ""
			}
		}
		release := *data.Attempt.Release.DeepCopy()
		release.AppliedAt, release.HealthyAt = &now, nil
		if data.Current != nil && !sameRelease(*data.Current, release) {
			data.Previous = data.Current
		}
		data.Current, data.RenderDigest = &release, data.Attempt.RenderDigest
		data.Attempt.Stage, data.Attempt.AppliedAt = modulesv1.StageWaiting, &now
		if r.wantsDefaultConfig() && data.DefaultConfigCreated == nil {
			// It is created once, and written down before.
			data.DefaultConfigCreated = createdFrom(r.defaultObject())
		}
	})
	if err != nil {
		return err
	}
	clear(r.memory.progress)
	r.memory.unhealthySince = time.Time{}
	r.memory.blindAt = now.Add(r.in.interval())
	return nil
}

// fold takes what was applied into the members. What is there and is somebody else's is none.
func fold(record *modulesv1.Inventory, done map[key]progress) {
	data := &record.Data
	data.Members = slices.DeleteFunc(data.Members, func(m modulesv1.Member) bool { return done[keyOf(&m)].foreign })
	for m := range every(data.Members) {
		one, found := done[keyOf(m)]
		if !found {
			continue
		}
		if one.claim != nil {
			m.Claimed, m.Ended, m.UID, m.Adopted = true, false, string(one.claim.uid), !one.claim.made
			metav1.SetMetaDataLabel(&record.ObjectMeta, one.claim.label(), "")
			continue
		}
		if uid := string(one.applied.UID); m.UID != uid || m.Claimed {
			m.Adopted = !one.applied.Made
		}
		m.UID, m.RenderHash, m.Fingerprint = string(one.applied.UID), one.hash, one.applied.Fingerprint
		m.State, m.Claimed, m.Ended = modulesv1.MemberApplied, false, false
	}
}

// gateAgain is how soon a CRD that objects wait for is looked at again.
const gateAgain = 500 * time.Millisecond

// await tells of CRDs of the release that do not serve their kinds yet, for which objects have to wait: of each, one is
// given. It fails once they should. A Namespace needs no waiting: it is Active as soon as it is there, and one that is on
// its way out is an error when it is applied.
func (r *round) await(ctx context.Context, waiting map[key]object) error {
	var overdue []memberError
	for _, one := range waiting {
		if r.over(ctx) != nil {
			return late(StageApply)
		}
		gvk := one.GroupVersionKind()
		crd, _ := r.aim.render.definition(gvk)
		ref := refOfObject(crd.Unstructured)
		status, message := health.InProgress, "is gone, and is applied again"
		live, err := r.client.Get(ctx, ref)
		switch {
		case err == nil:
			status, message = (&health.Checker{}).Check(live)
		case errors.Is(err, cluster.ErrNotFound):
			r.unapply(crd.key)
		default:
			return failure.At(StageApply, err)
		}
		switch {
		case status == health.Current && serves(live, gvk.Version):
			message = "its kind is not served yet"
			r.engine.parts.Connector.Refresh()
		case status == health.Current:
			message = "it does not serve version " + gvk.Version
		}
		r.out.waitFor(ref, message)
		r.out.again(gateAgain)
		overdue = append(overdue, memberError{ref, fmt.Errorf("%s, which others need, is not ready: %s", describe(ref), message)})
	}
	if r.engine.clock.Now().Sub(r.record.Data.Attempt.StartedAt.Time) < r.in.Spec.GetTimeout() {
		return nil
	}
	return joined(StageApply, modulesv1.ApplyFailedReason, overdue)
}

// servedByOwn is cluster.ErrNoKind for an object whose kind a CRD of the release defines, while the kind's name is another
// CRD's: the object would go there.
func (r *round) servedByOwn(o object) error {
	if o.stage != cluster.StageCustom {
		return nil
	}
	crd, found := r.aim.render.definition(o.GroupVersionKind())
	if !found {
		return nil
	}
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	return r.client.ServedAs(o.GroupVersionKind(), plural)
}

// unapply has a member that is gone applied again: before a release is applied in full, nothing is healed.
func (r *round) unapply(k key) {
	m := index(r.record.Data.Members)[k]
	if m == nil {
		return
	}
	one, known := r.memory.progress[k]
	if !known {
		one.applied.UID = types.UID(m.UID)
	}
	one.hash = ""
	r.memory.progress[k] = one
}

// defined is the kind that a CRD defines.
func defined(o *unstructured.Unstructured) (schema.GroupKind, bool) {
	return definedBy(o), o.GroupVersionKind().GroupKind() == definitionKind()
}

func definedBy(crd *unstructured.Unstructured) schema.GroupKind {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}
}

// definition is the CRD in the release that serves the kind in this version, so that it is there before long.
func (r *render) definition(gvk schema.GroupVersionKind) (crd object, found bool) {
	at := slices.IndexFunc(r.objects, func(o object) bool {
		kind, ok := defined(o.Unstructured)
		return ok && kind == gvk.GroupKind() && serves(o.Unstructured, gvk.Version)
	})
	if at < 0 {
		return object{}, false
	}
	return r.objects[at], true
}

func serves(crd *unstructured.Unstructured, version string) bool {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	return slices.ContainsFunc(versions, func(one any) bool {
		fields, _ := one.(map[string]any)
		return fields["name"] == version && fields["served"] == true
	})
}
