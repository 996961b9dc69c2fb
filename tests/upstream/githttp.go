package upstream

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cgi"
	"path/filepath"
	"sync"
	"time"
)

// HTTPOptions are what a GitHTTP cannot change while it runs, and what it starts with.
type HTTPOptions struct {
	// Address to listen on; 127.0.0.1:0 when empty.
	Address string
	// CA makes the server speak TLS with a certificate for 127.0.0.1 and localhost.
	CA *CA
	// Identity makes the server speak TLS with this certificate instead.
	Identity *Identity
	// ClientCA makes the server refuse clients without a certificate of this authority. It needs TLS.
	ClientCA *CA
	// Access is what clients have to show.
	Access Access
	// WithoutV2 makes the server ignore the client's wish for protocol v2 and v1.
	WithoutV2 bool
}

// GitHTTP serves a folder of repositories through git http-backend.
type GitHTTP struct {
	url      string
	backend  http.Handler
	server   *http.Server
	wire     *countingListener
	closing  context.CancelFunc
	handlers sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	access   Access
	v2       bool
	next     []planned
	always   []Fault
	before   map[Kind]func()
	requests []*Request
}

// ServeHTTP starts a server for the repositories under root. It runs until Close, or until ctx is done.
func ServeHTTP(ctx context.Context, root string, options HTTPOptions) (*GitHTTP, error) {
	folder, err := programs(ctx)
	if err != nil {
		return nil, fmt.Errorf("serve %q: %w", root, err)
	}
	root, err = filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("serve %q: %w", root, err)
	}
	s := &GitHTTP{access: options.Access, v2: !options.WithoutV2, before: map[Kind]func(){}}
	s.backend = &cgi.Handler{
		Path: filepath.Join(folder, "git-http-backend"), Dir: root, Logger: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), Stderr: io.Discard,
		Env: append(Environ(root), "GIT_PROJECT_ROOT="+root, "GIT_HTTP_EXPORT_ALL=1"),
	}
	listener, scheme, err := listen(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("serve %q: %w", root, err)
	}
	s.wire = listener
	s.url = scheme + "://" + listener.Addr().String()
	ctx, s.closing = context.WithCancel(ctx)
	s.server = &http.Server{
		Handler: http.HandlerFunc(s.serve), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), ReadHeaderTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	go s.server.Serve(listener.outer) //nolint:errcheck // It always ends with an error: that it was closed.
	context.AfterFunc(ctx, func() { s.server.Close() })
	return s, nil
}

// listen opens the port; the listener that counts lies below TLS.
func listen(ctx context.Context, options HTTPOptions) (*countingListener, string, error) {
	identity := options.Identity
	if identity == nil && options.CA != nil {
		issued, err := options.CA.Server("127.0.0.1", "localhost")
		if err != nil {
			return nil, "", err
		}
		identity = &issued
	}
	inner, err := open(ctx, options.Address)
	if err != nil {
		return nil, "", err
	}
	counting := &countingListener{Listener: inner}
	counting.outer = counting
	if identity == nil {
		return counting, "http", nil
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{identity.TLS}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
	}
	if options.ClientCA != nil {
		config.ClientCAs, config.ClientAuth = options.ClientCA.Pool(), tls.RequireAndVerifyClientCert
	}
	counting.outer = tls.NewListener(counting, config)
	return counting, "https", nil
}

// Close stops the server, breaks off the answers under way, and waits for them to end.
func (s *GitHTTP) Close() error {
	s.closing()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.server.Close()
	s.handlers.Wait()
	return err
}

// Address is host:port.
func (s *GitHTTP) Address() string { return s.wire.Addr().String() }

// BaseURL is scheme://host:port, without a slash at its end.
func (s *GitHTTP) BaseURL() string { return s.url }

// URL is where the repository of that name is served. It never holds credentials.
func (s *GitHTTP) URL(name string) string { return s.url + "/" + name + ".git" }

func (s *GitHTTP) serve(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.handlers.Done()

	request, err := readRequest(w, r)
	if err != nil {
		http.Error(w, "unreadable request", http.StatusBadRequest)
		return
	}
	fault, access, v2, before := s.admit(&request)
	out := &answer{ResponseWriter: w, ctx: r.Context(), fault: fault.transfer, seen: func(status, bytes int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if status != 0 {
			request.Status = status
		}
		request.BytesOut += int64(bytes)
	}}
	switch {
	case fault.answers():
		err = fault.answer(out, r, request.Kind)
	case !access.admits(r):
		access.challenge(out)
	default:
		if before != nil {
			before()
		}
		if !v2 {
			r.Header.Del("Git-Protocol")
		}
		s.backend.ServeHTTP(out, r)
		err = out.broken
	}
	if err != nil {
		panic(http.ErrAbortHandler) // The only way to close a connection in the middle of an answer.
	}
}

// enter counts a request as under way. A server that is being closed takes no more.
func (s *GitHTTP) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.handlers.Add(1)
	}
	return !s.closed
}

// admit notes the request and decides what happens to it.
func (s *GitHTTP) admit(request *Request) (Fault, Access, bool, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, request)
	return s.fault(request.Kind), s.access, s.v2, s.before[request.Kind]
}
