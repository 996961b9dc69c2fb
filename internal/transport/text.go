package transport

import (
	"errors"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"sluice.dev/sluice/internal/credential"
)

const (
	// maxPrintable is how many bytes of an upstream's words an error repeats.
	maxPrintable = 240
	// maxErrorText bounds a whole error.
	maxErrorText = 1024
)

// Printable makes words of an upstream fit for errors, logs and conditions: what does not print is escaped as Go
// does it, and what is too long is cut.
func Printable(text string) string { return printable(text, maxPrintable) }

func printable(text string, limit int) string {
	var out strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		escaped := text[:size]
		if r == utf8.RuneError && size == 1 || r != ' ' && !unicode.IsPrint(r) {
			quoted := strconv.Quote(escaped)
			escaped = quoted[1 : len(quoted)-1]
		}
		if out.Len()+len(escaped) > limit {
			out.WriteString("…")
			break
		}
		out.WriteString(escaped)
		text = text[size:]
	}
	return out.String()
}

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
	return &safeError{text: printable(credential.Redact(err.Error(), secrets...), maxErrorText), err: err}
}

type safeError struct {
	text string
	err  error
}

func (e *safeError) Error() string { return e.text }

func (e *safeError) Is(target error) bool { return errors.Is(e.err, target) }

func (e *safeError) As(target any) bool { return errors.As(e.err, target) }
