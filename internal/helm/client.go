// Package helm speaks to Helm repositories that are servers of files, and chooses among the versions of a chart.
// It does not know how an index is read, nor what becomes of a package.
package helm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"time"

	"github.com/klauspost/compress/gzip"
	"k8s.io/utils/clock"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
)

// ErrTooLarge says that an answer has more bytes than it may, compressed or not.
var ErrTooLarge = errors.New("is larger than allowed")

// maxValidator is the length in bytes beyond which a validator is not kept.
const maxValidator = 1 << 10

// Validators name a version of a file as its server does, RFC 9110, 8.8. The zero value names none.
type Validators struct {
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"lastModified,omitempty"`
}

// Request is for one file.
type Request struct {
	URL   string
	Login credential.Login
	// Unless is the version that is there already.
	Unless Validators
	// Limit bounds the body, compressed and not.
	Limit int64
}

// Answer is what a server said. Its body is to be closed.
type Answer struct {
	// Unchanged says that the version is the one that is there already; there is no body then.
	Unchanged bool
	Validators
	// Body is the file without what compresses it. Reading gives ErrTooLarge where it exceeds the limit.
	Body io.ReadCloser
}

// StatusError is an answer that is no file.
type StatusError struct {
	Status     int
	RetryAfter time.Duration
}

// Error is the status with its usual text, as Go's client shows it.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status))
}

// Client gets files from Helm repositories.
type Client struct {
	transport *transport.Factory
	clock     clock.PassiveClock
	observe   func(bytes int64)
}

// NewClient returns a Client. Observe is told of bytes that were received.
func NewClient(connections *transport.Factory, now clock.PassiveClock, observe func(bytes int64)) *Client {
	return &Client{transport: connections, clock: now, observe: observe}
}

// Get asks for a file. Credentials go to the origin of the URL alone, whatever it redirects to. Errors hold no secret, and
// are StatusErrors where the server has answered with another status than 200 and 304.
func (c *Client) Get(ctx context.Context, r Request) (Answer, error) {
	answer, err := c.get(ctx, r)
	if err == nil {
		return answer, nil
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // The text around it repeats method and URL.
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return Answer{}, transport.SafeError(err, r.Login.Secrets()...)
}

func (c *Client) get(ctx context.Context, r Request) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL, http.NoBody)
	if err != nil {
		return Answer{}, err
	}
	client, err := c.transport.HTTP(request.URL, r.Login.TLS, credential.Proxy{})
	if err != nil {
		return Answer{}, err
	}
	request.Header.Set("User-Agent", "sluice")
	request.Header.Set("Accept-Encoding", "gzip") // Said aloud, so that the client leaves the answer as it is.
	if r.Login.Username != "" || !r.Login.Password.IsZero() {
		request.SetBasicAuth(r.Login.Username, r.Login.Password.Reveal())
	}
	if r.Unless.ETag != "" {
		request.Header.Set("If-None-Match", r.Unless.ETag)
	}
	if r.Unless.LastModified != "" {
		request.Header.Set("If-Modified-Since", r.Unless.LastModified)
	}
	response, err := client.Do(request)
	if err != nil {
		return Answer{}, err
	}
	if response.StatusCode == http.StatusNotModified && isOther(response.Header, r.Unless) {
		_ = response.Body.Close() // It has none.
		r.Unless = Validators{}
		return c.get(ctx, r)
	}
	answer, err := c.read(r, response)
	if err != nil || answer.Unchanged {
		_ = response.Body.Close() // Nothing of it counts.
	}
	return answer, err
}

// read makes an answer of a response.
func (c *Client) read(r Request, response *http.Response) (Answer, error) {
	asked := r.Unless != Validators{}
	switch {
	case response.StatusCode == http.StatusNotModified && asked:
		return Answer{Unchanged: true, Validators: r.Unless}, nil
	case response.StatusCode != http.StatusOK:
		return Answer{}, &StatusError{Status: response.StatusCode, RetryAfter: transport.RetryAfter(c.clock.Now(), response.Header)}
	case response.ContentLength > r.Limit:
		return Answer{}, fmt.Errorf("%w: %d bytes, and the limit is %d", ErrTooLarge, response.ContentLength, r.Limit)
	}
	answer := Answer{Validators: validatorsOf(response.Header)}
	sent := &bounded{from: c.transport.Body(response.Body), left: r.Limit, limit: r.Limit, observe: c.observe}
	switch encoding := response.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
		answer.Body = sent
	case "gzip", "x-gzip":
		plain, err := gzip.NewReader(sent)
		if err != nil {
			return Answer{}, fmt.Errorf("uncompress: %w", err)
		}
		answer.Body = &bounded{from: uncompressed{plain, sent}, left: r.Limit, limit: r.Limit}
	default:
		return Answer{}, fmt.Errorf("is encoded as %s, which was not asked for", transport.PrintableQuoted(encoding))
	}
	return answer, nil
}

// kept is a validator that is worth keeping.
func kept(validator string) string {
	if len(validator) > maxValidator {
		return ""
	}
	return validator
}

// validatorsOf are those of an answer that still tell it from the next change: a time does so once its second is over, by the
// server's own clock, RFC 9110, 8.8.2.2, and an etag may be made of the time.
func validatorsOf(header http.Header) Validators {
	found := Validators{ETag: kept(header.Get("ETag")), LastModified: kept(header.Get("Last-Modified"))}
	changed, err := http.ParseTime(found.LastModified)
	if err != nil {
		return Validators{ETag: found.ETag}
	}
	if now, err := http.ParseTime(header.Get("Date")); err != nil || !now.After(changed) {
		return Validators{}
	}
	return found
}

// isOther tells whether a file that has not been modified since is another one all the same: one that was restored is older.
func isOther(header http.Header, unless Validators) bool {
	now := header.Get("Last-Modified")
	return unless.ETag == "" && now != "" && now != unless.LastModified
}

// uncompressed closes what it is read from.
type uncompressed struct {
	io.Reader
	io.Closer
}

// bounded ends with ErrTooLarge where a body has more than it may.
type bounded struct {
	from        io.ReadCloser
	left, limit int64
	observe     func(bytes int64)
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, fmt.Errorf("%w: the limit is %d bytes", ErrTooLarge, b.limit)
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left+1)])
	if b.observe != nil {
		b.observe(int64(n))
	}
	if b.left -= int64(n); b.left < 0 {
		return n, fmt.Errorf("%w: the limit is %d bytes", ErrTooLarge, b.limit)
	}
	return n, err
}

// Close implements io.Closer.
func (b *bounded) Close() error { return b.from.Close() }

// IndexURL is where the index of a repository is. A query stays.
func IndexURL(clean string) string {
	address, err := url.Parse(clean)
	if err != nil {
		return clean // It was parsed before.
	}
	if address.RawPath != "" { // A slash in a name is written as %2F, and stays so.
		address.RawPath = path.Join(address.RawPath, "index.yaml")
	}
	address.Path = path.Join(address.Path, "index.yaml")
	if address.Path[0] != '/' {
		address.Path = "/" + address.Path
	}
	return address.String()
}
