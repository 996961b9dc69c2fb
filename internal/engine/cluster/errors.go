package cluster

import (
	"errors"
	"fmt"
	"time"

	"sluice.dev/sluice/internal/printable"
)

// What an answer of the API server means; ask with errors.Is. The error around it is an *AnswerError, that around
// ErrConflict a *ConflictError.
var (
	// ErrNotFound says that there is no such object.
	ErrNotFound = errors.New("not found")
	// ErrExists says that an object of that name is there already.
	ErrExists = errors.New("exists already")
	// ErrNoKind says that the API server does not know the kind, or not yet. It passes once the CRD is established.
	ErrNoKind = errors.New("no such kind")
	// ErrForbidden says that the identity lacks a right. It passes once that is granted.
	ErrForbidden = errors.New("forbidden")
	// ErrDenied says that a quota, an admission policy or a webhook refuses the object. It may pass once that changes.
	ErrDenied = errors.New("denied by admission")
	// ErrInvalid says that the object itself is wrong. Only another object helps.
	ErrInvalid = errors.New("invalid")
	// ErrScope says that the object names a namespace where its kind has none, or none where its kind has them: there can
	// be no such object. It is ErrInvalid as well.
	ErrScope = fmt.Errorf("%w: wrong scope", ErrInvalid)
	// ErrImmutable says that nothing is wrong but a change of fields that cannot change, so that the object would have to
	// be made anew.
	ErrImmutable = errors.New("immutable")
	// ErrNamespaceMissing says that the object's namespace is not there.
	ErrNamespaceMissing = errors.New("namespace is missing")
	// ErrNamespaceTerminating says that the object's namespace is on its way out.
	ErrNamespaceTerminating = errors.New("namespace is being deleted")
	// ErrWebhook says that an admission or conversion webhook does not answer. It passes once that is up.
	ErrWebhook = errors.New("webhook does not answer")
	// ErrUnavailable says that the API server, or the one behind an aggregated API, is overloaded, failing or out of
	// reach, or that the caller's time is up. It passes.
	ErrUnavailable = errors.New("unavailable")
	// ErrConflict says that other managers hold the fields.
	ErrConflict = errors.New("held by another manager")
	// ErrChanged says that the object is not the one, or not in the version, that the request was for.
	ErrChanged = errors.New("changed meanwhile")
)

// AnswerError is a request that did not succeed. Its text says what was asked, of what, and what helps; it is printable
// and bounded.
type AnswerError struct {
	// Reason is one of this package's errors.
	Reason error
	Verb   string
	Ref    Ref
	Detail string
	// After is the delay that the API server asked for; 0 when it asked for none.
	After time.Duration

	cause error
}

// Error says what was asked, of what, and what became of it.
func (e *AnswerError) Error() string { return fmt.Sprintf("%s %s: %s", e.Verb, e.Ref, e.Detail) }

// Unwrap gives the reason and, where no answer came, what kept it: context.Canceled, say.
func (e *AnswerError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.cause}
}

// Field is a field, as .spec.replicas, and the manager that holds it.
type Field struct{ Path, Manager string }

// ConflictError says that other managers hold fields that were to be applied.
type ConflictError struct {
	Ref    Ref
	Fields []Field
	// Owner is the manager that holds the label PartOf, which is that of another installation; "" when nobody contests it.
	Owner string
}

// Error names the other owner, or the first fields and who holds them.
func (e *ConflictError) Error() string {
	if e.Owner != "" {
		return fmt.Sprintf("apply %s: it belongs to another owner: %q holds the label %s", e.Ref, e.Owner, PartOf)
	}
	return fmt.Sprintf("apply %s: other managers hold %s", e.Ref,
		firstOf(e.Fields, func(field Field) string { return fmt.Sprintf("%s (%q)", field.Path, field.Manager) }))
}

// Unwrap gives ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }

// maxShown is how many of many things an error lists.
const maxShown = 4

// firstOf are the first of them, in words.
func firstOf[T any](all []T, words func(T) string) string {
	texts := make([]string, 0, len(all))
	for _, one := range all {
		texts = append(texts, words(one))
	}
	return printable.List(texts, maxShown)
}
