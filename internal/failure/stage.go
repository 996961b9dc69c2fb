package failure

import "errors"

// Stage names the part of the work that an error comes from, as status tables spell it.
type Stage string

// StageError is an error together with the stage it comes from.
type StageError struct {
	Stage Stage
	Err   error
}

// Error is the text of the wrapped error: the condition that reports it names the stage.
func (e *StageError) Error() string { return e.Err.Error() }

// Unwrap gives the wrapped error.
func (e *StageError) Unwrap() error { return e.Err }

// At marks an error with the stage it comes from; an error that has a stage keeps it. Nil stays nil.
func At(stage Stage, err error) error {
	if _, staged := errors.AsType[*StageError](err); err == nil || staged {
		return err
	}
	return &StageError{Stage: stage, Err: err}
}
