// Package status is the only writer of conditions: facts or an error go in, conditions come out, and Ready is
// computed from the rest by the rules of kstatus.
// It does not know what a kind does, nor how its status reaches the API server.
package status

import (
	"cmp"
	"errors"
	"slices"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/failure"
)

// Retrying is the message of the Reconciling condition while an error is being retried.
const Retrying = "reconciliation in progress"

// Failure says which condition reports an error, and with which reason when the error brings none.
type Failure struct {
	Condition string
	Reason    string
}

// Table is what differs between kinds: which condition speaks for which stage, and how Ready is summed up.
type Table struct {
	// Stages maps the stage an error comes from to the condition that reports it: a negative one, or Verified.
	Stages map[failure.Stage]Failure
	// Stored is the positive condition that is True while the kind's product is in place. A kind without one has neither
	// Outdated nor a Summary: its last report alone makes Ready.
	Stored string
	// Outdated is the negative condition that is True from the sight of a new revision until it is stored; its reason is
	// OutdatedReason, NewRevision when empty.
	Outdated, OutdatedReason string
	// Summary lists the conditions that make up Ready, the most telling first.
	Summary []string
	// Verified is the bipolar condition that says whether the product is proven. It is there only where a proof was asked
	// for, or was left by another controller; while it is False, so is Ready.
	Verified string
	// Facts lists the conditions that the kind states of itself with every report, whatever it ended with. They have no
	// influence on Ready: what has, is an error.
	Facts []string
	// SuspendedReason is that of Ready while the object is; empty, Ready goes on saying what it said, as Flux has it.
	SuspendedReason string
}

// Fact is a condition that a kind states of itself.
type Fact struct {
	Type, Reason, Message string
	Status                metav1.ConditionStatus
	// Observed is the generation that it was found out for; zero is the present one.
	Observed int64
}

