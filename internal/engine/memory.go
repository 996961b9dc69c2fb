package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/fnv"
	"sync"
	"time"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/health"
)

// memory is what is remembered of an installation between rounds. All of it can be lost: it only saves work.
type memory struct {
	mu  sync.Mutex
	uid string
	// salt is that of the record, until there is one.
	salt string
	// progress are members that the attempt on record has applied, and that are not in the record yet.
	progress map[key]progress
	// unmade are members that this process was the first to claim, while no request was sent, or each was forbidden.
	unmade map[key]bool
	// rights are those to count users' data, as far as they were asked for.
	rights rights
	// none are the kinds of users' data of which there are no objects, in a count that goes on.
	none map[countedKind]bool
	// checked is what is known of members' health.
	checked map[key]checked
	// judgesBy is the fingerprint of the expressions by which they were judged.
	judgesBy string
	// fights are the members that somebody else changes back.
	fights fights
	// unhealthySince is when members that had been healthy were first seen not to be.
	unhealthySince time.Time
	// verifyAt is when all members are applied once again.
	verifyAt time.Time
	// verifying are the members that a full verification has still to apply.
	verifying map[key]bool
	// blindAt is when members that cannot be watched are applied once again; zero while all can be.
	blindAt time.Time
}

// progress is what is to be written down of a member that was applied.
type progress struct {
	// hash is the object's, if it was applied.
	hash    string
	applied cluster.Applied
	// foreign says that the object is somebody else's, and stays that.
	foreign bool
	// claim says that nothing was applied, because another installation has the object.
	claim *claim
}

// checked is what was found of a member's health, and at which resourceVersions: the watch's and the answer's.
type checked struct {
	seen, got string
	at        time.Time
	status    health.Status
	message   string
	// recalled says that the record told it.
	recalled bool
}

func (e *Engine) memory(in Installation) *memory {
	fresh := &memory{
		uid: in.UID, verifyAt: nextVerification(in.UID, e.clock.Now()),
		progress: map[key]progress{}, unmade: map[key]bool{}, fights: fights{},
		none: map[countedKind]bool{},
	}
	known, loaded := e.memories.LoadOrStore(in.Key(), fresh)
	mem, _ := known.(*memory)
	if !loaded || mem.uid == in.UID {
		return mem
	}
	// Another installation of the same name: nothing that is remembered is about it.
	e.memories.Store(in.Key(), fresh)
	return fresh
}

// nextVerification spreads the installations over the interval, by their UIDs: the same after each restart.
func nextVerification(uid string, now time.Time) time.Time {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(uid))
	offset := time.Duration(sum.Sum64() % uint64(verifyEvery))
	return now.Add(-offset).Truncate(verifyEvery).Add(verifyEvery + offset)
}

// claims remembers which members are new: before they are written down, nobody can have made them.
func (mem *memory) claims(before, union []modulesv1.Member) {
	known := index(before)
	for m := range every(union) {
		if k := keyOf(m); known[k] == nil {
			mem.unmade[k] = true
		}
	}
}

// isUnmade says that a member was never made, for certain.
func (mem *memory) isUnmade(m *modulesv1.Member) bool { return m.UID == "" && mem.unmade[keyOf(m)] }

// judgeBy forgets what was found by other expressions, and takes up what the record says by these.
func (mem *memory) judgeBy(expressions string, data *modulesv1.InventoryData) {
	sum := sha256.Sum256([]byte(expressions))
	fingerprint := hex.EncodeToString(sum[:8])
	if mem.judgesBy == fingerprint {
		return
	}
	mem.judgesBy, mem.checked = fingerprint, map[key]checked{}
	if data.JudgedBy != fingerprint {
		return
	}
	for m := range every(data.Members) {
		if m.HealthyAt != "" {
			mem.checked[keyOf(m)] = checked{got: m.HealthyAt, status: health.Current, recalled: true}
		}
	}
}

// noteHealth adds to what is written anyway which versions of members were found healthy, if there is room for it.
func (mem *memory) noteHealth(data *modulesv1.InventoryData) {
	if mem.judgesBy == "" {
		return
	}
	data.JudgedBy = mem.judgesBy
	for m := range every(data.Members) {
		m.HealthyAt = ""
		if last := mem.checked[keyOf(m)]; wanted(m) && last.status == health.Current {
			m.HealthyAt = last.got
		}
	}
	if fits(data.Members, data.Health) == nil {
		return
	}
	for i := range data.Members {
		data.Members[i].HealthyAt = ""
	}
}
