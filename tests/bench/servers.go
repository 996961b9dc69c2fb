package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/storage/server"
)

// fileServer is a process that serves the same files as the others.
type fileServer struct {
	name, address string
	pid           int
	stop          func() error
}

// startSelf starts this program as a server, which says where it listens and ends with its input.
func startSelf(ctx context.Context, name string, j job) (*fileServer, error) {
	cmd, err := self(ctx, j)
	if err != nil {
		return nil, err
	}
	in, out, err := begin(cmd)
	if err != nil {
		return nil, err
	}
	s := &fileServer{name: name, pid: cmd.Process.Pid, stop: func() error { return errors.Join(in.Close(), cmd.Wait()) }}
	line, err := out.ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s does not start: %w", name, err), s.stop())
	}
	s.address = line[:len(line)-1]
	return s, nil
}

// nginxConfig is a file server as nginx's manual has it, for one user's folder.
const nginxConfig = `daemon off; pid %[1]s/pid; error_log %[1]s/errors;
worker_processes auto;
events { worker_connections 512; }
http {
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; etag on;
  client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
  server { listen %[2]s; root %[3]s; }
}
`

// startNginx starts nginx on a free port.
func startNginx(ctx context.Context, program, dir, files string) (*fileServer, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(nginxConfig, dir, address, files)
	if os.Geteuid() == 0 {
		text = "user root;\n" + text // Its workers read what this process wrote.
	}
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "-c", config, "-e", filepath.Join(dir, "errors"))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &fileServer{name: "nginx", address: address, pid: cmd.Process.Pid}
	s.stop = func() error { return errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait()) }
	for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(10 * time.Millisecond) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			return s, conn.Close()
		}
	}
	return nil, errors.Join(errors.New("nginx does not listen"), s.stop())
}

// serveFiles is the job of Go's own file server.
func serveFiles(ctx context.Context, j job) error {
	return serveHandler(ctx, http.FileServer(http.Dir(j.dir)))
}

// serveBare is the job of net/http alone: what it takes when the handler has everything in memory and decides nothing.
func serveBare(ctx context.Context, j job) error {
	bodies := map[string][]byte{}
	for _, size := range servedSizes {
		body, err := os.ReadFile(filepath.Join(j.dir, pathOf(size)))
		if err != nil {
			return err
		}
		bodies["/"+pathOf(size)] = body
	}
	return serveHandler(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := bodies[r.URL.Path]
		w.Header().Set("Content-Type", "application/gzip")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body) // Who has gone is told nothing.
	}))
}

func serveHandler(ctx context.Context, handler http.Handler) error {
	return untilInputEnds(ctx, func(ctx context.Context, listener net.Listener) error {
		files := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
		defer context.AfterFunc(ctx, func() { _ = files.Close() })()
		if err := files.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
}

// artifacts is the object that the files are artifacts of.
var artifacts = storage.Object{Kind: "bench", Namespace: "serve", Name: "files"}

// serveArtifacts is the job of ours: it stores the files of the folder, and serves them as the manager does.
func serveArtifacts(ctx context.Context, j job) (err error) {
	dir := filepath.Join(j.dir, "storage")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	store, err := local.Open(dir, local.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	for _, size := range servedSizes {
		if err := storeFile(ctx, store, j.dir, pathOf(size)); err != nil {
			return err
		}
	}
	return untilInputEnds(ctx, func(ctx context.Context, listener net.Listener) error {
		options := server.Options{Observer: observer()}
		return server.Serve(ctx, server.NewServer("", server.New(store, options), options), listener, options)
	})
}

func storeFile(ctx context.Context, store *local.Store, dir, name string) error {
	file, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	defer file.Close()
	staged, err := store.Stage(ctx, 0, func(w io.Writer) error {
		_, err := io.Copy(w, file)
		return err
	})
	if err != nil {
		return err
	}
	_, err = store.Publish(ctx, artifacts, staged, storage.Record{UID: "bench", Current: storage.Artifact{Path: name}})
	return err
}

// observer counts as the manager does.
func observer() func(server.Served) {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "requests"}, []string{"method", "code"})
	sent := prometheus.NewCounter(prometheus.CounterOpts{Name: "sent"})
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "took", Buckets: prometheus.ExponentialBucketsRange(0.0005, 60, 10)})
	return func(served server.Served) {
		requests.WithLabelValues(served.Method, strconv.Itoa(served.Status)).Inc()
		sent.Add(float64(served.Bytes))
		took.Observe(served.Duration.Seconds())
	}
}

// untilInputEnds serves on a free port, which it prints.
func untilInputEnds(ctx context.Context, serve func(context.Context, net.Listener) error) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // However it ends, nobody wants the server any more.
		stop()
	}()
	fmt.Println(listener.Addr())
	return serve(ctx, listener)
}
