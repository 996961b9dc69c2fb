package function

import (
	"errors"
	"fmt"
	"strings"

	"sluice.dev/sluice/internal/printable"
)

// ErrTooLarge says that a package is, or would become, larger than the limits allow.
var ErrTooLarge = errors.New("the rendered package is too large")

// ErrPanic says that a function broke, or what reads and writes packages. It is a mistake in there, not in the package.
var ErrPanic = errors.New("rendering broke")

// maxMessage bounds an error's text: names in it are the package's author's.
const maxMessage = 2048

// Error tells where rendering failed. What is not known is empty.
type Error struct {
	// Package is the folder of the package whose pipeline ran, "" for the root.
	Package string
	// Function is what the function is called, and Entry the name that its entry in the pipeline has.
	Function, Entry string
	// Resource is the object, and File where it stands.
	Resource, File string
	// Field is the path of the field in the object, or in the function's configuration.
	Field string
	// Err is what is wrong. It never holds values of Secrets.
	Err error
}

// Error names all that is known, from the outside inwards.
func (e *Error) Error() string {
	parts := []string{}
	if e.Package != "" {
		parts = append(parts, "package "+e.Package)
	}
	switch {
	case e.Function != "" && e.Entry != "":
		parts = append(parts, fmt.Sprintf("%s (%s)", e.Function, e.Entry))
	case e.Function != "":
		parts = append(parts, e.Function)
	}
	switch {
	case e.Resource != "" && e.File != "":
		parts = append(parts, fmt.Sprintf("%s in %s", e.Resource, e.File))
	case e.Resource != "" || e.File != "":
		parts = append(parts, e.Resource+e.File)
	}
	if e.Field != "" {
		parts = append(parts, e.Field)
	}
	return printable.Line(strings.Join(append(parts, e.Err.Error()), ": "), maxMessage)
}

// Unwrap makes errors.Is work.
func (e *Error) Unwrap() error { return e.Err }
