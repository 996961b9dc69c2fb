package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
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
	var members []modulesv1.Member
	if r.record != nil {
		members = slices.Clone(r.record.Data.Members)
		if err := r.recognise(ctx, members, made); err != nil {
			return false, err
		}
	}
	union := claimed(members, made)
	if err := fits(union, r.aim.target.Health); err != nil {
		return r.putOff(failure.At(StageApply, failure.Stall(modulesv1.InventoryTooLargeReason, err)))
	}
	deletion, err := r.deletion(r.aim.target, r.record != nil)
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
	r.memory.resume("")
	if r.record == nil {
		if err := r.create(ctx, attempt, union, deletion); err != nil {
			return true, err
		}
		r.memory.claims(nil, union)
		r.reviewRights(ctx)
		return true, nil
	}
	err = r.save(ctx, func(data *modulesv1.InventoryData) {
		r.overtake(data)
		data.Attempt, data.Members = attempt, union
		data.Phase = modulesv1.PhaseUpgrading
		if data.Current == nil {
			data.Phase = modulesv1.PhaseInstalling
		}
		data.Deletion, data.Health = deletion, r.aim.target.Health
	})
	if err == nil {
		r.memory.claims(members, union)
		r.reviewRights(ctx)
	}
	return true, err
}

// putOff begins nothing in this round, and says why at its end: what is installed is looked after first.
func (r *round) putOff(err error) (bool, error) {
	if r.record == nil {
		return false, err
	}
	r.held, r.stopped = err, true
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
	raw, err := json.Marshal(health)
	if err != nil {
		return fmt.Errorf("measure the Inventory: %w", err)
	}
	size := len(raw)
	for i := range members {
		m := members[i]
		m.UID, m.RenderHash, m.Fingerprint, m.State = fullUID, fullHash, fullHash, modulesv1.MemberDeleting
		m.Adopted = true
		raw, err := json.Marshal(m)
		if err != nil {
			return fmt.Errorf("measure the Inventory: %w", err)
		}
		size += len(raw) + len(",")
	}
	if size > modulesv1.MaxMembersBytes {
		return fmt.Errorf("the %d objects of the release and of what is installed take %d bytes in data.members of the Inventory, which holds %d: %s, or shorten the names",
			len(members), size, modulesv1.MaxMembersBytes, remedy)
	}
	return nil
}

// What a UID, and a hash, take in the record.
const (
	fullUID  = "00000000-0000-0000-0000-000000000000"
	fullHash = "AAAAAAAAAAAAAAAAAAAAAA"
)

// create makes the Inventory of a first installation.
func (r *round) create(
	ctx context.Context, attempt *modulesv1.Attempt, members []modulesv1.Member, deletion *modulesv1.RecordedDeletion,
) error {
	record := &modulesv1.Inventory{
		TypeMeta:   metav1.TypeMeta{APIVersion: modulesv1.GroupVersion.String(), Kind: modulesv1.InventoryKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: r.in.Namespace, Name: r.in.Name},
		Data: modulesv1.InventoryData{
			InstallationUID: r.in.UID, Salt: r.renders.salt, Phase: modulesv1.PhaseInstalling, Choice: r.in.Choice.DeepCopy(),
			Attempt: attempt, Members: members, Deletion: deletion, Health: r.aim.target.Health,
		},
	}
	if err := r.engine.parts.Records.Create(ctx, record); err != nil {
		return failure.At(StageRecord, fmt.Errorf("write the inventory: %w", err))
	}
	r.record = record
	return nil
}

// claimed are the members and the objects together. A member that is to change has no hash and is not known to be as
// its fingerprint says any more; one that stays as it is keeps both. One that the objects lack is going to go.
func claimed(members []modulesv1.Member, made *render) []modulesv1.Member {
	union := slices.Clone(members)
	for i := range union {
		if m := &union[i]; !made.keys[keyOf(m)] {
			if m.Claimed {
				// What was never had is not counted among what goes.
				m.UID = ""
			}
			m.Claimed, m.State = false, modulesv1.MemberDeleting
		}
		// What only saves work must not keep a release from fitting in.
		union[i].HealthyAt = ""
	}
	known := index(union)
	for _, o := range made.objects {
		gvk := o.GroupVersionKind()
		m := known[o.key]
		if m == nil {
			union = append(union, modulesv1.Member{
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
	return union
}

// overtake ends an attempt that did not come to its end.
func (r *round) overtake(data *modulesv1.InventoryData) {
	if data.Attempt == nil {
		return
	}
	remember(data, data.Attempt.Release, modulesv1.OutcomeFailed, r.engine.clock.Now(), "overtaken by another choice")
}

// deletion is what a deletion has to know while the target is being applied: what it brings, and what was there before
// and may still be. None of it may be left out, for what is not on record is not protected.
func (r *round) deletion(target *Target, before bool) (*modulesv1.RecordedDeletion, error) {
	recorded := &modulesv1.RecordedDeletion{Mode: target.Deletion, ManagedResources: slices.Clone(target.ManagedResources)}
	if recorded.Mode == "" {
		recorded.Mode = modulesv1.DeletionBlock
	}
	if before && r.record.Data.Deletion != nil {
		for _, kind := range r.record.Data.Deletion.ManagedResources {
			if !slices.Contains(recorded.ManagedResources, kind) {
				recorded.ManagedResources = append(recorded.ManagedResources, kind)
			}
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
