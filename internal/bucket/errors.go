package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
)

// scrubbed keeps the secrets of a bucket's credential out of its errors.
type scrubbed struct {
	Bucket

	secrets []credential.Secret
}

// List implements Bucket.
func (s scrubbed) List(ctx context.Context, listing Listing) (Page, error) {
	page, err := s.Bucket.List(ctx, listing)
	return page, scrub(ctx, err, s.secrets)
}

// Get implements Bucket.
func (s scrubbed) Get(ctx context.Context, object Object) (io.ReadCloser, error) {
	body, err := s.Bucket.Get(ctx, object)
	if err != nil {
		return nil, scrub(ctx, err, s.secrets)
	}
	return scrubbedBody{body, ctx, s.secrets}, nil
}

// scrubbedBody does the same for what goes wrong later.
type scrubbedBody struct {
	io.ReadCloser

	ctx     context.Context //nolint:containedctx // It says why reading has ended.
	secrets []credential.Secret
}

// Read scrubs errors other than the end.
func (b scrubbedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = scrub(b.ctx, err, b.secrets)
	}
	return n, err
}

// scrub makes an error fit for any reader. Words of the libraries around the cause repeat method and URL, and say of an
// ended context what the caller knows better.
func scrub(ctx context.Context, err error, secrets []credential.Secret) error {
	if err == nil {
		return nil
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if ended := context.Cause(ctx); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	return transport.SafeError(err, secrets...)
}

// refusal makes an answer that says no an error. Object says that it was about one object.
func refusal(status int, code, message string, after time.Duration, object bool) error {
	e := &StatusError{Status: status, Code: code, RetryAfter: after}
	e.text = fmt.Sprintf("the storage answers %d %s", status, http.StatusText(status))
	if code != "" {
		e.text += " " + transport.Printable(code)
	}
	if message != "" {
		e.text += ": " + transport.PrintableQuoted(message)
	}
	switch {
	case object && (status == http.StatusPreconditionFailed || status == http.StatusConflict):
		e.kind = ErrChanged
	case object && status == http.StatusNotFound && code != codeNoBucket && code != codeNoContainer:
		e.kind = ErrNoObject
	case status == http.StatusNotFound:
		e.kind = ErrNoBucket
	case status >= 300 && status < 400:
		e.text += ": the redirect is not followed; check endpoint and region"
	}
	return e
}

// The words for a bucket that is not there, where what is not found might be an object.
const (
	codeNoBucket    = "NoSuchBucket"
	codeNoContainer = "ContainerNotFound"
)
