package registry

import (
	"fmt"
	"net/http"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/tests/upstream"
)

// Cut closes the connection after n bytes of the body.
func Cut(n int64) Fault { return From(upstream.CutBody(n)) }

// HangAfter goes silent after n bytes of the body, until the client goes away or the registry is closed.
func HangAfter(n int64) Fault { return From(upstream.HangBody(n)) }

// Corrupt flips a bit in the byte of the body at the offset.
func Corrupt(offset int64) Fault { return From(upstream.FlipBody(offset)) }

// Hold makes the request wait until release is closed or receives a value, then passes it on. A client that goes
// away ends it.
func Hold(release <-chan struct{}) Fault {
	return Custom(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		select {
		case <-release:
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	})
}

// WrongDigest gives every good answer a Docker-Content-Digest that is not its own.
func WrongDigest() Fault {
	return Header("Docker-Content-Digest", digest.FromString("something else").String())
}

// NoDigest takes the Docker-Content-Digest from every good answer.
func NoDigest() Fault { return Header("Docker-Content-Digest", "") }

// ContentType gives every good answer another content type.
func ContentType(mediaType string) Fault { return Header("Content-Type", mediaType) }

// Slow lets chunk bytes of the body through for each value received from ticks: see upstream.Slow.
func Slow(chunk int, ticks <-chan time.Time) Fault { return From(upstream.Slow(chunk, ticks)) }

// NoLength sends good answers without telling their length.
func NoLength() Fault {
	return Custom(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		out := &editor{ResponseWriter: w, edit: func(h http.Header) { h.Del("Content-Length") }, flush: true}
		next.ServeHTTP(out, r)
	})
}

// NoLink cuts lists off after their first page.
func NoLink() Fault { return Header("Link", "").On(Tags, Referrers) }

// Link names this URL as the next page of every list.
func Link(target string) Fault {
	return Header("Link", fmt.Sprintf("<%s>; rel=\"next\"", target)).On(Tags, Referrers)
}

// LinkLoop names the page asked for as its own next.
func LinkLoop() Fault {
	return Custom(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		link := fmt.Sprintf("<%s>; rel=\"next\"", r.URL.RequestURI())
		next.ServeHTTP(edited(w, func(h http.Header) { h.Set("Link", link) }), r)
	}).On(Tags, Referrers)
}

// Header sets a header of every good answer, or removes it when the value is empty.
func Header(name, value string) Fault {
	return Custom(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(edited(w, func(h http.Header) {
			h.Del(name)
			if value != "" {
				h.Set(name, value)
			}
		}), r)
	})
}

// HeadSays makes a HEAD of a manifest describe this one, whatever GET then serves.
func HeadSays(described ocispec.Descriptor) Fault {
	return Custom(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(edited(w, func(h http.Header) { describe(h, described) }), r)
	}).On(ManifestHEAD)
}

// IgnoreRange sends the whole blob to those who ask for a part.
func IgnoreRange() Fault {
	return Custom(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		r.Header.Del("Range")
		next.ServeHTTP(w, r)
	}).On(Blob)
}

func describe(h http.Header, d ocispec.Descriptor) {
	h.Set("Content-Type", d.MediaType)
	h.Set("Content-Length", fmt.Sprint(d.Size))
	h.Set("Docker-Content-Digest", d.Digest.String())
	h.Set("Etag", fmt.Sprintf("%q", d.Digest))
}

// edited changes the headers of good answers just before they are sent.
func edited(w http.ResponseWriter, edit func(http.Header)) http.ResponseWriter {
	return &editor{ResponseWriter: w, edit: edit}
}

type editor struct {
	http.ResponseWriter
	edit    func(http.Header)
	flush   bool // send the headers at once, before net/http can measure a short body
	started bool
}

// Unwrap lets http.ResponseController flush.
func (e *editor) Unwrap() http.ResponseWriter { return e.ResponseWriter }

func (e *editor) WriteHeader(status int) {
	if !e.started && status < http.StatusMultipleChoices {
		e.edit(e.Header())
	}
	e.started = true
	e.ResponseWriter.WriteHeader(status)
	if e.flush {
		// A writer that cannot flush tells the length of short bodies, which is all that is lost.
		_ = http.NewResponseController(e.ResponseWriter).Flush()
	}
}

func (e *editor) Write(p []byte) (int, error) {
	if !e.started {
		e.WriteHeader(http.StatusOK)
	}
	return e.ResponseWriter.Write(p)
}
