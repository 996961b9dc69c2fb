package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// claim begins an attempt: it writes down every object that is about to be applied, before the first request that
// could create or change one. Members that will change lose their hash, so that after a crash at any point it is known
// which have to be applied again: the API server would not show that the same manager had begun to.
func (r *round) claim(ctx context.Context) (bool, error) {
	if err := r.depend(ctx); err != nil {
		return r.putOff(err)
	}
	made, err := r.renders.objects(ctx, r.aim)
	if err != nil {
		return false, err
	}
	members := slices.Clone(r.members())
	if err := r.recognise(ctx, members, made); err != nil {
		return false, err
	}
	union := claimed(members, made)
	if err := fits(union, r.aim.target.Health); err != nil {
		return r.putOff(failure.At(StageApply, failure.Stall(modulesv1.InventoryTooLargeReason, err)))
	}
	deletion, err := r.deletion(r.aim.target, true)
	if err != nil {
		return false, err
	}
	if seal := r.aim.target.Seal; seal != nil {
		if err := seal(ctx); err != nil {
			return r.putOff(failure.At(StageRecord, err))
		}
	}
	attempt := &modulesv1.Attempt{
		Release: *r.aim.target.Release.DeepCopy(), RenderDigest: r.aim.digest, Stage: modulesv1.StageApplying,
		StartedAt: metav1.NewTime(r.engine.clock.Now()),
	}
	clear(r.memory.progress)
	err = r.save(ctx, func(data *modulesv1.InventoryData) {
		if data.Attempt != nil {
			remember(data, data.Attempt.Release, modulesv1.OutcomeFailed, r.engine.clock.Now(), "overtaken by another choice")
		}
		data.Attempt, data.Members, data.Deletion, data.Health = attempt, union, deletion, r.aim.target.Health
		data.Phase = modulesv1.PhaseUpgrading
		if data.Current == nil {
			data.Phase = modulesv1.PhaseInstalling
		}
	})
	if err != nil {
		return false, err
	}
	r.memory.claims(members, union)
	r.reviewRights(ctx)
	return true, nil
}

// recognise finds the UIDs of members that were made and not written down: applied with other values, they tell no more.
func (r *round) recognise(ctx context.Context, members []modulesv1.Member, made *render) error {
	var failed []memberError
	for m := range every(members) {
		if m.UID != "" || !made.keys[keyOf(m)] || r.memory.isUnmade(m) {
			continue
		}
		if r.over(ctx) != nil {
			return late(StageApply)
		}
		_, live, err := find(ctx, r.client, refOf(m))
		switch {
		case errors.Is(err, cluster.ErrNotFound), errors.Is(err, cluster.ErrNoKind):
		case err != nil:
			failed = append(failed, memberError{refOf(m), err})
		case r.owns(live, m) && cluster.MadeBy(live, r.manager):
			m.UID = string(live.UID)
		}
	}
	return joined(StageApply, modulesv1.ApplyFailedReason, failed)
}

// putOff begins nothing in this round, and says why at its end: what is installed is looked after first.
func (r *round) putOff(err error) (bool, error) {
	if r.record == nil {
		return false, err
	}
	r.held = err
	return true, nil
}

// fits says why an Inventory cannot hold the members beside what is known of their health. It has to hold them also once
// all is known of them: whoever finds out only then has applied objects, and nowhere to write that down.
func fits(members []modulesv1.Member, health []modulesv1.HealthExpression) error {
	const remedy = "split the module into several, or let what is no longer needed be pruned first"
	if len(members) > modulesv1.MaxMembers {
		return fmt.Errorf("the release and what is installed are %d objects together, and data.members of the Inventory holds %d: %s",
			len(members), modulesv1.MaxMembers, remedy)
	}
	// What a UID, and a hash, take in the record.
	const uid, hash = "00000000-0000-0000-0000-000000000000", "AAAAAAAAAAAAAAAAAAAAAA"
	full := slices.Clone(members)
	for m := range every(full) {
		m.UID, m.RenderHash, m.Fingerprint, m.State, m.Adopted = uid, hash, hash, modulesv1.MemberDeleting, true
	}
	raw, err := json.Marshal([]any{full, health})
	if err != nil {
		return fmt.Errorf("measure the Inventory: %w", err)
	}
	if len(raw) > modulesv1.MaxMembersBytes {
		return fmt.Errorf("the %d objects of the release and of what is installed take %d bytes in data.members of the Inventory, which holds %d: %s, or shorten the names",
			len(members), len(raw), modulesv1.MaxMembersBytes, remedy)
	}
	return nil
}

// claimed are the members and the objects together. A member that is to change has no hash and is not known to be as
// its fingerprint says any more; one that stays as it is keeps both. One that the objects lack is going to go.
func claimed(members []modulesv1.Member, made *render) []modulesv1.Member {
	union := slices.Clone(members)
	for m := range every(union) {
		m.HealthyAt = "" // What only saves work must not keep a release from fitting in.
		if made.keys[keyOf(m)] {
			continue
		}
		if m.Claimed {
			m.UID = "" // What was never had is not counted among what goes.
		}
		m.Claimed, m.State = false, modulesv1.MemberDeleting
	}
	// What is new follows at the end: the members may have no room for it where they are.
	var fresh []modulesv1.Member
	known := index(union)
	for _, o := range made.objects {
		gvk := o.GroupVersionKind()
		m := known[o.key]
		if m == nil {
			fresh = append(fresh, modulesv1.Member{
				Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName(),
				State: modulesv1.MemberPending,
			})
			continue
		}
		if m.State == modulesv1.MemberDeleting {
			m.State = modulesv1.MemberPending
			if m.RenderHash != "" {
				// The attempt that was to drop it did not come so far: it is as it was applied, or drift, or a Job that has run.
				m.State = modulesv1.MemberApplied
			}
		}
		if o.once && wanted(m) {
			m.RenderHash = o.hash
		}
		if m.RenderHash != o.hash || m.State != modulesv1.MemberApplied {
			m.Version, m.RenderHash, m.Fingerprint, m.Ended = gvk.Version, "", "", false
		}
	}
	return append(union, fresh...)
}

