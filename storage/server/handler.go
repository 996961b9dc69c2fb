package server

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"sluice.dev/sluice/storage"
)

type handler struct {
	reader  storage.Reader
	options Options
}

// New serves the reader's artifacts under their paths. GET / answers 200 with a line of text, as readiness probes
// expect. Everything that is not the one spelling of an artifact's path is 404: there are no redirects, no listings.
func New(reader storage.Reader, options Options) http.Handler {
	return &handler{reader: reader, options: options.withDefaults()}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := h.options.Now()
	answer := newAnswer(w, r)
	err := h.serve(answer, r)
	h.options.Observer(Served{
		Method:   methodName(r.Method),
		Status:   answer.status,
		Bytes:    answer.bytes,
		Duration: h.options.Now().Sub(began),
		Err:      err,
	})
}

// serve returns only errors that the client is not to know the words of.
func (h *handler) serve(w *answer, r *http.Request) error {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.ContentLength != 0 {
		// The body is not read; what is left of it must not hold the connection either.
		w.refuseBody(h.options.Now())
	}
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		fail(w, http.StatusMethodNotAllowed)
	case r.ContentLength != 0:
		fail(w, http.StatusBadRequest)
	case r.URL.Path == "/":
		greet(w, r)
	default:
		return h.artifact(w, r)
	}
	return nil
}

func (h *handler) artifact(w *answer, r *http.Request) error {
	p := strings.TrimPrefix(r.URL.Path, "/")
	if _, _, err := storage.ParsePath(p); err != nil || strings.Contains(strings.ToLower(r.URL.RawPath), "%2f") {
		// Only the plain spelling of a path is one. An encoded slash would be a second one.
		fail(w, http.StatusNotFound)
		return nil
	}
	body, err := h.reader.Open(r.Context(), p)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		fail(w, http.StatusNotFound)
		return nil
	case errors.Is(err, storage.ErrDamaged):
		fail(w, http.StatusNotFound)
		return err
	case err != nil && r.Context().Err() != nil:
		fail(w, http.StatusRequestTimeout) // Nobody hears it: the client has gone.
		return nil
	case err != nil:
		fail(w, http.StatusInternalServerError)
		return err
	}
	defer body.Close()
	stat := body.Stat()
	describe(w.Header(), p, stat)
	if strings.Contains(r.Header.Get("Range"), ",") {
		// Many ranges cost more than the whole body; RFC 9110 §14.2 lets a server ignore them.
		r.Header.Del("Range")
	}
	modified := stat.StoredAt
	if !isBound(p, stat.Digest) {
		modified = time.Time{} // The next body may have the same second, or an earlier one if the clock is set back.
	}
	http.ServeContent(w, r, "", modified, body)
	return nil
}

func greet(w *answer, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader("artifact server\n"))
}

func fail(w *answer, status int) {
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// The client may be gone; the status is what counts.
	_, _ = io.WriteString(w, strings.ToLower(http.StatusText(status))+"\n")
}

// methodName keeps made-up methods out of metrics.
func methodName(method string) string {
	if method == http.MethodGet || method == http.MethodHead {
		return method
	}
	return "OTHER"
}
