package event

import (
	"fmt"
	"maps"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// Artifact is what receivers of events are told about an artifact, beside the message.
type Artifact struct {
	Revision, Digest string
	// OriginRevision is the revision that the artifact says it was made from; empty when it says nothing. More than 256
	// bytes are no revision, and are not passed on.
	OriginRevision string
}

// maxOrigin is the longest origin revision that is passed on, in bytes.
const maxOrigin = 256

// Stored tells that an artifact with other bytes is stored and published, or that an object which had failed works again, with the
// same artifact as before the failure.
func Stored(s Subject, reason string, artifact Artifact, message string) Event {
	return s.event(Normal, reason, message, artifact.metadata())
}

// Recovered tells that an object which had failed works again, with the same artifact as before the failure.
func Recovered(s Subject, artifact Artifact, message string) Event {
	return Stored(s, sourcev1.SucceededReason, artifact, message)
}

// Failed tells that a reconcile failed. An empty reason becomes Failed; an empty revision is left out.
func Failed(s Subject, reason string, err error, revision string) Event {
	if reason == "" {
		reason = sourcev1.FailedReason
	}
	return s.event(Warning, reason, err.Error(), Artifact{Revision: revision}.metadata())
}

// Waiting tells that another object has to move first. It is no warning: nothing is broken yet.
func Waiting(s Subject, reason string, err error, revision string) Event {
	e := Failed(s, reason, err, revision)
	e.Type = Normal
	return e
}

// Happened tells that something was done. An empty revision is left out.
func Happened(s Subject, reason, message, revision string) Event {
	return s.event(Normal, reason, message, Artifact{Revision: revision}.metadata())
}

// Warned tells that something needs somebody's attention, though nothing failed. An empty revision is left out.
func Warned(s Subject, reason, message, revision string) Event {
	return s.event(Warning, reason, message, Artifact{Revision: revision}.metadata())
}

// ArtifactVerificationFailed tells that a stored artifact no longer has the bytes its digest promises.
func ArtifactVerificationFailed(s Subject, artifact Artifact, err error) Event {
	return s.event(Warning, sourcev1.ArtifactVerificationFailedReason, err.Error(), artifact.metadata())
}

// GarbageCollected tells Kubernetes how many superseded artifacts were deleted.
func GarbageCollected(s Subject, count int) Event {
	return Traced(s, sourcev1.GarbageCollectionSucceededReason, fmt.Sprintf("garbage collected %d artifacts", count))
}

// Traced tells Kubernetes alone about a step.
func Traced(s Subject, reason, message string) Event {
	e := s.event(Normal, reason, message, nil)
	e.Trace = true
	return e
}

func (a Artifact) metadata() map[string]string {
	if len(a.OriginRevision) > maxOrigin {
		a.OriginRevision = ""
	}
	return map[string]string{
		eventv1.MetaRevisionKey: a.Revision, eventv1.MetaDigestKey: a.Digest, eventv1.MetaOriginRevisionKey: a.OriginRevision,
	}
}

// event joins the subject's metadata with the event's own, whose keys carry the API group of the subject:
// receivers look for source.toolkit.fluxcd.io/revision on the events of a source.
func (s Subject) event(t Type, reason, message string, own map[string]string) Event {
	metadata := maps.Clone(s.metadata)
	if metadata == nil {
		metadata = make(map[string]string, len(own))
	}
	group := s.reference.GroupVersionKind().Group
	for key, value := range own {
		if value != "" {
			metadata[group+"/"+key] = value
		}
	}
	return Event{Object: s.reference, Type: t, Reason: reason, Message: message, Metadata: metadata}
}
