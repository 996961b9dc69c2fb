package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sluice.dev/sluice/internal/ui"
)

// uiCommand serves the web pages on this machine, to whoever has started it.
func uiCommand(b *base) *cobra.Command {
	var listen string
	var actions bool
	command := &cobra.Command{
		Use:   "ui",
		Short: "Show all in a browser, with your own rights, until it is interrupted",
		Example: `  sluice ui
  sluice ui --actions --listen 127.0.0.1:0`,
		Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := command.Flags()
	flags.StringVar(&listen, "listen", "127.0.0.1:9191", "Address of this machine that is listened on. Port 0 takes a free one.")
	flags.BoolVar(&actions, "actions", false, "Let people reconcile, suspend, resume and approve, as you.")
	return b.on(command, func(ctx context.Context, _ []string) error {
		listener, err := listenHere(ctx, listen)
		if err != nil {
			return err
		}
		pages, err := ui.New(ui.Options{
			Reader: &sight{b}, Kinds: uiKinds(), Hosts: hostsOf(listener.Addr()), Actions: actions, User: b.whoAsks(ctx),
			Logger: slog.New(slog.NewTextHandler(b.ErrOut, nil)), Now: time.Now, Random: rand.Reader,
		})
		if err != nil {
			_ = listener.Close()
			return fmt.Errorf("make the pages: %w", err)
		}
		fmt.Fprintf(b.Out, "http://%s%s\n", listener.Addr(), pages.Entrance())
		fmt.Fprintln(b.ErrOut, "Open this in a browser. It is good once. Ctrl-C ends it.")
		return serve(ctx, listener, pages)
	})
}

// listenHere listens on an address of this machine alone: the pages show what the user may read to whoever has their cookie.
func listenHere(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, usage("--listen: "+err.Error(), "it is ADDRESS:PORT, such as 127.0.0.1:9191")
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, usage("--listen "+address+" is not of this machine alone", "take 127.0.0.1, and reach it from elsewhere by ssh -L")
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, &CommandError{Code: ExitUnanswered, What: "listen on " + address, Why: err.Error(), Help: []string{"take another port with --listen"}}
	}
	return listener, nil
}

// hostsOf are the names under which a browser reaches the address.
func hostsOf(address net.Addr) []string {
	_, port, err := net.SplitHostPort(address.String())
	if err != nil {
		return nil
	}
	return []string{address.String(), "localhost:" + port}
}

const (
	// maxHeader is how large the header of a request may be, and headerTime how long it may take.
	maxHeader, headerTime = 16 << 10, 10 * time.Second
	idleTime              = 2 * time.Minute
	lastRequests          = 2 * time.Second
)

// serve serves until the context ends.
func serve(ctx context.Context, listener net.Listener, pages *ui.UI) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server := &http.Server{
		Handler: pages.Handler(), MaxHeaderBytes: maxHeader, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	go pages.Run(ctx)
	select {
	case err := <-ended:
		return &CommandError{Code: ExitUnanswered, What: "serve the pages", Why: err.Error()}
	case <-ctx.Done():
	}
	inTime, done := context.WithTimeout(context.WithoutCancel(ctx), lastRequests)
	defer done()
	if err := server.Shutdown(inTime); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return &CommandError{Code: ExitUnanswered, What: "end the pages", Why: err.Error()}
	}
	return nil
}

// uiKinds are our kinds as the pages know them.
func uiKinds() []ui.Kind {
	var all []ui.Kind
	for _, k := range kinds() {
		made := ui.Kind{GroupVersionKind: k.GroupVersionKind, Resource: k.resource, Page: pageOf(k)}
		for _, c := range k.columns {
			if !c.wide {
				made.Columns = append(made.Columns, ui.Column{Title: strings.ToLower(c.title), Value: func(obj *unstructured.Unstructured) string { return shorten(c.value(obj)) }})
			}
		}
		all = append(all, made)
	}
	return all
}

// pageOf is the page that the kind is listed on.
func pageOf(k kind) string {
	switch {
	case k.resource == kinds()[0].resource:
		return "installations"
	case k.isSource:
		return "sources"
	case strings.HasPrefix(k.Group, "packages."):
		return "packages"
	}
	return "modules"
}
