package watch

import (
	"math"
	"sync"
	"time"
)

// Fights notices members that somebody else changes back after each healing, so that two programs do not write for ever
// as fast as they can. Each healing counts one, and counts less as it becomes older. Its methods may be called
// concurrently.
type Fights struct {
	options FightOptions

	mu     sync.Mutex
	owners map[string]map[Ref]fight
}

// FightOptions configure Fights.
type FightOptions struct {
	// HalfLife is the time after which a healing counts half; 0 means 30 minutes.
	HalfLife time.Duration
	// Threshold is the count at which it is a fight; 0 means 4.
	Threshold float64
	// Wait is the pause at the threshold; it doubles with each healing more. 0 means 30 s.
	Wait time.Duration
	// MaxWait bounds the pause; 0 means 10 minutes.
	MaxWait time.Duration
}

// fight is what is known of one object.
type fight struct {
	count  float64
	healed time.Time
}

// forgotten is the count below which an object is not remembered.
const forgotten = 0.1

// NewFights makes a detector that has seen nothing yet.
func NewFights(options FightOptions) *Fights {
	if options.HalfLife <= 0 {
		options.HalfLife = 30 * time.Minute
	}
	if options.Threshold <= 0 {
		options.Threshold = 4
	}
	if options.Wait <= 0 {
		options.Wait = 30 * time.Second
	}
	if options.MaxWait <= 0 {
		options.MaxWait = 10 * time.Minute
	}
	return &Fights{options: options, owners: map[string]map[Ref]fight{}}
}

// Healed counts a healing of the object, and says whether it is a fight and how long to wait before the next healing.
// The UID in the reference does not matter: an object that is deleted again and again is fought over as well.
func (f *Fights) Healed(owner string, ref Ref, now time.Time) (fighting bool, wait time.Duration) {
	ref.UID = ""
	f.mu.Lock()
	defer f.mu.Unlock()
	objects := f.owners[owner]
	if objects == nil {
		objects = map[Ref]fight{}
		f.owners[owner] = objects
	}
	for other, known := range objects {
		if f.count(known, now) < forgotten {
			delete(objects, other)
		}
	}
	known := fight{count: f.count(objects[ref], now) + 1, healed: now}
	objects[ref] = known
	wait = f.pause(known)
	return wait > 0, wait
}

// Wait is how long the object's next healing still has to wait: 0 when there is no fight, or the pause is over.
func (f *Fights) Wait(owner string, ref Ref, now time.Time) time.Duration {
	ref.UID = ""
	f.mu.Lock()
	defer f.mu.Unlock()
	known, ok := f.owners[owner][ref]
	if !ok {
		return 0
	}
	return max(0, f.pause(known)-max(0, now.Sub(known.healed)))
}

// Forget drops what is known about the owner's objects: the owner is gone, or applies something new.
func (f *Fights) Forget(owner string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.owners, owner)
}

// count is what the healings so far count now.
func (f *Fights) count(known fight, now time.Time) float64 {
	age := max(0, now.Sub(known.healed))
	return known.count * math.Exp2(-age.Seconds()/f.options.HalfLife.Seconds())
}

// pause is how long to wait after the healing that made the count.
func (f *Fights) pause(known fight) time.Duration {
	// Healings that follow each other at once decay a little between them; they count as whole ones.
	over := math.Floor(known.count - f.options.Threshold + 0.1)
	if over < 0 {
		return 0
	}
	wait := f.options.Wait.Seconds() * math.Exp2(over)
	if wait >= f.options.MaxWait.Seconds() {
		return f.options.MaxWait
	}
	return time.Duration(wait * float64(time.Second))
}
