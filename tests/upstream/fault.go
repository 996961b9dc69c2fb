package upstream

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Fault is what goes wrong with a request. The zero Fault does nothing; the functions of this file make the
// useful ones. A fault strikes every kind of request unless On names some.
type Fault struct {
	kinds  []Kind
	status int
	header http.Header
	body   string

	redirect string
	garbage  bool
	endless  bool
	drop     bool
	hang     bool
	transfer transfer
}

// transfer is a fault in the middle of an answer's body. Offsets count from one; zero is no fault.
type transfer struct {
	pack  bool  // offsets count from the pack's signature, not from the start of the body
	cut   int64 // close the connection before this byte
	hang  int64 // go silent before this byte
	flip  int64 // flip a bit of this byte
	chunk int   // let so many bytes through for each tick
	ticks <-chan time.Time
}

// On limits the fault to requests of these kinds; others pass and do not use it up.
func (f Fault) On(kinds ...Kind) Fault {
	f.kinds = kinds
	return f
}

func (f Fault) strikes(kind Kind) bool {
	return len(f.kinds) == 0 || slices.Contains(f.kinds, kind)
}

// Status answers with the status and a line of text: 401, 403, 404, 500 and so on.
func Status(code int) Fault {
	return Fault{status: code, body: http.StatusText(code) + "\n", header: http.Header{
		"Content-Type": {"text/plain; charset=utf-8"},
	}}
}

// TooManyRequests answers 429 with Retry-After in whole seconds.
func TooManyRequests(retryAfter time.Duration) Fault {
	f := Status(http.StatusTooManyRequests)
	f.header.Set("Retry-After", strconv.Itoa(int(retryAfter/time.Second)))
	return f
}

// HTML answers 200 with a log-in page, as captive portals and single sign-on do.
func HTML() Fault {
	return Fault{
		status: http.StatusOK, header: http.Header{"Content-Type": {"text/html; charset=utf-8"}},
		body: "<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><form>Sign in</form></body></html>\n",
	}
}

// Garbage answers 200 with the content type that the client expects and 4 KiB that mean nothing.
func Garbage() Fault { return Fault{garbage: true} }

// Endless answers with well-formed lines (refs, or progress for a fetch) that never end.
func Endless() Fault { return Fault{endless: true} }

// Drop closes the connection without an answer.
func Drop() Fault { return Fault{drop: true} }

// Hang reads the request and never answers, until the client goes away or the server is closed.
func Hang() Fault { return Fault{hang: true} }

// HangAfter goes silent after n bytes of the pack, until the client goes away or the server is closed.
func HangAfter(n int64) Fault { return onPack(transfer{hang: n + 1}) }

// CutAfter closes the connection after n bytes of the pack, counted from its signature and with the few bytes
// of framing that follow it.
func CutAfter(n int64) Fault { return onPack(transfer{cut: n + 1}) }

// CutBody closes the connection after n bytes of the answer's body, whatever it is.
func CutBody(n int64) Fault { return Fault{transfer: transfer{cut: n + 1}} }

// Flip flips a bit in the byte at the offset, counted from the pack's signature.
func Flip(offset int64) Fault { return onPack(transfer{flip: offset + 1}) }

// Slow lets chunk bytes of the body through for each value received from ticks: a ticker's channel for a slow
// line, a channel of one's own to hold the answer and let it go step by step. A closed channel lets all pass.
func Slow(chunk int, ticks <-chan time.Time) Fault {
	return Fault{transfer: transfer{chunk: chunk, ticks: ticks}}
}

// onPack strikes fetches alone: nothing else has a pack.
func onPack(t transfer) Fault {
	t.pack = true
	return Fault{transfer: t}.On(Fetch)
}

// Redirect answers with the code (301, 302, 307, 308) and the same path and query at another server, which is
// given as scheme://host:port.
func Redirect(code int, server string) Fault { return Fault{status: code, redirect: server} }
