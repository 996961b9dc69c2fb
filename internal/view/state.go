// Package view turns objects into what people are told about them: in which state one is, since when and why.
// It knows neither clients nor terminals nor pages: the same objects always give the same facts.
package view

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// State is how an object is, in one word.
type State string

// The states, in the order in which they are looked for: the first that holds counts.
const (
	// Blocked is an object that is to be deleted, and cannot be before somebody does something.
	Blocked State = "Blocked"
	// Deleting is one that is on its way out.
	Deleting State = "Deleting"
	// Suspended is one of which its spec says that nothing is to be done for it.
	Suspended State = "Suspended"
	// Paused is an installation whose objects are left alone.
	Paused State = "Paused"
	// New is one that nobody has looked at yet.
	New State = "New"
	// Stalled is one that has to be edited before anything can go on.
	Stalled State = "Stalled"
	// Waiting is one that waits for another object.
	Waiting State = "Waiting"
	// Failed is one that is not ready.
	Failed State = "Failed"
	// Progressing is one that is being worked on.
	Progressing State = "Progressing"
	// Conflicted is an object that is ready, but whose open change has conflicts that an approver must accept.
	Conflicted State = "Conflicted"
	// Held is one that is ready, or half-way, and holds back a change.
	Held State = "Held"
	// Ready is one that is as its spec asks for.
	Ready State = "Ready"
)

// States are all of them, in their order.
func States() []State {
	return []State{Blocked, Deleting, Suspended, Paused, New, Stalled, Waiting, Failed, Progressing, Conflicted, Held, Ready}
}

// Fact is in which state an object is.
type Fact struct {
	State State
	// Since is when it came into the state; zero where nothing tells.
	Since time.Time
	// Reason is the word that the object's status has for it; it may be empty.
	Reason string
	// Message is what the status says of it, as it stands there: it may be long, and have any characters.
	Message string
}

// Of is the state of an object of any kind that has conditions as Kubernetes has them. Whatever else the object says, or
// does not say, it is in one of the states.
func Of(obj *unstructured.Unstructured) Fact {
	ready, _ := condition(obj, "Ready")
	stalled, _ := condition(obj, "Stalled")
	told := Fact{Since: ready.LastTransitionTime.Time, Reason: ready.Reason, Message: ready.Message}
	switch gone := obj.GetDeletionTimestamp(); {
	case gone != nil && isBlocked(obj, ready, stalled):
		told.State, told.Since = Blocked, gone.Time
	case gone != nil:
		told.State, told.Since = Deleting, gone.Time
	case IsSuspended(obj):
		told.suspended(obj)
	case text(obj, "spec", "management") == string(modulesv1.ManagementPaused):
		told.State, told.Since = Paused, time.Time{}
	default:
		return Work(obj)
	}
	return told
}

// Work is the state by what was reported alone: how the work on the object stands, whether or not it is to go on.
func Work(obj *unstructured.Unstructured) Fact {
	ready, found := condition(obj, "Ready")
	stalled, _ := condition(obj, "Stalled")
	told := Fact{Since: ready.LastTransitionTime.Time, Reason: ready.Reason, Message: ready.Message}
	switch {
	case !found && IsStatic(obj):
		told.State = Ready
	case !found:
		told.State, told.Since = New, obj.GetCreationTimestamp().Time
	case stalled.Status == metav1.ConditionTrue:
		told = Fact{State: Stalled, Since: stalled.LastTransitionTime.Time, Reason: stalled.Reason, Message: stalled.Message}
	case ready.Status != metav1.ConditionTrue && waits(ready.Reason):
		told.State = Waiting
	case ready.Status == metav1.ConditionUnknown && text(obj, "status", "pending", "reason") == modulesv1.ArtifactNotReadyReason:
		told.State, told.Reason, told.Message = Waiting, modulesv1.ArtifactNotReadyReason, text(obj, "status", "pending", "message")
	case ready.Status == metav1.ConditionUnknown && isHalted(obj):
		told = Fact{State: Held, Reason: modulesv1.AwaitingApprovalReason, Message: text(obj, "status", "pending", "message")}
	case ready.Status == metav1.ConditionFalse:
		told.State = Failed
	case ready.Status != metav1.ConditionTrue:
		told.State = Progressing
	default:
		told.ready(obj, ready)
	}
	return told
}

// ready tells apart those whose Ready is True.
func (f *Fact) ready(obj *unstructured.Unstructured, ready metav1.Condition) {
	f.State = Ready
	reconciling, _ := condition(obj, "Reconciling")
	switch reason, message := held(obj, ready); {
	case reconciling.Status == metav1.ConditionTrue:
		*f = Fact{State: Progressing, Since: reconciling.LastTransitionTime.Time, Reason: reconciling.Reason, Message: reconciling.Message}
	case !speaks(obj, ready):
		*f = Fact{State: Progressing, Message: "The last edit has not been looked at yet"}
	case isConflicted(obj, f):
	case reason != "":
		*f = Fact{State: Held, Reason: reason, Message: message}
	}
}

