package engine

import (
	"fmt"
	"slices"
	"time"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
)

// Outcome is what a round found and did. It is filled in beside an error as well, as far as the round came.
type Outcome struct {
	// Inventory is the record after the round; nil when there is none, or none any more. It must not be changed.
	Inventory *modulesv1.Inventory
	// Settled says that no attempt is under way: the target, or what is held, is applied in full.
	Settled bool
	// Healthy says that all members of the release that was applied last are known to be healthy.
	Healthy bool
	// Waiting are members that are not healthy yet, or not gone yet.
	Waiting []Problem
	// Drifted are members that are not as they were applied, while nothing is done about it.
	Drifted []Problem
	// Unwatched are kinds, without a name, whose members cannot be watched: they are looked at less often.
	Unwatched []Problem
	// Contested are members that somebody else changes back again and again.
	Contested []Problem
	// Uncounted are resources whose objects are users' data, and may not be listed: a deletion would not know of them.
	Uncounted []string
	// Deletion is what a deletion found.
	Deletion modulesv1.DeletionStatus
	// Unused are variables of spec.config.substitute that no object of the release asked for.
	Unused []string
	// Notes are events to report.
	Notes []Note
	// Depends are the objects of spec.dependsOn, while an attempt waits for them or just began: a change asks for a round.
	Depends []cluster.Ref
	// Again is when another round is worth while even if nothing is heard; 0 leaves it to the caller's interval.
	Again time.Duration
	// Done says that a deletion is over: members and Inventory are gone, the finalizer may go.
	Done bool
}

// Problem is what keeps an object from where it should be.
type Problem struct {
	Ref cluster.Ref
	// Reason is a condition's; empty for a kind that cannot be watched.
	Reason  string
	Message string
}

// Note is something that happened.
type Note struct {
	// Reason is one of the reasons for events in package modulesv1.
	Reason  string
	Message string
	Warning bool
}

// again asks for another round in the given time, or sooner if somebody else asked for that.
func (o *Outcome) again(after time.Duration) {
	if o.Again == 0 || after < o.Again {
		o.Again = after
	}
}

func (o *Outcome) note(reason, format string, args ...any) {
	o.Notes = append(o.Notes, Note{Reason: reason, Message: bounded(fmt.Sprintf(format, args...))})
}

func (o *Outcome) warn(reason, format string, args ...any) {
	o.note(reason, format, args...)
	o.Notes[len(o.Notes)-1].Warning = true
}

func (o *Outcome) waitFor(ref cluster.Ref, message string) {
	o.Waiting = append(o.Waiting, Problem{Ref: ref, Reason: modulesv1.ProgressingReason, Message: message})
}

// maxNotes is how many notes of one reason a round gives.
const maxNotes = 5

// fewer keeps the first notes of each reason.
func fewer(notes []Note) []Note {
	seen := map[string]int{}
	return slices.DeleteFunc(notes, func(n Note) bool {
		seen[n.Reason]++
		return seen[n.Reason] > maxNotes
	})
}
