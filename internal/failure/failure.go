// Package failure says what is to be done about an error: try again, wait for something else, or stop until
// the object is edited. It does not know who reads it.
package failure

import (
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// Disposition is what a reconciler does about an error.
type Disposition int

const (
	// Retries tries again with growing delays, and not before the error's own delay if it has one. It is what any plain
	// error gets.
	Retries Disposition = iota
	// Waits tries again after a fixed time: another object has to move first.
	Waits
	// Stalls stops until the object is edited: nothing else can help.
	Stalls
)

// Error is an error with a disposition and a reason in CamelCase, as conditions and events carry it.
type Error struct {
	Disposition Disposition
	Reason      string
	// After is the delay of Waits, where zero means the controller's default, and the shortest delay of Retries.
	After time.Duration
	Err   error
}

// Error is the text of the wrapped error: disposition and reason are shown elsewhere.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// Retry gives a plain, retried error a reason.
func Retry(reason string, err error) error {
	return &Error{Disposition: Retries, Reason: reason, Err: err}
}

// RetryAfter is Retry for an error that brings the time before which nothing else is to be expected.
func RetryAfter(reason string, after time.Duration, err error) error {
	return &Error{Disposition: Retries, Reason: reason, After: after, Err: err}
}

// Wait waits for another object for the given time; zero means the controller's default.
func Wait(reason string, after time.Duration, err error) error {
	return &Error{Disposition: Waits, Reason: reason, After: after, Err: err}
}

// Stall marks an error that only an edit of the object can heal.
func Stall(reason string, err error) error {
	return &Error{Disposition: Stalls, Reason: reason, Err: err}
}

// Of returns the outermost failure in err's chain, or a retried one without a reason. Nil stays nil.
func Of(err error) *Error {
	if err == nil {
		return nil
	}
	if found, ok := errors.AsType[*Error](err); ok {
		return found
	}
	return &Error{Disposition: Retries, Err: err}
}

// OfDisk is an error about a file without the file's name. Those of temporary files say nothing to users, and are others each
// time, which would be news each time.
func OfDisk(err error) error {
	if about, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s a temporary file: %w", about.Op, about.Err)
	}
	return err
}
