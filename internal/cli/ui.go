package cli

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/ui"
)

// uiFlags are how the pages are served.
type uiFlags struct {
	listen, auth, certificate, key string
	hosts                          []string
	actions, behindProxy           bool
}

// How people say who they are.
const byToken, byHeader = "token", "header"

// garbage is how much memory waits to be used again, in percent of what is used: pages leave much of it behind, and much time.
const garbage = 50

// hearsLibraries has it told why a certificate that was renewed is not taken. There is one such log in a process.
var hearsLibraries sync.Once //nolint:gochecknoglobals // As the log is.

// uiCommand serves the web pages: on this machine to whoever has started it, or to everyone who logs in.
func uiCommand(b *base) *cobra.Command {
	var f uiFlags
	command := &cobra.Command{
		Use:   "ui",
		Short: "Show all in a browser, with the rights of whoever looks, until it is interrupted",
		Example: `  sluice ui
  sluice ui --actions --listen 127.0.0.1:0
  sluice ui --listen :8443 --auth token --host sluice.example.com --tls-cert tls.crt --tls-key tls.key`,
		Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := command.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:9191", "Address that is listened on; without --auth, one of this machine alone. Port 0 takes a free one.")
	flags.BoolVar(&f.actions, "actions", false, "Let people reconcile, suspend, resume and approve, in their own name.")
	flags.StringVar(&f.auth, "auth", "", "How others say who they are: 'token' asks for a bearer token, 'header' takes the one in Authorization. Without, the pages are yours alone.")
	flags.StringSliceVar(&f.hosts, "host", nil, "Name, and port if it is not the scheme's, that browsers reach this by; several by comma. With --auth alone.")
	flags.StringVar(&f.certificate, "tls-cert", "", "File with the certificate, for --auth. It is read anew when it changes.")
	flags.StringVar(&f.key, "tls-key", "", "File with the certificate's key.")
	flags.BoolVar(&f.behindProxy, "behind-proxy", false, "Serve HTTP, as a proxy before this talks TLS to browsers. With --auth alone.")
	return b.on(command, func(ctx context.Context, _ []string) error {
		if err := f.check(); err != nil {
			return err
		}
		var err error
		if b.session, err = b.lasting(b.scheme); err != nil {
			return err
		}
		var watched *certwatcher.CertWatcher
		if f.certificate != "" {
			hearsLibraries.Do(func() {
				ctrllog.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(b.ErrOut, &slog.HandlerOptions{Level: slog.LevelError})))
			})
			if watched, err = certwatcher.New(f.certificate, f.key); err != nil {
				return usage("--tls-cert, --tls-key: " + err.Error())
			}
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.listen)
		if err != nil {
			return &CommandError{Code: ExitUnanswered, What: "listen on " + f.listen, Why: err.Error(), Help: []string{"take another port with --listen"}}
		}
		options := ui.Options{
			Lister: &sight{base: b}, Kinds: uiKinds(), Actions: f.actions, Logger: slog.New(slog.NewTextHandler(b.ErrOut, nil)), Now: time.Now, Random: rand.Reader,
		}
		if f.auth == "" {
			options.Hosts, options.Person = hostsOf(listener.Addr()), &ui.Person{Name: b.whoAsks(ctx), Reader: &sight{base: b}}
		} else {
			options.Hosts, options.Login, options.ByHeader, options.Encrypted = f.hosts, b.login, f.auth == byHeader, !f.behindProxy
		}
		pages, err := ui.New(options)
		if err != nil {
			_ = listener.Close()
			return fmt.Errorf("make the pages: %w", err)
		}
		if f.auth == "" {
			fmt.Fprintf(b.Out, "http://%s%s\n", listener.Addr(), pages.Entrance())
			fmt.Fprintln(b.ErrOut, "Open this in a browser. It is good once. Ctrl-C ends it.")
		} else {
			fmt.Fprintf(b.Out, "listening on %s\n", listener.Addr())
		}
		return serve(ctx, listener, pages, watched)
	})
}

// check says what does not go together. Without a login, the pages show what the user may read to whoever reaches them.
func (f *uiFlags) check() error {
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return usage("--listen: "+err.Error(), "it is ADDRESS:PORT, such as 127.0.0.1:9191")
	}
	alone := len(f.hosts) == 0 && f.certificate == "" && f.key == "" && !f.behindProxy
	ip := net.ParseIP(host)
	switch {
	case f.auth == "" && (ip == nil || !ip.IsLoopback()):
		return usage("--listen "+f.listen+" is not of this machine alone", "take 127.0.0.1, and reach it from elsewhere by ssh -L", "or let people log in with --auth")
	case f.auth == "" && !alone:
		return usage("--host, --tls-cert, --tls-key and --behind-proxy are for --auth", "without it, the pages are yours alone, on this machine")
	case f.auth == "":
		return nil
	case f.auth != byToken && f.auth != byHeader:
		return usage("--auth "+f.auth+" is unknown", "it is "+byToken+" or "+byHeader)
	case len(f.hosts) == 0:
		return usage("--auth needs --host", "name what browsers reach this by, so that no other name that leads here is taken for it")
	case f.behindProxy == (f.certificate != "" || f.key != ""), (f.certificate == "") != (f.key == ""):
		return usage("--auth needs TLS", "give --tls-cert and --tls-key, or --behind-proxy where a proxy talks TLS to browsers")
	}
	return nil
}

// hostsOf are the names under which a browser reaches the address.
func hostsOf(address net.Addr) []string {
	_, port, err := net.SplitHostPort(address.String())
	if err != nil {
		return nil
	}
	names := []string{address.String(), "localhost:" + port}
	if port == "80" {
		// Browsers leave it out.
		names = append(names, strings.TrimSuffix(address.String(), ":80"), "localhost")
	}
	return names
}

const (
	// maxHeader is how large the header of a request may be, and headerTime how long it may take.
	maxHeader, headerTime = 16 << 10, 10 * time.Second
	idleTime              = 2 * time.Minute
	lastRequests          = 2 * time.Second
)

// serve serves until the context ends.
func serve(ctx context.Context, listener net.Listener, pages *ui.UI, watched *certwatcher.CertWatcher) error {
	defer debug.SetGCPercent(debug.SetGCPercent(garbage))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server := &http.Server{
		Handler: pages.Handler(), MaxHeaderBytes: maxHeader, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	ended := make(chan error, 2)
	begin := func() { ended <- server.Serve(listener) }
	if watched != nil {
		server.TLSConfig = &tls.Config{GetCertificate: watched.GetCertificate, MinVersion: tls.VersionTLS12}
		go func() {
			if err := watched.Start(ctx); err != nil {
				ended <- err
			}
		}()
		begin = func() { ended <- server.ServeTLS(listener, "", "") }
	}
	go begin()
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
		if k.Kind == modulesv1.ModuleKind {
			made.Columns = append(made.Columns, ui.Column{Title: "module", Value: (*unstructured.Unstructured).GetName})
		}
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
