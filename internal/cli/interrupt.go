package cli

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/spf13/cobra"
)

// interruptible ends requests when the command is interrupted: which kinds there are is asked without its context.
type interruptible struct {
	next http.RoundTripper
	life context.Context //nolint:containedctx // It is the command's.
}

// RoundTrip implements http.RoundTripper.
func (i interruptible) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, end := context.WithCancel(request.Context())
	forget := context.AfterFunc(i.life, end) //nolint:contextcheck // It is the command's, beside the request's.
	response, err := i.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		forget()
		end()
		return nil, err //nolint:wrapcheck // It is as if nobody stood between.
	}
	response.Body = &ending{response.Body, func() {
		forget()
		end()
	}}
	return response, nil
}

// WrappedRoundTripper lets client-go cancel a request whose time is up.
func (i interruptible) WrappedRoundTripper() http.RoundTripper { return i.next }

// ending is a body after which nothing is to be ended.
type ending struct {
	io.ReadCloser

	end func()
}

// Close implements io.Closer.
func (e *ending) Close() error {
	defer e.end()
	return e.ReadCloser.Close() //nolint:wrapcheck // It is as if nobody stood between.
}

// concluded is the error of a command that had begun. One that was interrupted is told to be, whatever became of it by that, and what
// nobody has foreseen is not said to have been typed wrongly.
func concluded(cmd *cobra.Command, err error) error {
	if err != nil && cmd.Context().Err() != nil && ExitCode(err) != ExitInterrupted {
		return explain(cmd.Name(), context.Canceled, "")
	}
	return foreseen(cmd.Name(), err)
}

// foreseen is the error, with what nobody has foreseen as a problem of the command.
func foreseen(what string, err error) error {
	if err == nil {
		return nil
	}
	if _, is := errors.AsType[*CommandError](err); !is {
		return &CommandError{Code: ExitUnanswered, What: what, Why: err.Error()}
	}
	several, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var all []error
	for _, one := range several.Unwrap() {
		all = append(all, foreseen(what, one))
	}
	return errors.Join(all...)
}
