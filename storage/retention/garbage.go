// Package retention decides which artifacts of an object are superseded and which superseded ones may go.
// It is pure: it does not know where artifacts are stored or what time it is.
package retention

import (
	"time"

	"sluice.dev/sluice/storage"
)

const (
	// DefaultTTL is how long a superseded artifact stays fetchable.
	DefaultTTL = time.Minute
	// DefaultRecords is how many artifacts of an object stay stored.
	DefaultRecords = 2
)

// Policy says how long superseded artifacts stay. Consumers that read an old status need them for a while.
type Policy struct {
	// TTL is the time that a superseded artifact is kept, counted from when it was superseded.
	// Zero means DefaultTTL; a negative TTL keeps it for no time.
	TTL time.Duration
	// Records is the highest number of artifacts kept for an object, the current one included.
	// Zero means DefaultRecords; a negative number means that only TTL counts.
	Records int
}

// Garbage returns the superseded artifacts that the policy lets go, newest first: those superseded more than
// TTL ago, and those beyond Records, the longest superseded first. What the current artifact's path names is
// never garbage; of several entries for one path the newest decides. The record's order decides which is older, so equal
// times do no harm, and a clock that runs backwards lets nothing go that it would otherwise have kept.
//
// Named is the path that status names. While that is a superseded one, garbage is all that was published after it and is
// current no more, of which nobody was told; the others are judged once the current one is named.
func Garbage(record storage.Record, named string, policy Policy, now time.Time) []storage.Superseded {
	if last := lastNamed(record, named); last >= 0 {
		return record.Superseded[:last]
	}
	policy = policy.withDefaults()
	seen := map[string]bool{record.Current.Path: true}
	kept := 1
	var garbage []storage.Superseded
	for _, old := range record.Superseded {
		if seen[old.Path] {
			continue
		}
		seen[old.Path] = true
		expired := now.Sub(old.SupersededAt) > policy.TTL
		surplus := policy.Records > 0 && kept >= policy.Records
		if expired || surplus {
			garbage = append(garbage, old)
			continue
		}
		kept++
	}
	return garbage
}

func (p Policy) withDefaults() Policy {
	if p.TTL == 0 {
		p.TTL = DefaultTTL
	}
	if p.Records == 0 {
		p.Records = DefaultRecords
	}
	return p
}