// isConflicted tells whether the open change of a package has conflicts, and sets the fact then.
func isConflicted(obj *unstructured.Unstructured, f *Fact) bool {
	found, _ := condition(obj, packagesv1.ConflictedCondition)
	if found.Status != metav1.ConditionTrue {
		return false
	}
	*f = Fact{State: Conflicted, Since: found.LastTransitionTime.Time, Reason: found.Reason, Message: found.Message}
	return true
}

// isHalted says that a release was begun, and goes on only when somebody approves its plan: it is the one that is held.
func isHalted(obj *unstructured.Unstructured) bool {
	for _, field := range []string{"namespace", "template", "version", "content"} {
		if text(obj, "status", "attempted", field) != text(obj, "status", "desired", field) {
			return false
		}
	}
	return text(obj, "status", "attempted", "template") != "" && text(obj, "status", "pending", "reason") == modulesv1.AwaitingApprovalReason
}

// held is why a change is held back of what is ready, by whichever field the kind tells it in; "" for no change.
func held(obj *unstructured.Unstructured, ready metav1.Condition) (reason, message string) {
	if reason = text(obj, "status", "pending", "reason"); reason != "" {
		return reason, text(obj, "status", "pending", "message")
	}
	if pending, _ := condition(obj, packagesv1.UpdatePendingCondition); pending.Status == metav1.ConditionTrue {
		return pending.Reason, pending.Message
	}
	if done, _ := condition(obj, packagesv1.RolledOutCondition); done.Status == metav1.ConditionFalse && done.Reason == packagesv1.PreviewNotApprovedReason {
		return done.Reason, done.Message
	}
	// The message of Ready says what the open change of a package waits for.
	return text(obj, "status", "change", "lifecycle"), ready.Message
}

// isBlocked says that what is to be deleted waits for somebody. What was stalled before it was to be is of another generation.
func isBlocked(obj *unstructured.Unstructured, ready, stalled metav1.Condition) bool {
	return slices.Contains([]string{modulesv1.DeletionBlockedReason, modulesv1.DependentsReason, modulesv1.DeletionUnknownReason}, ready.Reason) ||
		stalled.Status == metav1.ConditionTrue && stalled.ObservedGeneration >= obj.GetGeneration()
}

// waits says that a reason is one of those that end with another object.
func waits(reason string) bool {
	return slices.Contains([]string{
		modulesv1.DependencyNotReadyReason, modulesv1.ArtifactNotReadyReason, modulesv1.ArtifactUnavailableReason,
		sourcev1.NoArtifactReason, sourcev1.NoSourceArtifactReason, packagesv1.RepositoryNotReadyReason,
	}, reason)
}

// IsStatic says that an object needs nobody to work for it, and never has conditions: a registry of charts, and what
// others have made.
func IsStatic(obj *unstructured.Unstructured) bool {
	switch obj.GetKind() {
	case sourcev1.HelmRepositoryKind:
		return text(obj, "spec", "type") == sourcev1.HelmRepositoryTypeOCI
	case sourcev1.ExternalArtifactKind:
		return text(obj, "status", "artifact", "revision") != ""
	}
	return false
}

// IsObserved says that Ready speaks about the spec as it is now; one that names no generation
// is taken at its word.
func IsObserved(obj *unstructured.Unstructured) bool {
	ready, found := condition(obj, "Ready")
	return !found && IsStatic(obj) || found && speaks(obj, ready)
}

// IsTrue says that the condition is True of the spec as it is now.
func IsTrue(obj *unstructured.Unstructured, of string) bool {
	found, _ := condition(obj, of)
	return found.Status == metav1.ConditionTrue && speaks(obj, found)
}

// speaks says that a condition is about the spec as it is now. Its own word counts, whatever the status says beside it: that may have
// seen an edit of which the condition says nothing yet. One that does not say is as new as the status.
func speaks(obj *unstructured.Unstructured, c metav1.Condition) bool {
	generation, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
	return cmp.Or(c.ObservedGeneration, generation, obj.GetGeneration()) >= obj.GetGeneration()
}

// condition is the one of the type; the zero value where there is none that can be read.
func condition(obj *unstructured.Unstructured, of string) (found metav1.Condition, ok bool) {
	if read := meta.FindStatusCondition(Conditions(obj), of); read != nil {
		return *read, true
	}
	return found, false
}

// Conditions are those of an object that can be read.
func Conditions(obj *unstructured.Unstructured) []metav1.Condition {
	all, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "status", "conditions")
	list, _ := all.([]any)
	var found []metav1.Condition
	for _, one := range list {
		fields, _ := one.(map[string]any)
		if str(fields["type"]) == "" {
			continue
		}
		read := metav1.Condition{
			Type: str(fields["type"]), Status: metav1.ConditionStatus(str(fields["status"])), Reason: str(fields["reason"]), Message: str(fields["message"]),
		}
		read.ObservedGeneration, _ = fields["observedGeneration"].(int64)
		if at, err := time.Parse(time.RFC3339, str(fields["lastTransitionTime"])); err == nil {
			read.LastTransitionTime = metav1.NewTime(at)
		}
		found = append(found, read)
	}
	return found
}

// text is a field that is a string; "" for anything else.
func text(obj *unstructured.Unstructured, path ...string) string {
	found, _, _ := unstructured.NestedString(obj.Object, path...)
	return found
}

func str(value any) string {
	found, _ := value.(string)
	return found
}
