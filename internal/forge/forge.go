// Package forge asks people for reviews where they review: by pull requests of GitHub and Gitea and merge requests of GitLab, with
// the few calls of their REST APIs that this takes. All three are called requests here.
// It does not know what is to be reviewed, nor what follows from a merge.
package forge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"sluice.dev/sluice/internal/credential"
)

// State is how far a request is.
type State string

// The states of a request.
const (
	Open   State = "Open"
	Merged State = "Merged"
	Closed State = "Closed"
)

// Request is a pull or merge request from one branch of a repository to another one of the same repository.
type Request struct {
	Number int
	// URL is where people see it; empty where the forge gives none that can be shown.
	URL   string
	State State
	// Head is the branch that is to be merged, and Base the one that it is to be merged into, by their short names.
	Head, Base string
	// By is who merged or closed it, where the forge tells.
	By string
	// Updated is when anything about it changed last, by the forge's clock.
	Updated time.Time
	// Mark is what its text says of itself; a zero one where the text is somebody else's.
	Mark Mark

	body string
}

var (
	// ErrLogin says that the forge does not know who asks.
	ErrLogin = errors.New("the credential is not accepted")
	// ErrForbidden says that whoever asks may not.
	ErrForbidden = errors.New("the credential has not the right to")
	// ErrNotFound says that there is no such repository or request, or that whoever asks is not to know.
	ErrNotFound = errors.New("there is no such repository, or the credential may not see it")
	// ErrExists says that there is an open request for the branch already.
	ErrExists = errors.New("there is a request for the branch already")
	// ErrLimited says that no more is to be asked until a while has passed.
	ErrLimited = errors.New("the forge wants fewer requests")
	// ErrUnavailable says that the forge cannot answer at the moment.
	ErrUnavailable = errors.New("the forge does not answer")
	// ErrRefused says that the forge does not do what it is asked to.
	ErrRefused = errors.New("the forge refuses")
	// ErrAnswer says that what answers is no such forge, or says more than it may.
	ErrAnswer = errors.New("the answer is none of this forge's")
)

// Error is what a forge said instead of what it was asked for.
type Error struct {
	// Err is one of the errors above.
	Err error
	// Status is that of HTTP; zero where there is none.
	Status int
	// Words are the forge's, made fit to be shown; or why there are none.
	Words string
	// Until is when to ask again, where the forge says so.
	Until time.Time
}

// Error has the forge's words.
func (e *Error) Error() string {
	text := e.Err.Error()
	if e.Status != 0 {
		text += fmt.Sprintf(" (%d %s)", e.Status, http.StatusText(e.Status))
	}
	if e.Words != "" {
		text += ": " + e.Words
	}
	return text
}

// Unwrap gives the sentinel.
func (e *Error) Unwrap() error { return e.Err }

// Options are what a Client works with.
type Options struct {
	// HTTP makes the requests. It has to keep what belongs to an origin there.
	HTTP *http.Client
	// Body guards a body against a server that falls silent; nil leaves it as it is.
	Body func(io.ReadCloser) io.ReadCloser
	// Token is sent with each request, and Secrets are never shown.
	Token   credential.Secret
	Secrets []credential.Secret
	// Clock tells how long a while is. Default the machine's.
	Clock clock.PassiveClock
	// Observe is told of each request, with what came of it: success, unchanged, limited or failure. Nil for nobody.
	Observe func(provider Provider, result string)
	// PageSize is how many requests are asked for at once. Default 50, the most that all three give.
	PageSize int
	// MaxPages bounds how many pages are read when it is not known where the last look ended. Default 20.
	MaxPages int
	// MaxBytes bounds one request in an answer, so that no stranger who opens many makes a page too long. Default 8 MiB, which holds
	// the longest text that GitHub and GitLab take, however it is escaped.
	MaxBytes int64
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Body == nil {
		o.Body = func(body io.ReadCloser) io.ReadCloser { return body }
	}
	if o.Observe == nil {
		o.Observe = func(Provider, string) {}
	}
	if o.PageSize == 0 {
		o.PageSize = 50
	}
	if o.MaxPages == 0 {
		o.MaxPages = 20
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 8 << 20
	}
	return o
}

// Client asks a forge about one repository. It is safe for concurrent use.
type Client struct {
	place   Place
	dialect dialect
	options Options
	http    *http.Client
}

// New returns a Client, which has asked nothing yet.
func New(place Place, options Options) *Client {
	options = options.withDefaults()
	return &Client{place: place, dialect: dialects()[place.Provider](place), options: options, http: atHome(options.HTTP)}
}

// Draft is a request that is to be made.
type Draft struct {
	Head, Base  string
	Title, Text string
}

// Begin makes a request. Where there is one for the branch already, that is ErrExists.
func (c *Client) Begin(ctx context.Context, d Draft) (made Request, err error) {
	err = c.call(ctx, call{
		what: fmt.Sprintf("open a request for branch %q", d.Head), method: http.MethodPost, path: c.dialect.all(), payload: c.dialect.begin(d),
	}, c.one(&made))
	return made, err
}

// Edit is what is to be different about a request.
type Edit struct {
	// Title and Text take the place of those that are there; empty ones leave them. What people wrote around the text stays.
	Title, Text string
	// State is Open or Closed; empty leaves it.
	State State
}

// Edit changes a request.
func (c *Client) Edit(ctx context.Context, number int, e Edit) (edited Request, err error) {
	if e.Text != "" {
		var now Request
		if now, err = c.Look(ctx, number); err != nil {
			return now, err
		}
		e.Text = replace(now.body, e.Text)
	}
	err = c.call(ctx, call{
		what: fmt.Sprintf("change request %d", number), method: c.dialect.editMethod(), path: c.dialect.at(number), payload: c.dialect.edit(e),
	}, c.one(&edited))
	return edited, err
}

// Look reads a request, with who merged or closed it where the forge tells that at all.
func (c *Client) Look(ctx context.Context, number int) (found Request, err error) {
	what := fmt.Sprintf("read request %d", number)
	if err = c.call(ctx, call{what: what, method: http.MethodGet, path: c.dialect.at(number)}, c.one(&found)); err != nil {
		return found, err
	}
	if more := c.dialect.closed(number); found.State == Closed && found.By == "" && more != "" {
		var by wireClosed
		err = c.call(ctx, call{what: what, method: http.MethodGet, path: more}, func(a *answer) error { return a.decode(&by) })
		found.By = by.ClosedBy.name()
	}
	return found, err
}

// one reads an answer that is a request.
func (c *Client) one(into *Request) func(*answer) error {
	return func(a *answer) error {
		found := c.dialect.wire()
		err := a.decode(found)
		if err == nil {
			*into, err = request(found)
		}
		return err
	}
}