// True is the fact that the condition holds.
func True(condition, reason, message string) Fact {
	return Fact{Type: condition, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

// False is the fact that it does not.
func False(condition, reason, message string) Fact {
	return Fact{Type: condition, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// Unknown is the fact that nobody knows.
func Unknown(condition, reason, message string) Fact {
	return Fact{Type: condition, Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}

// State sets the conditions that the kind states, and takes away those of Facts that it no longer does.
func (t Table) State(obj conditions.Setter, facts []Fact) {
	for _, condition := range t.Facts {
		if !slices.ContainsFunc(facts, func(f Fact) bool { return f.Type == condition }) {
			conditions.Delete(obj, condition)
		}
	}
	for _, f := range facts {
		conditions.Set(obj, &metav1.Condition{
			Type: f.Type, Status: f.Status, Reason: f.Reason, Message: f.Message, ObservedGeneration: cmp.Or(f.Observed, obj.GetGeneration()),
		})
	}
}

// Stated are the facts as they were stated before, for a run that found nothing out.
func (t Table) Stated(obj conditions.Getter) []Fact { return Kept(obj, t.Facts...) }

// Kept are the conditions of the types as they are, each of the generation that it was found out for.
func Kept(obj conditions.Getter, types ...string) []Fact {
	var facts []Fact
	for _, condition := range types {
		if c := conditions.Get(obj, condition); c != nil {
			facts = append(facts, Fact{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, Observed: c.ObservedGeneration})
		}
	}
	return facts
}

// Progress is a change that is about to be worked on.
type Progress struct {
	// Message says what is being done, for Reconciling and Ready.
	Message string
	// NewRevision says what was seen upstream; empty when the revision stays.
	NewRevision string
	// Lost says that the product is gone and has to be made again.
	Lost bool
	// First says that there never was a product.
	First bool
}

// negative lists the conditions of the table that are bad news when True.
func (t Table) negative() []string {
	types := []string{t.Outdated, meta.StalledCondition, meta.ReconcilingCondition}
	for _, f := range t.Stages {
		if f.Condition != t.Verified && !slices.Contains(types, f.Condition) {
			types = append(types, f.Condition)
		}
	}
	return types
}

// Progressing sets the conditions of work in hand: Reconciling is True and Ready is Unknown.
func (t Table) Progressing(obj conditions.Setter, p Progress) {
	conditions.Delete(obj, meta.StalledCondition)
	conditions.MarkReconciling(obj, meta.ProgressingReason, "%s", p.Message)
	conditions.MarkUnknown(obj, meta.ReadyCondition, meta.ProgressingReason, "%s", p.Message)
	if p.NewRevision != "" && !p.First {
		conditions.MarkTrue(obj, t.Outdated, t.outdatedReason(), "%s", p.NewRevision)
	}
	if p.Lost || p.First {
		conditions.Delete(obj, t.Stored)
	}
}

func (t Table) outdatedReason() string { return cmp.Or(t.OutdatedReason, "NewRevision") }

// Succeeded sets the conditions of an object whose product is in place. An empty reason is Succeeded. Proof says what was
// verified; empty when no proof was asked for.
func (t Table) Succeeded(obj conditions.Setter, reason, message, proof string) {
	reason = cmp.Or(reason, meta.SucceededReason)
	for _, unwanted := range t.negative() {
		conditions.Delete(obj, unwanted)
	}
	if proof == "" {
		conditions.Delete(obj, t.Verified)
	} else {
		conditions.MarkTrue(obj, t.Verified, meta.SucceededReason, "%s", proof)
	}
	if t.Stored == "" {
		conditions.MarkTrue(obj, meta.ReadyCondition, reason, "%s", message)
		return
	}
	conditions.MarkTrue(obj, t.Stored, reason, "%s", message)
	t.summarise(obj)
}

// Standing is what there is when a run has failed.
type Standing struct {
	// Stored says that a product is in place. It stays so.
	Stored bool
	// NewRevision says what was seen upstream and is not stored; empty when there is nothing new, or nobody knows.
	NewRevision string
}

// Failed sets the conditions for an error. Only the stage that failed now is reported.
func (t Table) Failed(obj conditions.Setter, err error, standing Standing) {
	condition, reason := t.Explain(err)
	t.forget(obj, condition)
	if standing.Stored && standing.NewRevision != "" {
		conditions.MarkTrue(obj, t.Outdated, t.outdatedReason(), "%s", standing.NewRevision)
	} else {
		conditions.Delete(obj, t.Outdated)
	}
	if !standing.Stored {
		conditions.Delete(obj, t.Stored)
	}
	if failure.Of(err).Disposition == failure.Stalls {
		conditions.MarkStalled(obj, reason, "%s", err)
	} else {
		conditions.Delete(obj, meta.StalledCondition)
		conditions.MarkReconciling(obj, meta.ProgressingWithRetryReason, Retrying)
	}
	switch condition {
	case "":
		conditions.MarkFalse(obj, meta.ReadyCondition, reason, "%s", err)
	case t.Verified:
		conditions.MarkFalse(obj, condition, reason, "%s", err)
		t.summarise(obj)
	default:
		conditions.MarkTrue(obj, condition, reason, "%s", err)
		t.summarise(obj)
	}
}

// forget takes back what earlier failures have left. The condition that reports the present one keeps the time since
// when it does, and a proof that was found stays one.
func (t Table) forget(obj conditions.Setter, present string) {
	for _, f := range t.Stages {
		if f.Condition == present || f.Condition == t.Verified && conditions.IsTrue(obj, t.Verified) {
			continue
		}
		conditions.Delete(obj, f.Condition)
	}
}

// Explain returns the condition and the reason that report an error. The condition is empty for an error of
// no known stage; Ready alone reports that.
func (t Table) Explain(err error) (condition, reason string) {
	reason = failure.Of(err).Reason
	if staged, ok := errors.AsType[*failure.StageError](err); ok {
		f := t.Stages[staged.Stage]
		condition, reason = f.Condition, cmp.Or(reason, f.Reason)
	}
	return condition, cmp.Or(reason, meta.FailedReason)
}

// HasFailed tells whether the conditions report a failure.
func (t Table) HasFailed(obj conditions.Getter) bool {
	for _, f := range t.Stages {
		if f.Condition != t.Verified && conditions.IsTrue(obj, f.Condition) {
			return true
		}
	}
	return conditions.IsStalled(obj) || conditions.IsFalse(obj, meta.ReadyCondition)
}

// SaysTheSame tells whether Ready says of the object what it said before.
func SaysTheSame(before, after conditions.Getter) bool {
	was, is := conditions.Get(before, meta.ReadyCondition), conditions.Get(after, meta.ReadyCondition)
	return was != nil && is != nil && was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message
}

// Suspended takes back what would claim that work goes on or is stuck. What is stored speaks for itself again.
func (t Table) Suspended(obj conditions.Setter) {
	conditions.Delete(obj, meta.StalledCondition)
	conditions.Delete(obj, meta.ReconcilingCondition)
	if t.SuspendedReason != "" {
		t.saySuspended(obj)
		return
	}
	if !conditions.IsUnknown(obj, meta.ReadyCondition) {
		return
	}
	conditions.Delete(obj, t.Outdated)
	conditions.Delete(obj, meta.ReadyCondition)
	if conditions.IsTrue(obj, t.Stored) {
		t.summarise(obj)
	}
}

// saySuspended says so in Ready, before what it said last. What was unknown then stays so.
func (t Table) saySuspended(obj conditions.Setter) {
	ready := metav1.Condition{Type: meta.ReadyCondition, Status: metav1.ConditionUnknown, Message: "Suspended"}
	switch last := conditions.Get(obj, meta.ReadyCondition); {
	case last == nil || last.Status == metav1.ConditionUnknown:
	case last.Reason == t.SuspendedReason:
		ready = *last
	default:
		ready.Status, ready.Message = last.Status, "Suspended; before that: "+last.Message
	}
	ready.Reason, ready.ObservedGeneration = t.SuspendedReason, obj.GetGeneration()
	conditions.Set(obj, &ready)
}

func (t Table) summarise(obj conditions.Setter) {
	conditions.SetSummary(obj, meta.ReadyCondition,
		conditions.WithConditions(t.Summary...),
		conditions.WithNegativePolarityConditions(t.negative()...),
	)
	if refuted := conditions.Get(obj, t.Verified); refuted != nil && refuted.Status == metav1.ConditionFalse {
		conditions.MarkFalse(obj, meta.ReadyCondition, refuted.Reason, "%s", refuted.Message)
	}
}
