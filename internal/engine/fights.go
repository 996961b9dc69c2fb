package engine

import (
	"cmp"
	"maps"
	"time"
)

const (
	// fightPeace is how long a healing has to last after its pause for the next one to be another story.
	fightPeace = time.Minute
	// fightFrom is how many healings that did not last are a fight; each further one doubles the pause up to lastPause.
	fightFrom  = 4
	firstPause = 30 * time.Second
	lastPause  = 10 * time.Minute
)

// fights notice members that somebody else changes back soon after each healing, so that two programs do not write for
// ever as fast as they can. Changes with some time of peace between them are no fight, however many they are.
type fights map[key]fight

// fight is what is known of one member. One that is deleted again and again is fought over as well.
type fight struct {
	count  int
	healed time.Time
	// undone says that it was seen to be changed back in the pause.
	undone bool
	// by are the managers that had changed it. Whoever deleted it has left no name.
	by string
}

// heal counts a healing, and says how long to wait before the next one: 0 while it is no fight.
func (f fights) heal(k key, by string, now time.Time) time.Duration {
	maps.DeleteFunc(f, func(_ key, known fight) bool {
		return !known.undone && now.Sub(known.healed) > known.pause()+fightPeace
	})
	known := fight{count: f[k].count + 1, healed: now, by: cmp.Or(by, f[k].by)}
	f[k] = known
	return known.pause()
}

// wait is how long the next healing still has to wait: 0 when there is no fight, or the pause is over. Undone says that
// the member is changed back by now: however late it is healed, the fight has gone on.
func (f fights) wait(k key, now time.Time, undone bool) time.Duration {
	known, ok := f[k]
	if !ok {
		return 0
	}
	left := max(0, known.pause()-max(0, now.Sub(known.healed)))
	if left > 0 && undone {
		known.undone = true
		f[k] = known
	}
	return left
}

// pause is how long to wait after the healing that made the count.
func (f fight) pause() time.Duration {
	wait := time.Duration(0)
	for count := fightFrom; count <= f.count && wait < lastPause; count++ {
		wait = max(2*wait, firstPause)
	}
	return min(wait, lastPause)
}
