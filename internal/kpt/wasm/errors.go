package wasm

import (
	"errors"
	"fmt"

	"sluice.dev/sluice/internal/printable"
)

var (
	// ErrModule says that the bytes are no module that may run; only another module helps.
	ErrModule = errors.New("the module cannot be run")
	// ErrTimeout says that a module ran for longer than it may.
	ErrTimeout = errors.New("the module took too long")
	// ErrTooMuch says that a module wanted more memory, or wrote more, than it may.
	ErrTooMuch = errors.New("the module wanted too much")
)

// unfit is ErrModule with the reason, which may have words of the module's in it.
func unfit(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrModule, printable.Line(fmt.Sprintf(format, args...), maxWords))
}

// maxWords bounds what an error repeats of a module's words.
const maxWords = 512

// ExitError is a module that failed by its own judgement, or broke.
type ExitError struct {
	// Code is what it exited with, and Trap what broke it; that is empty for one that exited.
	Code uint32
	Trap string
	// Output is what it had written by then, and Words the end of what it wrote for people.
	Output []byte
	Words  string
}

// Error has the module's words.
func (e *ExitError) Error() string {
	text := fmt.Sprintf("it exited with %d", e.Code)
	if e.Trap != "" {
		text = "it broke: " + e.Trap
	}
	if e.Words != "" {
		text += ": " + e.Words
	}
	return printable.Line(text, 2*maxWords)
}

// Written is what the module had written.
func (e *ExitError) Written() []byte { return e.Output }
