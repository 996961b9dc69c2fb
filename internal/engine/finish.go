package engine

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

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
		for i := range data.Members {
			if m := &data.Members[i]; !wanted(m) {
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
	r.out.note(reason, "%s %s, %s", verb, title(*r.record.Data.Current), objects(len(r.record.Data.Members)))
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

// title names a release to people.
func title(release modulesv1.Release) string {
	return strings.TrimSpace(cmp.Or(release.Module, release.Template) + " " + cmp.Or(release.Version, release.Revision))
}
