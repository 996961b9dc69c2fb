// Package files is an upstream that serves files over HTTP as web servers do: with validators, compression and ranges. It
// has knobs for faults. It does not know what the files are.
package files

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// Request is one that was made.
type Request struct {
	Path, Query string
	Header      http.Header
	// Status is that of the answer, and Sent how long its body was.
	Status int
	Sent   int
}

// Server serves files.
type Server struct {
	*httptest.Server

	mu       sync.Mutex
	files    map[string][]byte
	packed   map[string][]byte
	changed  map[string]time.Time
	fault    http.HandlerFunc
	requests []Request
	plain    bool // without validators
	raw      bool // without compression
	login    [2]string
}

// New starts a server without files, over plain HTTP.
func New(tb testing.TB) *Server {
	tb.Helper()
	return start(tb, httptest.NewServer)
}

// NewTLS starts one over HTTPS, with a certificate of nobody's.
func NewTLS(tb testing.TB) *Server {
	tb.Helper()
	return start(tb, httptest.NewTLSServer)
}

func start(tb testing.TB, serve func(http.Handler) *httptest.Server) *Server {
	tb.Helper()
	s := &Server{files: map[string][]byte{}, packed: map[string][]byte{}, changed: map[string]time.Time{}}
	s.Server = serve(s)
	tb.Cleanup(s.Close)
	return s
}

// Put makes a file be what the content says.
func (s *Server) Put(path string, content []byte) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(content) // A buffer takes all.
	_ = w.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path], s.packed[path] = content, packed.Bytes()
	s.changed[path] = time.Unix(1_700_000_000+int64(len(s.requests)), 0)
}

// Fail has the handler answer every request until Heal is called.
func (s *Server) Fail(handler http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = handler
}

// Status is a fault that answers with a status alone.
func Status(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// Heal ends a fault.
func (s *Server) Heal() { s.Fail(nil) }

// WithoutValidators has answers say nothing of their version.
func (s *Server) WithoutValidators() { s.mu.Lock(); s.plain = true; s.mu.Unlock() }

// WithoutCompression has bodies be sent as they are.
func (s *Server) WithoutCompression() { s.mu.Lock(); s.raw = true; s.mu.Unlock() }

// Demand has the server ask for basic authentication.
func (s *Server) Demand(user, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.login = [2]string{user, password}
}

// Requests are all requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Downloads counts the bodies that were sent to their end.
func (s *Server) Downloads() int {
	n := 0
	for _, r := range s.Requests() {
		if r.Status == http.StatusOK && r.Sent > 0 {
			n++
		}
	}
	return n
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := &answer{ResponseWriter: w, status: http.StatusOK}
	s.serve(answer, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, Request{
		Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header.Clone(), Status: answer.status, Sent: answer.whole,
	})
}

func (s *Server) serve(w *answer, r *http.Request) {
	s.mu.Lock()
	fault, login, plain, raw := s.fault, s.login, s.plain, s.raw
	content, found := s.files[r.URL.Path]
	packed, changed := s.packed[r.URL.Path], s.changed[r.URL.Path]
	s.mu.Unlock()
	user, password, _ := r.BasicAuth()
	switch {
	case fault != nil:
		fault(w, r)
		return
	case login != [2]string{} && login != [2]string{user, password}:
		w.WriteHeader(http.StatusUnauthorized)
		return
	case !found:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	sum := sha256.Sum256(content)
	if !raw && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") && r.Header.Get("Range") == "" {
		w.Header().Set("Content-Encoding", "gzip")
		content = packed
	}
	if plain {
		changed = time.Time{}
	} else {
		w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:8])+`"`)
	}
	w.Header().Set("Content-Type", "text/yaml")
	w.want = len(content)
	http.ServeContent(w, r, "", changed, bytes.NewReader(content))
}

// answer notes what is sent.
type answer struct {
	http.ResponseWriter
	status, sent, want, whole int
}

func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	n, err := a.ResponseWriter.Write(p)
	if a.sent += n; a.sent >= a.want {
		a.whole = a.sent
	}
	return n, err
}

// Unwrap lets a fault reach the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
