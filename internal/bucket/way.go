package bucket

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/transport"
)

const (
	// maxPage bounds an answer that is no object: a thousand keys of a kilobyte, percent-encoded, and what is said about each.
	maxPage = 8 << 20
	// maxPerPage is how many keys these are, where a storage has to be told.
	maxPerPage = 1000
	// maxRefusal bounds the body of an answer that says no.
	maxRefusal = 64 << 10
	// pageCost is how many bytes of memory a byte of a page takes, as long as its objects are held.
	pageCost = 1
	// maxRetryAfter is the longest that a storage may ask to be left alone.
	maxRetryAfter = time.Hour
)

// way is how requests reach a storage: by the dial policy, with the bucket's own TLS identity and by its proxy, to the origin
// that the client names and to no other. No redirect is followed.
type way struct {
	factory *transport.Factory
	tls     credential.TLS
	proxy   credential.Proxy
	observe func(int64)
}

// unredirected is a client for whoever goes by the way, and takes a redirect as the answer that it is.
func unredirected(by http.RoundTripper) *http.Client {
	return &http.Client{Transport: by, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// heard is what an answer says beside what the clients of storages pass on.
type heard struct{ retryAfter atomic.Int64 }

// asking is what a request's context says about it.
type asking struct {
	heard *heard
	page  bool // The answer is read into memory.
}

type askingKey struct{}

// ask marks the requests of one call.
func ask(ctx context.Context, page bool) (context.Context, *heard) {
	h := &heard{}
	return context.WithValue(ctx, askingKey{}, asking{heard: h, page: page}), h
}

// RoundTrip implements http.RoundTripper.
func (w way) RoundTrip(request *http.Request) (*http.Response, error) {
	client, err := w.factory.HTTP(request.URL, w.tls, w.proxy)
	if err != nil {
		return nil, err
	}
	if request.Header.Get("Accept-Encoding") == "" {
		// What is stored is asked for, and not what a server or a client would unpack on the way.
		request = request.Clone(request.Context())
		request.Header.Set("Accept-Encoding", "identity")
	}
	response, err := client.Transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Header.Del("Set-Cookie") // The client of S3 would keep all that it is given, without a bound.
	how, _ := request.Context().Value(askingKey{}).(asking)
	body := &answer{ReadCloser: w.factory.Body(response.Body), observe: w.observe, left: -1}
	switch refused := response.StatusCode >= http.StatusMultipleChoices; {
	case refused:
		body.left = maxRefusal
		if how.heard != nil {
			how.heard.retryAfter.Store(int64(retryAfter(response.Header)))
		}
	case how.page:
		body.left, body.ctx = maxPage, request.Context()
	}
	response.Body = body
	return response, nil
}

// retryAfter reads a number of seconds; dates are for browsers.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.ParseUint(header.Get("Retry-After"), 10, 32)
	if err != nil {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}

// answer is a body that is counted, and bounded where it is read into memory.
type answer struct {
	io.ReadCloser

	observe func(int64)
	left    int64           // negative for no bound
	ctx     context.Context //nolint:containedctx // It has the account that is drawn from; nil for none.
}

// Read bounds and counts.
func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	a.observe(int64(n))
	if a.left < 0 {
		return n, err
	}
	if a.left -= int64(n); a.left < 0 {
		a.left = 0
		return 0, fmt.Errorf("%w: an answer of more than %d bytes", ErrLimit, maxPage)
	}
	if a.ctx != nil {
		if short := memory.Draw(a.ctx, pageCost*int64(n)); short != nil {
			return 0, short
		}
	}
	return n, err
}

// bound gives the requests of one call, whose client has no way to say so, the call's context.
type bound struct {
	way
	ctx context.Context //nolint:containedctx // The client has no other way to be told.
}

// RoundTrip implements http.RoundTripper.
func (b bound) RoundTrip(request *http.Request) (*http.Response, error) {
	return b.way.RoundTrip(request.WithContext(b.ctx))
}

// after is how long the storage asked to be left alone.
func (h *heard) after() time.Duration { return time.Duration(h.retryAfter.Load()) }
