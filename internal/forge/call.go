package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/transport"
)

const (
	// maxRefusal bounds the answer that says why not, and maxWords what of it is shown.
	maxRefusal, maxWords = 64 << 10, 300
	// longestWait bounds for how long a forge may want to be left alone.
	longestWait = time.Hour
	// mediaType is what all three answer with.
	mediaType = "application/json"
)

// call is one request to the API.
type call struct {
	// what is attempted, for errors.
	what         string
	method, path string
	query        url.Values
	payload      any
	// etag is that of the answer before; empty for none.
	etag string
}

// answer is a good one.
type answer struct {
	header http.Header
	// isUnchanged says that it is the one that the etag is of.
	isUnchanged bool
	body        *json.Decoder
	bounded     *bounded
}

// decode reads one value, which is bounded by itself: how many there are is no matter of how long each is. What of it is not known
// does not matter.
func (a *answer) decode(into any) error {
	a.bounded.from(a.body.InputOffset())
	if err := a.body.Decode(into); err != nil {
		return &Error{Err: ErrAnswer, Words: why(err)}
	}
	return nil
}

// atHome keeps a client at the origin that it asks.
func atHome(given *http.Client) *http.Client {
	kept := *given
	kept.CheckRedirect = func(request *http.Request, via []*http.Request) error {
		if transport.Origin(request.URL) != transport.Origin(via[0].URL) {
			return fmt.Errorf("%w: leads to another host than the forge's", transport.ErrRedirect)
		}
		if given.CheckRedirect != nil {
			return given.CheckRedirect(request, via)
		}
		return nil
	}
	return &kept
}

// call makes a request, and has a good answer read.
func (c *Client) call(ctx context.Context, what call, read func(*answer) error) error {
	isUnchanged, err := c.try(ctx, what, read)
	result := "success"
	switch {
	case errors.Is(err, ErrLimited):
		result = "limited"
	case err != nil:
		result = "failure"
	case isUnchanged:
		result = "unchanged"
	}
	c.options.Observe(c.place.Provider, result)
	if err != nil {
		return fmt.Errorf("%s of %s at %s: %w", what.what, c.place.Repository, c.place.Endpoint.Host, err)
	}
	return nil
}

func (c *Client) try(ctx context.Context, what call, read func(*answer) error) (isUnchanged bool, err error) {
	request, err := c.request(ctx, what)
	if err != nil {
		return false, err
	}
	response, err := c.http.Do(request) //nolint:bodyclose // It is closed as what guards it.
	if err != nil {
		return false, c.unanswered(ctx, err)
	}
	body := c.options.Body(response.Body)
	defer func() { _ = body.Close() }() // Reading told whether the data was good.
	switch {
	case response.StatusCode == http.StatusNotModified && what.etag != "":
		return true, read(&answer{header: response.Header, isUnchanged: true})
	case response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusMultipleChoices:
		return false, c.refusal(response, body)
	}
	bounded := &bounded{reader: body, most: c.options.MaxBytes}
	bounded.from(0)
	err = read(&answer{header: response.Header, body: json.NewDecoder(bounded), bounded: bounded})
	if found, ok := errors.AsType[*Error](err); ok {
		found.Words = c.shown(found.Words)
	}
	if err != nil && ctx.Err() != nil {
		return false, c.unanswered(ctx, ctx.Err())
	}
	return false, err
}