// deletion is what a deletion has to know: what the target brings, and what was there before and may still be. None of
// it may be left out, for what is not on record is not protected.
func (r *round) deletion(target *Target, before bool) (*modulesv1.RecordedDeletion, error) {
	recorded := &modulesv1.RecordedDeletion{
		Mode: cmp.Or(target.Deletion, modulesv1.DeletionBlock), ManagedResources: slices.Clone(target.ManagedResources),
	}
	for _, kind := range r.managed() {
		if before && !slices.Contains(recorded.ManagedResources, kind) {
			recorded.ManagedResources = append(recorded.ManagedResources, kind)
		}
	}
	if count := len(recorded.ManagedResources); count > modulesv1.MaxManagedResources {
		return nil, failure.At(StageApply, failure.Stall(modulesv1.InventoryTooLargeReason, fmt.Errorf(
			"spec.managedResources of template %s and of the releases before it, of which objects may be left, are %d kinds together, and there may be %d: "+
				"shorten the list, or install a release with a shorter one and let it prune first",
			target.Release.Template, count, modulesv1.MaxManagedResources)))
	}
	return recorded, nil
}

// finish ends an attempt: its release is healthy, and leftovers are gone, or stay by the spec's wish, without a hash.
func (r *round) finish(ctx context.Context) (bool, error) {
	now := metav1.NewTime(r.engine.clock.Now())
	first := r.record.Data.Phase == modulesv1.PhaseInstalling
	deletion, err := r.deletion(r.aim.target, len(r.leftovers()) > 0)
	if err != nil {
		return false, err
	}
	err = r.store(ctx, func(record *modulesv1.Inventory) {
		data := &record.Data
		maps.DeleteFunc(record.Labels, func(label, _ string) bool { return strings.HasPrefix(label, ClaimPrefix) })
		r.shrink(data)
		r.markEnds(data)
		data.Current.HealthyAt = &now
		data.Attempt, data.Phase = nil, modulesv1.PhaseInstalled
		for m := range every(data.Members) {
			if !wanted(m) {
				m.State = modulesv1.MemberApplied
			}
		}
		data.Deletion = deletion
		remember(data, *data.Current, modulesv1.OutcomeSucceeded, r.engine.clock.Now(), "")
	})
	if err != nil {
		return false, err
	}
	known := index(r.record.Data.Members)
	maps.DeleteFunc(r.memory.checked, func(k key, _ checked) bool { return known[k] == nil })
	maps.DeleteFunc(r.memory.unmade, func(k key, _ bool) bool { return known[k] == nil })
	maps.DeleteFunc(r.memory.fights, func(k key, _ fight) bool { return known[k] == nil })
	reason, verb := modulesv1.UpgradeSucceededReason, "upgraded to"
	if first {
		reason, verb = modulesv1.InstallSucceededReason, "installed"
	}
	installed := r.record.Data.Current
	r.out.note(reason, "%s %s, %s", verb, strings.TrimSpace(cmp.Or(installed.Module, installed.Template)+" "+cmp.Or(installed.Version, installed.Revision)),
		objects(len(r.record.Data.Members)))
	r.watch(r.record.Data.Members) //nolint:contextcheck // Watches outlive the round that asks for them.
	return false, nil
}

// relabel records what else is known now of the same release: another channel leads to it, or another template, which may
// say something else about users' data or health. That concerns an installation that waits for something else as well.
func (r *round) relabel(ctx context.Context) (bool, error) {
	target := r.aim.target
	deletion, err := r.deletion(target, len(r.leftovers()) > 0)
	if err != nil {
		return false, err
	}
	known := &r.record.Data
	release := *known.Current
	if r.in.Target != nil {
		release = *target.Release.DeepCopy()
		release.AppliedAt, release.HealthyAt = known.Current.AppliedAt, known.Current.HealthyAt
	}
	same := equality.Semantic.DeepEqual
	if same(release, *known.Current) && same(deletion, known.Deletion) && same(target.Health, known.Health) &&
		(r.in.Choice == nil || same(r.in.Choice, known.Choice)) {
		return true, nil
	}
	return true, r.save(ctx, func(data *modulesv1.InventoryData) {
		data.Current, data.Deletion, data.Health = release.DeepCopy(), deletion, target.Health
	})
}

// remember puts an entry in front of the history, and drops what is too old.
func remember(data *modulesv1.InventoryData, release modulesv1.Release, outcome modulesv1.Outcome, now time.Time, message string) {
	entry := modulesv1.HistoryEntry{
		Version: release.Version, Template: release.Template, Digest: release.Digest,
		Outcome: outcome, At: metav1.NewTime(now), Message: message,
	}
	data.History = append([]modulesv1.HistoryEntry{entry}, data.History[:min(len(data.History), modulesv1.MaxHistory-1)]...)
}
