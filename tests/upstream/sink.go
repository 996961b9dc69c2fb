package upstream

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Sink is a server that answers 404 to everything and remembers what it was sent: the place to which
// credentials must never go.
type Sink struct {
	url    string
	server *http.Server

	mu       sync.Mutex
	requests []Request
}

// SinkOptions say how a Sink listens.
type SinkOptions struct {
	// Address to listen on; 127.0.0.1:0 when empty.
	Address string
	// CA makes the sink speak TLS with a certificate for 127.0.0.1 and localhost.
	CA *CA
}

// NewSink starts a sink. It runs until Close, or until ctx is done.
func NewSink(ctx context.Context, options SinkOptions) (*Sink, error) {
	listener, scheme, err := listen(ctx, HTTPOptions{Address: options.Address, CA: options.CA})
	if err != nil {
		return nil, fmt.Errorf("open sink: %w", err)
	}
	s := &Sink{url: scheme + "://" + listener.Addr().String()}
	s.server = &http.Server{Handler: http.HandlerFunc(s.serve), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), ReadHeaderTimeout: time.Minute}
	go s.server.Serve(listener.outer) //nolint:errcheck // It always ends with an error: that it was closed.
	context.AfterFunc(ctx, func() { s.server.Close() })
	return s, nil
}

// URL is scheme://host:port, without a slash at its end.
func (s *Sink) URL() string { return s.url }

// Close stops the sink.
func (s *Sink) Close() error { return s.server.Close() }

// Requests are all requests so far, in the order of their arrival.
func (s *Sink) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Secrets are the values of all headers so far that may carry a credential, as "Name: value".
func (s *Sink) Secrets() []string {
	var secrets []string
	for _, request := range s.Requests() {
		for name, values := range request.Header {
			switch strings.ToLower(name) {
			case "authorization", "proxy-authorization", "cookie", "private-token", "x-api-key":
				for _, value := range values {
					secrets = append(secrets, name+": "+value)
				}
			}
		}
	}
	return secrets
}

func (s *Sink) serve(w http.ResponseWriter, r *http.Request) {
	request, err := readRequest(w, r)
	if err != nil {
		// What cannot be read may still carry a credential.
		request = Request{Kind: Other, Method: r.Method, URI: r.URL.RequestURI(), Header: r.Header.Clone()}
	}
	request.Status = http.StatusNotFound
	s.mu.Lock()
	s.requests = append(s.requests, request)
	s.mu.Unlock()
	http.NotFound(w, r)
}
