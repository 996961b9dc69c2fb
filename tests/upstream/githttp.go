package upstream

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cgi"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Access is what a server asks of its clients. The zero Access asks nothing. With both a name and a token,
// either is enough.
type Access struct {
	Username, Password string
	BearerToken        string
}

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
	access   Access
	v2       bool
	next     []planned
	always   []Fault
	before   map[Kind]func()
	requests []*Request
}

// planned is a fault for a number of requests to come.
type planned struct {
	left  int
	fault Fault
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
	address := options.Address
	if address == "" {
		address = "127.0.0.1:0"
	}
	identity := options.Identity
	if identity == nil && options.CA != nil {
		issued, err := options.CA.Server("127.0.0.1", "localhost")
		if err != nil {
			return nil, "", err
		}
		identity = &issued
	}
	inner, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
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

// SetAccess changes what clients have to show.
func (s *GitHTTP) SetAccess(access Access) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.access = access
}

// SetV2 switches protocol v2 on or off.
func (s *GitHTTP) SetV2(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.v2 = on
}

// FailNext lets the fault strike the next n requests that it is for, after those planned before.
func (s *GitHTTP) FailNext(n int, fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = append(s.next, planned{left: n, fault: fault})
}

// Always lets the fault strike every request that it is for and that no planned fault strikes.
func (s *GitHTTP) Always(fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always = append(s.always, fault)
}

// Heal forgets all faults. Requests that are being struck stay so.
func (s *GitHTTP) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next, s.always = nil, nil
}

// Before runs the function before each request of the kind is passed on to git: a ref that it moves before a
// Fetch has moved between listing and fetching. Nil takes it away.
func (s *GitHTTP) Before(kind Kind, run func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before[kind] = run
}

func (s *GitHTTP) serve(w http.ResponseWriter, r *http.Request) {
	s.handlers.Add(1)
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

// admit notes the request and decides what happens to it.
func (s *GitHTTP) admit(request *Request) (Fault, Access, bool, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, request)
	return s.fault(request.Kind), s.access, s.v2, s.before[request.Kind]
}

func (s *GitHTTP) fault(kind Kind) Fault {
	for i := range s.next {
		if s.next[i].left > 0 && s.next[i].fault.strikes(kind) {
			s.next[i].left--
			return s.next[i].fault
		}
	}
	for _, fault := range s.always {
		if fault.strikes(kind) {
			return fault
		}
	}
	return Fault{}
}

// Requests are all requests so far, in the order of their arrival.
func (s *GitHTTP) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Request, len(s.requests))
	for i, request := range s.requests {
		all[i] = *request
	}
	return all
}

// Count is the number of requests of these kinds so far; of all requests without a kind.
func (s *GitHTTP) Count(kinds ...Kind) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for _, request := range s.requests {
		if len(kinds) == 0 || slices.Contains(kinds, request.Kind) {
			count++
		}
	}
	return count
}

// BytesOut counts the bytes that the server has sent: headers and TLS included.
func (s *GitHTTP) BytesOut() int64 { return s.wire.out.Load() }

// BytesIn counts the bytes that the server has received.
func (s *GitHTTP) BytesIn() int64 { return s.wire.in.Load() }

// Connections counts the connections accepted so far.
func (s *GitHTTP) Connections() int { return int(s.wire.accepted.Load()) }

// Reset forgets the requests so far and sets all counters to zero. Faults stay.
func (s *GitHTTP) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
	s.wire.reset()
}

func (a Access) admits(r *http.Request) bool {
	if a == (Access{}) {
		return true
	}
	if name, password, ok := r.BasicAuth(); ok {
		return a.Username != "" && same(name, a.Username) && same(password, a.Password)
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && a.BearerToken != "" && same(token, a.BearerToken)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func (a Access) challenge(w http.ResponseWriter) {
	scheme := "Bearer"
	if a.Username != "" {
		scheme = "Basic"
	}
	w.Header().Set("WWW-Authenticate", scheme+` realm="upstream"`)
	http.Error(w, "authentication required", http.StatusUnauthorized)
}
