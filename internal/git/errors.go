package git

import (
	"context"
	"errors"
	"fmt"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
)

var (
	// ErrURL says that the URL is not one this package fetches from.
	ErrURL = errors.New("url is not usable")
	// ErrCredential says that a credential cannot be used as it is. The text names the field.
	ErrCredential = errors.New("credential is not usable")
	// ErrAuthentication says that the server refused the credential, or that it asks for one.
	ErrAuthentication = errors.New("authentication failed")
	// ErrHostKey says that the SSH server's host key is unknown, revoked or another than expected.
	ErrHostKey = errors.New("host key is not trusted")
	// ErrNotFound says that the server knows no such repository, or shows none to this credential.
	ErrNotFound = errors.New("repository not found")
	// ErrRefNotFound says that the wanted commit is not in the repository, or not reachable any more.
	ErrRefNotFound = errors.New("commit not found")
	// ErrEmptyRepository says that the repository has no refs at all.
	ErrEmptyRepository = errors.New("repository is empty")
	// ErrLimit says that the repository exceeds one of the limits in Options. The text names it.
	ErrLimit = errors.New("limit exceeded")
	// ErrProtocol says that the server's answer is not Git's protocol, or that the pack it sent is damaged.
	ErrProtocol = errors.New("git protocol error")
	// ErrUnsafeTree says that the commit's tree holds what must not be unpacked anywhere. The text names the path.
	ErrUnsafeTree = errors.New("unsafe tree")
	// ErrIdentity says that an author or a committer cannot be written into a commit. The text says what is wrong.
	ErrIdentity = errors.New("identity is not usable")
	// ErrRefMoved says that a ref is not where a push expected it: somebody else was first.
	ErrRefMoved = errors.New("ref has moved")
	// ErrRejected says that the server does not move a ref: a hook or a rule of its own forbids it. The text has its words.
	ErrRejected = errors.New("server rejects the push")
	// ErrNotMoved says that a ref was left alone because another one of an atomic push could not be moved.
	ErrNotMoved = errors.New("another ref of the push was not moved")
	// ErrNotAtomic says that the server cannot move several refs at once.
	ErrNotAtomic = errors.New("server does not offer atomic pushes")
)

// unexpectedError marks an answer that remembered capabilities may be the cause of. It adds nothing to the text.
type unexpectedError struct{ error }

func (e unexpectedError) Unwrap() error { return e.error }

func unexpected(err error) error { return unexpectedError{err} }

func isUnexpected(err error) bool {
	var marked unexpectedError
	return errors.As(err, &marked)
}

func protocolErrorf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrProtocol}, args...)...)
}

func limitErrorf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrLimit}, args...)...)
}

// conclude makes an error fit to leave the package: it says what was tried, keeps no secret, and tells a deadline
// from the broken connection that it caused.
func conclude(ctx context.Context, verb string, remote Remote, err error) error {
	if err == nil {
		return nil
	}
	if stopped := ctx.Err(); stopped != nil && !errors.Is(err, stopped) {
		err = fmt.Errorf("%w: %w", stopped, err)
	}
	err = fmt.Errorf("%s %q: %w", verb, credential.CleanURL(remote.URL), err)
	return transport.SafeError(err, remote.secrets()...)
}
