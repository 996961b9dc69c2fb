package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// finish ends an attempt: its release is healthy, and what is no longer needed is gone, or stays by the spec's wish. A
// leftover that stays is an ordinary member without a hash, for as long as the spec has it so.
func (r *round) finish(ctx context.Context) (bool, error) {
	now := metav1.NewTime(r.engine.clock.Now())
	first := r.record.Data.Phase == modulesv1.PhaseInstalling
	deletion, err := r.deletion(r.aim.target, r.leavesSome())
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
		for i := range data.Members {
			if m := &data.Members[i]; leftover(m) {
				m.State = modulesv1.MemberApplied
			}
		}
		data.Deletion = deletion
		remember(data, *data.Current, modulesv1.OutcomeSucceeded, r.engine.clock.Now(), "")
	})
	if err != nil {
		return false, err
	}
	r.memory.gates = nil
	known := index(r.record.Data.Members)
	maps.DeleteFunc(r.memory.checked, func(k key, _ checked) bool { return known[k] == nil })
	maps.DeleteFunc(r.memory.unmade, func(k key, _ bool) bool { return known[k] == nil })
	maps.DeleteFunc(r.memory.rivals, func(k key, _ string) bool { return known[k] == nil })
	reason, verb := modulesv1.UpgradeSucceededReason, "upgraded to"
	if first {
		reason, verb = modulesv1.InstallSucceededReason, "installed"
	}
	r.note(reason, "%s %s, %s", verb, title(*r.record.Data.Current), objects(len(r.record.Data.Members)))
	r.watch() //nolint:contextcheck // Watches outlive the round that asks for them.
	return false, nil
}

// relabel records that the same release is known by other names now: another channel leads to it, or another template.
func (r *round) relabel(ctx context.Context) (bool, error) {
	target := r.aim.target
	deletion, err := r.deletion(target, r.leavesSome())
	if err != nil {
		return false, err
	}
	return true, r.save(ctx, func(data *modulesv1.InventoryData) {
		release := *target.Release.DeepCopy()
		release.AppliedAt, release.HealthyAt = data.Current.AppliedAt, data.Current.HealthyAt
		data.Current = &release
		data.Deletion, data.Health = deletion, target.Health
	})
}

// mislabelled says that the record tells less, or something else, than what is known of the release now.
func (r *round) mislabelled() bool {
	if r.in.Choice != nil && (r.record.Data.Choice == nil || *r.record.Data.Choice != *r.in.Choice) {
		return true
	}
	if r.in.Target == nil {
		// Its template may say something else about users' data or health, whatever the installation waits for.
		return r.describesOtherwise()
	}
	a, b := *r.record.Data.Current.DeepCopy(), *r.aim.target.Release.DeepCopy()
	b.AppliedAt, b.HealthyAt = a.AppliedAt, a.HealthyAt
	return !equalJSON(a, b) || r.describesOtherwise()
}

// describesOtherwise says that the record tells something else about deletion or health than the release does now.
func (r *round) describesOtherwise() bool {
	now, err := r.deletion(r.aim.target, r.leavesSome())
	return err != nil || !equalJSON(r.record.Data.Deletion, now) || !slices.Equal(r.record.Data.Health, r.aim.target.Health)
}

// leavesSome says that something of releases before is left.
func (r *round) leavesSome() bool { return len(r.leftovers()) > 0 }

// remember puts an entry in front of the history, and drops what is too old.
func remember(
	data *modulesv1.InventoryData, release modulesv1.Release, outcome modulesv1.Outcome, now time.Time, message string,
) {
	entry := modulesv1.HistoryEntry{
		Version: release.Version, Template: release.Template, Digest: release.Digest,
		Outcome: outcome, At: metav1.NewTime(now), Message: message,
	}
	data.History = append([]modulesv1.HistoryEntry{entry}, data.History...)
	if len(data.History) > modulesv1.MaxHistory {
		data.History = data.History[:modulesv1.MaxHistory]
	}
}

// title names a release to people.
func title(release modulesv1.Release) string {
	return strings.TrimSpace(cmp.Or(release.Module, release.Template) + " " + cmp.Or(release.Version, release.Revision))
}

// equalJSON compares what the API server would store.
func equalJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
