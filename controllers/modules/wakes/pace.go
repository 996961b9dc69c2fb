package wakes

import (
	"time"
)

const (
	// wakeDelay gathers what happens in a row: one apply moves several objects, and each of them tells.
	wakeDelay = 100 * time.Millisecond
	// wakeSettle is how long nothing has to be heard for a round to come before its distance is over: somebody has done
	// what they were about to, and what came of that is not left for long.
	wakeSettle = time.Second
	// maxWakeDistance is the longest least time between two rounds: what never rests is looked at so often.
	maxWakeDistance = 10 * time.Second
	// maxDriftDistance is the same where an object of the release itself was changed or has gone, which is healed within
	// two seconds, whatever else goes on. Who does that again and again is slowed down by the engine.
	maxDriftDistance = time.Second
)

// pace spreads the rounds that changes outside an installation bring about. The first comes at once; the time to the next
// doubles for as long as changes go on, and starts from nothing after a rest of twice that.
type pace struct {
	distance time.Duration
	// went is when the last round was let go; zero is never.
	went time.Time
	// first and last are the changes since then, and drift the first of what the release itself says; zero is none.
	first, last, drift time.Time
}

// hear notes a change, and says whether it is the first since the last round, or the first that is drift: the round is
// due from then on, or sooner than it was.
func (p *pace) hear(now time.Time, drift bool) (first bool) {
	p.last = now
	if p.first.IsZero() {
		if p.rested(now) {
			p.distance = 0
		}
		p.first, first = now, true
	}
	if drift && p.drift.IsZero() {
		p.drift, first = now, true
	}
	return first
}

// due is when the next round has to come, for what was heard so far.
func (p *pace) due() time.Time {
	due := earliest(p.went.Add(p.distance), p.last.Add(wakeSettle))
	if !p.drift.IsZero() {
		due = earliest(due, latest(p.went.Add(maxDriftDistance), p.drift.Add(wakeDelay)))
	}
	return latest(due, p.first.Add(wakeDelay))
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// goes notes that the round is let go.
func (p *pace) goes(now time.Time) {
	p.went, p.first, p.last, p.drift = now, time.Time{}, time.Time{}, time.Time{}
	p.distance = min(max(2*p.distance, wakeDelay), maxWakeDistance)
}

// rested says whether so little was heard that the pace says nothing any more.
func (p *pace) rested(now time.Time) bool {
	return p.first.IsZero() && !now.Before(p.went.Add(2*p.distance))
}
