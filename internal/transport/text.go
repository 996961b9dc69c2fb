package transport

import (
	"errors"
	"strings"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/printable"
)

const (
	// maxPrintable is how many bytes of an upstream's words an error repeats.
	maxPrintable = 240
	// maxErrorText bounds a whole error.
	maxErrorText = 1024
)

// Printable makes words of an upstream fit for errors, logs and conditions: what does not print is escaped as Go
// does it, and what is too long is cut.
func Printable(text string) string { return printable.Line(text, maxPrintable) }

// PrintableQuoted is Printable between quotes, for a value inside a sentence.
func PrintableQuoted(text string) string {
	return `"` + strings.ReplaceAll(Printable(text), `"`, `\"`) + `"`
}

// SafeError returns an error fit for any reader: URLs without userinfo and query, the secrets replaced, control
// characters escaped, of bounded length. errors.Is and errors.As still see what err is; nothing unwraps to the
// text as it was.
func SafeError(err error, secrets ...credential.Secret) error {
	if err == nil {
		return nil
	}
	return &safeError{text: printable.Line(credential.Redact(err.Error(), secrets...), maxErrorText), err: err}
}

type safeError struct {
	text string
	err  error
}

func (e *safeError) Error() string { return e.text }

func (e *safeError) Is(target error) bool { return errors.Is(e.err, target) }

func (e *safeError) As(target any) bool { return errors.As(e.err, target) }
