package registry

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"sluice.dev/sluice/tests/upstream"
)

// site serves a handler on a port until it is closed.
type site struct {
	url      string
	server   *http.Server
	closing  context.CancelFunc
	mu       sync.Mutex
	closed   bool
	handlers sync.WaitGroup
}

func serve(ctx context.Context, port *upstream.Port, handler http.Handler) *site {
	s := &site{url: port.URL()}
	ctx, s.closing = context.WithCancel(ctx)
	s.server = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !s.enter() {
				panic(http.ErrAbortHandler)
			}
			defer s.handlers.Done()
			handler.ServeHTTP(w, r)
		}),
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), ReadHeaderTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	go s.server.Serve(port) //nolint:errcheck // It always ends with an error: that it was closed.
	context.AfterFunc(ctx, func() { s.server.Close() })
	return s
}

// enter counts a request as under way. A site that is being closed takes no more.
func (s *site) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.handlers.Add(1)
	}
	return !s.closed
}

// close may be called on a site that was never started.
func (s *site) close() {
	if s == nil {
		return
	}
	s.closing()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.server.Close()
	s.handlers.Wait()
}
