package packages

import (
	"fmt"
	"slices"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/event"
)

// tellWaves tells, in events and in the log, which waves have begun, failed or come to their end since the status before.
func (k *sets) tellWaves(about event.Subject, before, after *packagesv1.PackageVariantSet) (events []event.Event) {
	if after.Status.Rollout == nil {
		return nil
	}
	for _, w := range after.Status.Rollout.Waves {
		reason, message := news(waveBefore(before.Status.Rollout, after.Status.Rollout, w.Name), w)
		if reason == "" || before.Status.Rollout == nil && reason == packagesv1.WaveDoneReason {
			continue // The first revision reaches all at once.
		}
		made := event.Happened(about, reason, message, "")
		if w.State == packagesv1.WaveFails {
			made.Type = event.Warning
		}
		events = append(events, made)
		k.log.Info("wave of a rollout", "namespace", after.Namespace, "name", after.Name, "reason", reason, "message", message)
	}
	return events
}

// waveBefore is where the wave of the name was with the same revision; nothing where that is new.
func waveBefore(before, after *packagesv1.RolloutStatus, name string) (was packagesv1.WaveStatus) {
	if before == nil || before.Revision != after.Revision {
		return was
	}
	if at := slices.IndexFunc(before.Waves, func(w packagesv1.WaveStatus) bool { return w.Name == name }); at >= 0 {
		was = before.Waves[at]
	}
	return was
}

// news says what has happened to a wave. One that goes on where it was held is none.
func news(was, is packagesv1.WaveStatus) (reason, message string) {
	switch {
	case was.State == is.State:
	case is.State == packagesv1.WaveProgresses && was.Updated == 0 && was.State != packagesv1.WaveFails:
		return packagesv1.WaveBegunReason, fmt.Sprintf("Wave %s of %d targets has begun", is.Name, is.Targets)
	case is.State == packagesv1.WaveDone:
		return packagesv1.WaveDoneReason, fmt.Sprintf("Wave %s of %d targets is published", is.Name, is.Targets)
	case is.State == packagesv1.WaveFails:
		return packagesv1.WaveFailedReason, fmt.Sprintf("Wave %s has failed: %s", is.Name, is.Message)
	}
	return "", ""
}
