package fanout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

// decision is a Plan in the making, wave after wave.
type decision struct {
	*Rollout
	Moment
	Plan

	crews []crew
	// held says why the waves that follow may not go on, and heldFor with which reason; empty while they may.
	held, heldFor string
}

// wave decides for one.
func (d *decision) wave(i int, c *crew) {
	w := &d.waves[i]
	s := packagesv1.WaveStatus{
		Name: w.Name, Targets: int32(len(c.all)), Updated: int32(c.updated), Published: int32(c.published), //nolint:gosec // There are few.
	}
	mayBegin := d.held == ""
	since, wasDone := d.Moment.Done[w.Name]
	// Those that are new wait only for a wave that others are behind in, or that has none but them while others are behind elsewhere.
	waits := len(c.behind) > 0 || c.fresh == len(c.all) && d.oldestOfAll() > 0
	isDone := len(c.behind) == 0 && (wasDone || len(c.flying) == 0) && (!waits || mayBegin && !w.Pause)
	switch {
	case len(c.all) == 0:
		s.State, s.Message = packagesv1.WaveEmpty, "No target is of this wave"
	case len(c.failing) > 0 && d.stops:
		s.State, s.Reason, s.Message = packagesv1.WaveFails, packagesv1.WaveReasonFailure, d.failure(c)
		d.IsStopped = true
	case isDone:
		s.State = packagesv1.WaveDone
		d.finish(i, c, since, wasDone)
	case !mayBegin && waits:
		s.State, s.Reason, s.Message = packagesv1.WaveWaits, d.heldFor, d.held
	case w.Pause && waits:
		s.State, s.Reason, s.Message = packagesv1.WaveWaits, packagesv1.WaveReasonPaused, "The wave is paused"
	default:
		d.move(w, c)
		s.State, s.Reason, s.Message = packagesv1.WaveProgresses, packagesv1.WaveReasonPublication, d.unpublished(c)
	}
	// Those that join begin as what is published in their wave; in one that waits, as what it was before.
	joinsNewest := s.State == packagesv1.WaveDone || s.State != packagesv1.WaveFails && len(c.behind) == 0 && mayBegin && !w.Pause
	d.join(c, joinsNewest)
	d.Waves = append(d.Waves, s)
	if s.State == packagesv1.WaveDone || s.State == packagesv1.WaveEmpty {
		return
	}
	d.Waits = cmp.Or(d.Waits, fmt.Sprintf("Wave %s: %s", w.Name, s.Message))
	if mayBegin {
		d.hold(packagesv1.WaveReasonPrevious, fmt.Sprintf("Wave %s is not done", w.Name))
	}
}

// hold keeps the waves that follow as they are.
func (d *decision) hold(reason, why string) { d.heldFor, d.held = reason, why }

// finish notes since when a wave is done, and holds the next one until it was for long enough, and its gates hold.
func (d *decision) finish(i int, c *crew, since time.Time, wasDone bool) {
	w := &d.waves[i]
	if c.proven == 0 {
		return
	}
	if !wasDone {
		since = d.Now
	}
	d.Plan.Done[w.Name] = since
	isLast := !slices.ContainsFunc(d.crews[i+1:], func(later crew) bool { return len(later.behind) > 0 })
	if d.held != "" || isLast {
		return
	}
	if left := w.GetSoak() - d.Now.Sub(since); left > 0 {
		d.Again = left
		d.hold(packagesv1.WaveReasonSoaking, fmt.Sprintf("Wave %s has to be done for %s", w.Name, w.GetSoak()))
	} else if closed := d.Gate(i); closed != "" {
		d.hold(packagesv1.WaveReasonGate, closed)
	}
}

// move has as many variants take the newest revision as may. Those that have an open change go first: they get no other beside it.
func (d *decision) move(w *wave, c *crew) {
	slices.SortStableFunc(c.behind, func(a, b int) int { return rank(d.Members[a].IsOpen) - rank(d.Members[b].IsOpen) })
	room := max(w.InFlight(c.proven)-len(c.flying), 0)
	for _, i := range c.behind[:min(room, len(c.behind))] {
		d.Newest[i] = true
	}
}

func rank(isOpen bool) int {
	if isOpen {
		return 0
	}
	return 1
}

// join decides for those that no wave holds: they are at the newest revision already, or new.
func (d *decision) join(c *crew, newest bool) {
	for _, i := range c.all {
		m := &d.Members[i]
		if m.IsCurrent || m.IsFree {
			d.Newest[i] = true
		}
		if !m.IsNew {
			continue
		}
		d.At[i] = cmp.Or(d.oldest(c.behind), d.oldestOfAll())
		d.Newest[i] = newest || d.At[i] == 0
	}
}

func (d *decision) oldest(members []int) (at int64) {
	for _, i := range members {
		if number := d.Members[i].At; number > 0 && (at == 0 || number < at) {
			at = number
		}
	}
	return at
}

func (d *decision) oldestOfAll() (at int64) {
	for i := range d.crews {
		if number := d.oldest(d.crews[i].behind); number > 0 && (at == 0 || number < at) {
			at = number
		}
	}
	return at
}

// failure names a variant that fails.
func (d *decision) failure(c *crew) string {
	first := &d.Members[c.failing[0]]
	return fmt.Sprintf("%d of %d variants fail, such as %s: %s", len(c.failing), c.proven, first.Name, first.Failure)
}

// unpublished says for how many variants the wave waits.
func (d *decision) unpublished(c *crew) string {
	waiting := len(c.behind) + len(c.flying)
	first := slices.Concat(c.flying, c.behind)[0]
	return fmt.Sprintf("%d of %d variants are not published with the revision, such as %s", waiting, c.proven, d.Members[first].Name)
}
