// Package openapi serves what an API server of Kubernetes 1.36 says of some of its kinds, to tests that need no other part of it.
package openapi

import (
	"crypto/sha256"
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

//go:embed documents
var documents embed.FS

// Server is an API server that answers questions for its OpenAPI.
type Server struct {
	URL *url.URL

	mu     sync.Mutex
	texts  map[string][]byte // by "apis/apps/v1"
	status int
	asked  []string
}

// Serve starts one on a port of its own, for as long as the test runs.
func Serve(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{texts: map[string][]byte{}}
	files, err := documents.ReadDir("documents")
	if err != nil {
		tb.Fatal(err)
	}
	for _, file := range files {
		text, err := documents.ReadFile("documents/" + file.Name())
		if err != nil {
			tb.Fatal(err)
		}
		s.texts[strings.ReplaceAll(strings.TrimSuffix(file.Name(), ".json"), "_", "/")] = text
	}
	server := httptest.NewServer(s)
	tb.Cleanup(server.Close)
	if s.URL, err = url.Parse(server.URL); err != nil {
		tb.Fatal(err)
	}
	return s
}

// Set has it say something else of a version, named as in apis/apps/v1, or nothing more.
func (s *Server) Set(name string, text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.texts[name] = text; text == nil {
		delete(s.texts, name)
	}
}

// Answer has it answer everything with the status, or as it should with 0.
func (s *Server) Answer(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// Asked are the paths that were asked for so far.
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.asked...)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.URL.Path)
	name, isDocument := strings.CutPrefix(r.URL.Path, "/openapi/v3/")
	switch {
	case s.status != 0:
		w.WriteHeader(s.status)
	case isDocument && s.texts[name] != nil:
		_, _ = w.Write(s.texts[name]) // Who has gone needs no answer.
	case r.URL.Path == "/openapi/v3":
		paths := map[string]any{}
		for name, text := range s.texts {
			paths[name] = map[string]string{"serverRelativeURL": fmt.Sprintf("/openapi/v3/%s?hash=%x", name, sha256.Sum256(text))}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"paths": paths}) // As above.
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}
