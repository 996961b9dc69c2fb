package modules

import "time"

const (
	// wakeDelay gathers what happens in a row: one apply moves several objects, and each of them tells.
	wakeDelay = 100 * time.Millisecond
	// wakeSettle is how long nothing has to be heard for a round to come before its distance is over: somebody has done
	// what they were about to, and what came of that is not left for long.
	wakeSettle = time.Second
	// maxWakeDistance is the longest least time between two rounds: what never rests is looked at so often.
	maxWakeDistance = 10 * time.Second
)

// pace spreads the rounds that changes outside an installation bring about. The first comes at once; the time to the next
// doubles for as long as changes go on, and starts from nothing after a rest of twice that.
type pace struct {
	distance time.Duration
	// went is when the last round was let go; zero is never.
	went time.Time
	// first and last are the changes since then; zero is none.
	first, last time.Time
}

// hear notes a change, and says whether it is the first since the last round: the round is due from then on.
func (p *pace) hear(now time.Time) (first bool) {
	p.last = now
	if !p.first.IsZero() {
		return false
	}
	if p.rested(now) {
		p.distance = 0
	}
	p.first = now
	return true
}

// due is when the next round has to come, for what was heard so far.
func (p *pace) due() time.Time {
	due := p.went.Add(p.distance)
	if settled := p.last.Add(wakeSettle); settled.Before(due) {
		due = settled
	}
	if soonest := p.first.Add(wakeDelay); due.Before(soonest) {
		due = soonest
	}
	return due
}

// goes notes that the round is let go.
func (p *pace) goes(now time.Time) {
	p.went, p.first, p.last = now, time.Time{}, time.Time{}
	p.distance = min(max(2*p.distance, wakeDelay), maxWakeDistance)
}

// rested says whether so little was heard that the pace says nothing any more.
func (p *pace) rested(now time.Time) bool {
	return p.first.IsZero() && !now.Before(p.went.Add(2*p.distance))
}
