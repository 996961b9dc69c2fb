// Package revision parses and prints what names a state upstream: revisions such as main@sha1:…, and semantic
// versions with the ranges that select them. It does not know where revisions come from or what they lead to.
package revision

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxLength is the length in bytes beyond which nothing is parsed as a revision.
const MaxLength = 4096

// ErrInvalid says that a text is no revision. The error that wraps it says why.
var ErrInvalid = errors.New("invalid revision")

// Revision is a state upstream: the reference it was found by, where there is one, and the hash that pins it.
type Revision struct {
	// Ref is a branch, a tag, or a full reference; empty when the hash alone was asked for.
	Ref string
	// Algorithm is the algorithm of the hash: sha1, sha256, sha384 or sha512.
	Algorithm string
	// Hash is the hash in lower-case hexadecimal.
	Hash string
}

// Parse reads a revision in the form <ref>@<algorithm>:<hash>, or <algorithm>:<hash> without a reference.
// A reference may hold '@' itself: the last one counts. Errors are ErrInvalid.
func Parse(s string) (Revision, error) {
	if len(s) > MaxLength {
		return Revision{}, fmt.Errorf("%w: %d bytes are more than %d", ErrInvalid, len(s), MaxLength)
	}
	ref, pin := "", s
	if at := strings.LastIndexByte(s, '@'); at >= 0 {
		ref, pin = s[:at], s[at+1:]
		if err := checkRef(ref); err != nil {
			return Revision{}, fmt.Errorf("%w %q: %w", ErrInvalid, s, err)
		}
	}
	algorithm, hash, found := strings.Cut(pin, ":")
	if !found {
		return Revision{}, fmt.Errorf("%w %q: it does not end in <algorithm>:<hash>", ErrInvalid, s)
	}
	if err := checkHash(algorithm, hash); err != nil {
		return Revision{}, fmt.Errorf("%w %q: %w", ErrInvalid, s, err)
	}
	return Revision{Ref: ref, Algorithm: algorithm, Hash: hash}, nil
}

// String is the revision as Parse reads it; empty for the zero value.
func (r Revision) String() string {
	switch {
	case r == Revision{}:
		return ""
	case r.Ref == "":
		return r.Pin()
	default:
		return r.Ref + "@" + r.Pin()
	}
}

// Pin is the revision without its reference: <algorithm>:<hash>.
func (r Revision) Pin() string { return r.Algorithm + ":" + r.Hash }

func checkRef(ref string) error {
	if ref == "" {
		return errors.New("nothing stands before '@'")
	}
	spaceOrControl := func(r rune) bool { return r == ' ' || unicode.IsControl(r) }
	if !utf8.ValidString(ref) || strings.ContainsFunc(ref, spaceOrControl) {
		return errors.New("the reference holds a space, a control character, or bytes that are no text")
	}
	return nil
}

func checkHash(algorithm, hash string) error {
	digits, known := hexDigits(algorithm)
	if !known {
		return fmt.Errorf("algorithm %q is none of sha1, sha256, sha384 and sha512", algorithm)
	}
	if len(hash) != digits {
		return fmt.Errorf("a %s hash has %d digits, not %d", algorithm, digits, len(hash))
	}
	notHex := func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }
	if strings.ContainsFunc(hash, notHex) {
		return errors.New("the hash is not lower-case hexadecimal")
	}
	return nil
}

// hexDigits is how long a hash is in hexadecimal.
func hexDigits(algorithm string) (digits int, known bool) {
	switch algorithm {
	case "sha1":
		return 40, true
	case "sha256":
		return 64, true
	case "sha384":
		return 96, true
	case "sha512":
		return 128, true
	default:
		return 0, false
	}
}
