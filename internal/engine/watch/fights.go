package watch

import (
	"sync"
	"time"
)

// Fights notices members that somebody else changes back soon after each healing, so that two programs do not write for
// ever as fast as they can. Changes with some time of peace between them are no fight, however many they are. Its
// methods may be called concurrently.
type Fights struct {
	options FightOptions

	mu     sync.Mutex
	owners map[string]map[Ref]fight
}

// FightOptions configure Fights.
type FightOptions struct {
	// Peace is how long a healing has to last, from the end of the pause after it, for the next one to be another story;
	// 0 means 1 minute.
	Peace time.Duration
	// Threshold is how many healings, none of which lasted, are a fight; 0 means 4.
	Threshold int
	// Wait is the pause at the threshold; it doubles with each healing more. 0 means 30 s.
	Wait time.Duration
	// MaxWait bounds the pause; 0 means 10 minutes.
	MaxWait time.Duration
}

// fight is what is known of one object.
type fight struct {
	count  int
	healed time.Time
	// undone says that it was seen to be changed back in the pause.
	undone bool
}

// NewFights makes a detector that has seen nothing yet.
func NewFights(options FightOptions) *Fights {
	if options.Peace <= 0 {
		options.Peace = time.Minute
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
		if !known.undone && now.Sub(known.healed) > f.pause(known)+f.options.Peace {
			delete(objects, other)
		}
	}
	known := fight{count: objects[ref].count + 1, healed: now}
	objects[ref] = known
	wait = f.pause(known)
	return wait > 0, wait
}

// Wait is how long the object's next healing still has to wait: 0 when there is no fight, or the pause is over. Undone
// says that it is changed back by now: however late it is healed, the fight has gone on.
func (f *Fights) Wait(owner string, ref Ref, now time.Time, undone bool) time.Duration {
	ref.UID = ""
	f.mu.Lock()
	defer f.mu.Unlock()
	known, ok := f.owners[owner][ref]
	if !ok {
		return 0
	}
	wait := max(0, f.pause(known)-max(0, now.Sub(known.healed)))
	if wait > 0 && undone {
		known.undone = true
		f.owners[owner][ref] = known
	}
	return wait
}

// Forget drops what is known about the owner's objects: the owner is gone, or applies something new.
func (f *Fights) Forget(owner string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.owners, owner)
}

// pause is how long to wait after the healing that made the count.
func (f *Fights) pause(known fight) time.Duration {
	wait := time.Duration(0)
	for count := f.options.Threshold; count <= known.count && wait < f.options.MaxWait; count++ {
		wait = max(2*wait, f.options.Wait)
	}
	return min(wait, f.options.MaxWait)
}
