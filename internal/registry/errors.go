package registry

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"sluice.dev/sluice/internal/transport"
)

var (
	// ErrURL says that a URL, host, repository name, tag or digest is not one that a registry could have.
	ErrURL = errors.New("not a usable reference")
	// ErrAuthentication says that the registry or its token server refused the credential, or asks for one.
	ErrAuthentication = errors.New("authentication failed")
	// ErrNotFound says that there is no such repository, manifest or blob, or that this credential is not shown it.
	ErrNotFound = errors.New("not found")
	// ErrRealm says that the registry asked for a token from where no credential is sent.
	ErrRealm = errors.New("token server is not trusted")
	// ErrDigest says that content has another digest or size than was asked for.
	ErrDigest = errors.New("content does not match its digest")
	// ErrTooLarge says that a limit is exceeded. The text names it.
	ErrTooLarge = errors.New("limit exceeded")
	// ErrManifest says that a manifest, an index or a descriptor is malformed, ambiguous or of an unknown type.
	ErrManifest = errors.New("manifest is not usable")
	// ErrProtocol says that an answer is not what the distribution protocol allows.
	ErrProtocol = errors.New("registry protocol error")
)

// StatusError is an answer that is an error, or one that was not asked for. It wraps ErrAuthentication for 401 and
// 403, ErrNotFound for 404 and 410.
type StatusError struct {
	// Status is the HTTP status.
	Status int
	// RetryAfter is how long the server asks to be left alone, at most an hour; zero when it does not say.
	RetryAfter time.Duration

	text string
	kind error
}

// Error says which status, what the registry says about it, and what to look at.
func (e *StatusError) Error() string { return e.text }

// Unwrap returns the sentinel of the status, if it has one.
func (e *StatusError) Unwrap() error { return e.kind }

// statusOf is the status that a server answered with, zero when it did not come to that.
func statusOf(err error) int {
	if answer, ok := errors.AsType[*StatusError](err); ok {
		return answer.Status
	}
	return 0
}

func protocolErrorf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrProtocol}, args...)...)
}

func manifestErrorf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrManifest}, args...)...)
}

func limitErrorf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrTooLarge}, args...)...)
}

// ownError marks an error as complete: the layers that it passes through add nothing that a reader needs.
type ownError struct{ error }

func (e ownError) Unwrap() error { return e.error }

// plain takes off what libraries wrapped round an error: methods, and URLs that repeat what the error says.
func plain(err error) error {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status
	}
	if own, ok := errors.AsType[ownError](err); ok {
		return own.error
	}
	for {
		wrapped, ok := errors.AsType[*url.Error](err)
		if !ok {
			return err
		}
		err = wrapped.Err
	}
}

// conclude makes an error fit to leave the package: it says what was tried, keeps no secret, and tells a deadline from
// the broken connection that it caused.
func (e *exchange) conclude(ctx context.Context, verb, what string, err error) error {
	if err == nil {
		return nil
	}
	if stopped := ctx.Err(); stopped != nil && !errors.Is(err, stopped) {
		err = fmt.Errorf("%w: %w", stopped, err)
	}
	err = fmt.Errorf("%s %s: %w", verb, transport.PrintableQuoted(e.repository.Host+"/"+e.repository.Name+what), err)
	return transport.SafeError(err, append(e.attempt.secrets, e.repository.Credential.Secrets()...)...)
}
