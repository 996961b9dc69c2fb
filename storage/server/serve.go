package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// NewServer makes an HTTP server with the options' limits. There is no write timeout for the whole answer: the handler
// made by New watches the progress of each.
func NewServer(addr string, handler http.Handler, options Options) *http.Server {
	options = options.withDefaults()
	return &http.Server{
		Addr:                         addr,
		Handler:                      handler,
		ReadHeaderTimeout:            options.ReadHeaderTimeout,
		IdleTimeout:                  options.IdleTimeout,
		MaxHeaderBytes:               options.MaxHeaderBytes,
		ErrorLog:                     options.ErrorLog,
		DisableGeneralOptionsHandler: true,
	}
}

// Serve limits the listener's connections, for which it needs the server's ConnState and ConnContext, and serves until the context ends.
// Then it accepts no more, lets running answers finish for the grace of the options, and cuts what is left. It closes
// the listener. Nil means that it was told to stop and nothing was cut.
func Serve(ctx context.Context, server *http.Server, listener net.Listener, options Options) error {
	options = options.withDefaults()
	limited := limit(listener, options)
	server.ConnState = limited.watch
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, placeKey{}, conn)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(limited) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve artifacts: %w", err)
	case <-ctx.Done():
	}
	err := stop(context.WithoutCancel(ctx), server, options.ShutdownGrace)
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("stop serving artifacts: %w", err)
	}
	return nil
}

func stop(ctx context.Context, server *http.Server, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	err := server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, server.Close())
	}
	return err
}
