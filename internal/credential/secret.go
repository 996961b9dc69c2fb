// Package credential holds what proves an identity to an upstream: passwords, tokens, keys, certificates.
// It does not know where credentials come from, nor what they are used for.
package credential

import (
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

// redacted stands for a secret wherever one would be printed.
const redacted = "[redacted]"

// Secret is a value that never prints itself: not with any verb of fmt, not as JSON or text, not in a log.
// The zero value is the empty secret, which prints as nothing, so that a missing value can be told from a set one.
//
// The value stands behind a pointer, because fmt looks through every method once a verb does not fit the type
// around the secret, and then prints fields: of a pointer inside a struct it prints the address.
type Secret struct{ value *string }

// NewSecret wraps a secret value.
func NewSecret[T ~string | ~[]byte](value T) Secret {
	if len(value) == 0 {
		return Secret{}
	}
	text := string(value)
	return Secret{value: &text}
}

// Reveal returns the value itself, for the one place that sends or parses it.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsZero tells whether there is no value.
func (s Secret) IsZero() bool { return s.value == nil }

// Equal tells whether both hold the same value; == does not.
func (s Secret) Equal(other Secret) bool {
	return subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(other.Reveal())) == 1
}

// String is a placeholder.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return redacted
}

// GoString is the placeholder as well: %#v shows no more than %v.
func (s Secret) GoString() string { return s.String() }

// Format writes the placeholder for every verb and flag.
func (s Secret) Format(state fmt.State, _ rune) {
	_, _ = io.WriteString(state, s.String()) // A formatter has nobody to report a write error to.
}

// MarshalText gives the placeholder.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON gives the placeholder as a JSON string.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// LogValue gives the placeholder to structured logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
