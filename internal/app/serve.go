package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/go-logr/logr"

	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/server"
)

// artifactServer serves what is stored, whether or not this process is the leader: during an outage of the API server
// nobody is, and consumers still need what there is. Readiness tells the leader from a standby.
type artifactServer struct {
	options  server.Options
	handler  http.Handler
	address  string
	listener net.Listener // bound early when the port is the system's choice
	serving  atomic.Bool
	log      logr.Logger
}

// newArtifactServer prepares the server. With port 0, the port is bound at once, because the advertised address needs
// its number.
func newArtifactServer(ctx context.Context, options *Options, reader storage.Reader, m *metrics, logger logr.Logger) (*artifactServer, error) {
	s := &artifactServer{address: options.StorageAddr, log: logger, options: server.Options{
		MaxConns:      options.Limits.ServerConns,
		MaxConnsPerIP: options.Limits.ServerConnsByIP,
		// A little less than the manager waits, so that a slow download does not look like a failed stop.
		ShutdownGrace: options.GracefulShutdown * 3 / 4,
		Observer: func(served server.Served) {
			m.served(served.Method, served.Status, served.Bytes, served.Duration)
			if served.Err != nil {
				logger.Error(served.Err, "an artifact could not be served")
			}
		},
	}}
	s.handler = server.New(reader, s.options)
	host, port, err := net.SplitHostPort(options.StorageAddr)
	if err != nil {
		return nil, fmt.Errorf("--storage-addr: %w", err)
	}
	if port == "0" {
		if err := s.listen(ctx); err != nil {
			return nil, err
		}
		_, port, _ = net.SplitHostPort(s.listener.Addr().String())
		options.StorageAddr = net.JoinHostPort(host, port)
	}
	return s, nil
}

func (s *artifactServer) listen(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("--storage-addr: %w", err)
	}
	s.listener = listener
	return nil
}

// NeedLeaderElection is false.
func (s *artifactServer) NeedLeaderElection() bool { return false }

// Start serves until ctx ends.
func (s *artifactServer) Start(ctx context.Context) error {
	if s.listener == nil {
		if err := s.listen(ctx); err != nil {
			return err
		}
	}
	s.log.Info("serving artifacts", "address", s.listener.Addr().String())
	s.serving.Store(true)
	defer s.serving.Store(false)
	httpServer := server.NewServer(s.address, s.handler, s.options)
	httpServer.ErrorLog = slog.NewLogLogger(logr.ToSlogHandler(s.log), slog.Level(-1))
	return server.Serve(ctx, httpServer, s.listener, s.options)
}

// ready is the readiness check of the server.
func (s *artifactServer) ready(*http.Request) error {
	if !s.serving.Load() {
		return errors.New("artifacts are not being served")
	}
	return nil
}