func (c *Client) request(ctx context.Context, what call) (*http.Request, error) {
	body := io.Reader(http.NoBody)
	if what.payload != nil {
		text, err := json.Marshal(what.payload)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	address := c.place.Endpoint.String() + what.path
	if len(what.query) > 0 {
		address += "?" + what.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, what.method, address, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.options.Token.Reveal())
	request.Header.Set("Accept", mediaType)
	request.Header.Set("User-Agent", "sluice")
	if what.payload != nil {
		request.Header.Set("Content-Type", mediaType)
	}
	if what.etag != "" {
		request.Header.Set("If-None-Match", what.etag)
	}
	return request, nil
}

// unanswered is the error where there is no answer.
func (c *Client) unanswered(ctx context.Context, err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // The text around it repeats method and URL.
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	kind := ErrUnavailable
	if errors.Is(err, transport.ErrRedirect) || errors.Is(err, transport.ErrDenied) {
		kind = ErrRefused
	}
	return &Error{Err: kind, Words: c.shown(err.Error())}
}

// refusal is the error that an answer is.
func (c *Client) refusal(response *http.Response, body io.Reader) error {
	text, _ := io.ReadAll(io.LimitReader(body, maxRefusal)) // What was read is shown.
	e := &Error{Status: response.StatusCode, Words: c.shown(words(text)), Until: c.until(response.Header)}
	isLimited := response.Header.Get("Retry-After") != "" || remaining(response.Header) == "0"
	switch status := response.StatusCode; {
	case status == http.StatusTooManyRequests, status == http.StatusForbidden && isLimited:
		e.Err = ErrLimited
	case status == http.StatusUnauthorized:
		e.Err = ErrLogin
	case status == http.StatusForbidden:
		e.Err = ErrForbidden
	case status == http.StatusNotFound:
		e.Err = ErrNotFound
	case status == http.StatusConflict, status == http.StatusUnprocessableEntity && strings.Contains(string(text), "already exists"):
		e.Err = ErrExists
	case status >= http.StatusInternalServerError:
		e.Err = ErrUnavailable
	default:
		e.Err = ErrRefused
	}
	return e
}

// until is when to ask again: after so many seconds, or when the count begins anew.
func (c *Client) until(header http.Header) time.Time {
	now := c.options.Clock.Now()
	most := now.Add(longestWait)
	var at time.Time
	if after := header.Get("Retry-After"); after != "" {
		if seconds, err := strconv.Atoi(after); err == nil && seconds >= 0 {
			at = now.Add(time.Duration(min(seconds, int(longestWait/time.Second))) * time.Second)
		} else if date, err := http.ParseTime(after); err == nil {
			at = date
		}
	} else if remaining(header) == "0" {
		for _, name := range []string{"X-RateLimit-Reset", "RateLimit-Reset"} {
			if seconds, err := strconv.ParseInt(header.Get(name), 10, 64); err == nil {
				at = time.Unix(seconds, 0)
				break
			}
		}
	}
	if at.After(most) {
		return most
	}
	return at
}

func remaining(header http.Header) string {
	if left := header.Get("X-RateLimit-Remaining"); left != "" {
		return left
	}
	return header.Get("RateLimit-Remaining")
}

// words are those of an answer that says no: forges spell them in several ways.
func words(text []byte) string {
	var refusal struct {
		Message json.RawMessage   `json:"message"`
		Error   json.RawMessage   `json:"error"`
		Errors  []json.RawMessage `json:"errors"`
	}
	if json.Unmarshal(text, &refusal) != nil {
		return ""
	}
	var said []string
	for _, part := range append([]json.RawMessage{refusal.Message, refusal.Error}, refusal.Errors...) {
		var word string
		if json.Unmarshal(part, &word) != nil {
			word = string(part)
		}
		if word != "" && word != "null" {
			said = append(said, word)
		}
	}
	return strings.Join(said, "; ")
}

// shown are words of a server, which may repeat what it was sent.
func (c *Client) shown(text string) string {
	return printable.Line(credential.Redact(text, append(c.options.Secrets, c.options.Token)...), maxWords)
}

// why is what is wrong with an answer, without its words.
func why(err error) string {
	switch {
	case errors.Is(err, errTooLong), errors.Is(err, transport.ErrStalled):
		return err.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends too early"
	}
	return "it is not the JSON that was expected"
}

var errTooLong = errors.New("it is longer than an answer may be")

// bounded is a reader that has an end, so far behind where the value begins that is read.
type bounded struct {
	reader          io.Reader
	most, read, end int64
}

// from says where the value begins.
func (b *bounded) from(offset int64) { b.end = offset + b.most }

func (b *bounded) Read(p []byte) (int, error) {
	if b.read >= b.end {
		return 0, errTooLong
	}
	n, err := b.reader.Read(p[:min(int64(len(p)), b.end-b.read)])
	b.read += int64(n)
	return n, err
}
