package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/storage/server"
)

// live is a running server.
type live struct {
	addr    string
	stop    context.CancelFunc
	stopped chan error
}

func start(t *testing.T, reader storage.Reader, options server.Options) *live {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("Listen: %v", err)
	}
	return serve(t, reader, options, listener)
}

func serve(t *testing.T, reader storage.Reader, options server.Options, listener net.Listener) *live {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	running := &live{addr: listener.Addr().String(), stop: stop, stopped: make(chan error, 1)}
	go func() {
		running.stopped <- server.Serve(ctx, server.NewServer("", server.New(reader, options), options), listener, options)
		close(running.stopped)
	}()
	t.Cleanup(func() {
		stop()
		for range running.stopped { // The test has looked at how it ended if it wanted to know.
		}
	})
	return running
}

func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	dialer := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		controlErr := raw.Control(func(fd uintptr) {
			// A small window, so that a client which does not read is noticed early.
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 16<<10)
		})
		return errors.Join(controlErr, err)
	}}
	conn, err := dialer.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return asTCP(t, conn)
}

func asTCP(t *testing.T, conn net.Conn) *net.TCPConn {
	t.Helper()
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		t.Fatalf("A TCP connection is a %T", conn)
	}
	return tcp
}

// smallBuffers makes the server's send buffers small.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil, fmt.Errorf("a %T is no TCP connection", conn)
	}
	return tcp, tcp.SetWriteBuffer(16 << 10)
}

func bigStore(t *testing.T, size int) (*local.Store, storage.Artifact) {
	t.Helper()
	store, err := local.Open(t.TempDir(), local.Options{})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store, publish(t, store, "big.tar.gz", strings.Repeat("0123456789abcdef", size/16))
}

func startSmall(t *testing.T, reader storage.Reader, options server.Options) *live {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("Listen: %v", err)
	}
	return serve(t, reader, options, smallBuffers{listener})
}

func TestAReaderThatStopsIsCut(t *testing.T) {
	t.Parallel()
	store, artifact := bigStore(t, 32<<20)
	ended := make(chan server.Served, 1)
	running := startSmall(t, store, server.Options{
		ProgressTimeout: 200 * time.Millisecond,
		Observer:        func(served server.Served) { ended <- served },
	})
	conn := dial(t, running.addr)
	if _, err := io.WriteString(conn, "GET /"+artifact.Path+" HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	// Nothing is read; the test would not end if the server waited for it.
	if served := <-ended; served.Bytes >= artifact.Size {
		t.Errorf("The server sent all %d bytes to a client that reads none", served.Bytes)
	}
	if n, err := io.Copy(io.Discard, conn); err == nil && n >= artifact.Size {
		t.Error("The connection stayed open to the end of the body")
	}
}

func TestASlowReaderThatMovesOnIsNotCut(t *testing.T) {
	t.Parallel()
	const size = 3 << 20
	store, artifact := bigStore(t, size)
	// A machine with much else to do may stop this process for longer than the timeout, which is then a reader that
	// stopped. A longer timeout tells; one that counts from the start of a download cuts it however long it is.
	var err error
	for timeout := 800 * time.Millisecond; timeout < time.Minute; timeout *= 3 {
		if err = downloadSlowly(t, startSmall(t, store, server.Options{ProgressTimeout: timeout}), artifact, timeout*3/2); err == nil {
			return
		}
		t.Logf("with a timeout of %s: %v", timeout, err)
	}
	t.Error(err)
}

// downloadSlowly takes at least this long to read the artifact, at an even pace.
func downloadSlowly(t *testing.T, running *live, artifact storage.Artifact, least time.Duration) error {
	t.Helper()
	conn := dial(t, running.addr)
	if _, err := io.WriteString(conn, "GET /"+artifact.Path+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); err != nil {
		return err
	}
	var got bytes.Buffer
	began := time.Now()
	pace := time.NewTicker(least / time.Duration(artifact.Size/chunkOfTheTest))
	defer pace.Stop()
	for {
		<-pace.C
		_, err := io.CopyN(&got, conn, chunkOfTheTest)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("after %d bytes: %w", got.Len(), err)
		}
	}
	_, body, _ := bytes.Cut(got.Bytes(), []byte("\r\n\r\n"))
	if digest.FromBytes(body) != artifact.Digest {
		return fmt.Errorf("the download of %d bytes ended with %d", artifact.Size, len(body))
	}
	if took := time.Since(began); took < least {
		t.Errorf("The download took %s, which proves nothing", took)
	}
	return nil
}

const chunkOfTheTest = 64 << 10

// slowDisk is a body that takes long to give what is behind its middle.
type slowDisk struct {
	inMemory
	pause time.Duration
}

func (s slowDisk) Open(context.Context, string) (storage.Body, error) { return s, nil }

func (s slowDisk) Read(p []byte) (int, error) {
	if at := s.Size() - int64(s.Len()); at >= s.Size()/2 && at < s.Size()/2+int64(len(p)) {
		time.Sleep(s.pause)
	}
	return s.inMemory.Read(p)
}

func TestAClientHasNoDeadlineWhileItWaits(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("0123456789abcdef", 1<<16)
	artifact := storage.Artifact{Path: podinfo.File("a.tar.gz"), Digest: digest.FromString(body), Size: int64(len(body))}
	running := startSmall(t, slowDisk{inMemory{strings.NewReader(body), artifact}, 6 * time.Second},
		server.Options{ProgressTimeout: 5 * time.Second})
	conn := dial(t, running.addr)
	if _, err := io.WriteString(conn, "GET /"+artifact.Path+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // The server waits for the client, and then the client for the server.
	got, err := io.ReadAll(conn)
	if _, got, _ := bytes.Cut(got, []byte("\r\n\r\n")); err != nil || string(got) != body {
		t.Errorf("got %d bytes of %d, %v", len(got), len(body), err)
	}
}

func TestAClientThatSendsNoRequestIsCut(t *testing.T) {
	t.Parallel()
	store, artifact := bigStore(t, 1<<10)
	running := start(t, store, server.Options{ReadHeaderTimeout: 100 * time.Millisecond, IdleTimeout: 100 * time.Millisecond})
	for name, request := range map[string]string{
		"nothing":         "",
		"half a header":   "GET / HTTP/1.1\r\nHost: a\r\nX-",
		"no body":         "POST /" + artifact.Path + " HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n",
		"a body on GET":   "GET /" + artifact.Path + " HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf",
		"an idle client":  "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"a chunked start": "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, running.addr)
			if _, err := io.WriteString(conn, request); err != nil {
				t.Fatal(err)
			}
			// Copying ends when the server closes; a server that waited would hang the test.
			if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("The connection ended with %v", err)
			}
		})
	}
}

func TestHeadersAreBounded(t *testing.T) {
	t.Parallel()
	store, _ := bigStore(t, 1<<10)
	running := start(t, store, server.Options{})
	conn := dial(t, running.addr)
	go func() {
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nX-Large: "+strings.Repeat("x", 1<<20)+"\r\n\r\n")
	}()
	reply := make([]byte, 64)
	n, err := conn.Read(reply)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal(err)
	}
	if n > 0 && !strings.HasPrefix(string(reply), "HTTP/1.1 431 ") {
		t.Errorf("A header of 1 MiB: got %q", reply[:n])
	}
}

func TestOneClientTakesOnlyItsShare(t *testing.T) {
	t.Parallel()
	store, _ := bigStore(t, 1<<10)
	running := start(t, store, server.Options{MaxConns: 10, MaxConnsPerIP: 2, IdleTimeout: time.Hour})
	held := []*net.TCPConn{dial(t, running.addr), dial(t, running.addr)}
	for _, conn := range held {
		greeted(t, conn)
	}
	if n, err := dial(t, running.addr).Read(make([]byte, 1)); err == nil {
		t.Errorf("The third connection of a client that may have two: read %d bytes", n)
	}
	// Another client of the same machine has another loopback address.
	other := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	conn, err := other.DialContext(t.Context(), "tcp", running.addr)
	if err != nil {
		t.Fatalf("Dial from another address: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	greeted(t, conn)

	// A place is free again once its connection has ended.
	if _, err := io.WriteString(held[0], "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, held[0]); err != nil {
		t.Fatal(err)
	}
	for !tryGreeting(t, running.addr) {
		if t.Context().Err() != nil {
			t.Fatal("The place was never given back")
		}
	}
}

// tryGreeting tells whether a new connection is answered.
func tryGreeting(t *testing.T, addr string) bool {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	reply, _ := io.ReadAll(conn)
	return strings.HasPrefix(string(reply), "HTTP/1.1 200 ")
}

// greeted asks for the root and keeps the connection.
func greeted(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, len("HTTP/1.1 200 "))
	if _, err := io.ReadFull(conn, reply); err != nil || string(reply) != "HTTP/1.1 200 " {
		t.Fatalf("GET /: got %q, %v", reply, err)
	}
}

func TestStoppingLetsDownloadsFinish(t *testing.T) {
	t.Parallel()
	store, artifact := bigStore(t, 4<<20)
	running := startSmall(t, store, server.Options{ShutdownGrace: time.Minute})
	conn := dial(t, running.addr)
	greeting := make([]byte, 100)
	if _, err := io.WriteString(conn, "GET /"+artifact.Path+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, greeting); err != nil {
		t.Fatal(err)
	}
	running.stop()
	for { // From now on nobody else is let in.
		late, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", running.addr)
		if err != nil {
			break
		}
		_ = late.Close()
	}
	rest, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := bytes.Cut(slices.Concat(greeting, rest), []byte("\r\n\r\n"))
	if digest.FromBytes(body) != artifact.Digest {
		t.Errorf("The running download of %d bytes ended with %d", artifact.Size, len(body))
	}
	if err := <-running.stopped; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestStoppingCutsWhoTakesTooLong(t *testing.T) {
	t.Parallel()
	store, artifact := bigStore(t, 32<<20)
	running := startSmall(t, store, server.Options{ShutdownGrace: 50 * time.Millisecond, ProgressTimeout: time.Hour})
	conn := dial(t, running.addr)
	if _, err := io.WriteString(conn, "GET /"+artifact.Path+" HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	running.stop()
	if err := <-running.stopped; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Serve: want %v, got %v", context.DeadlineExceeded, err)
	}
}

// onlyFiles gives bodies that nobody reads but the kernel.
type onlyFiles struct{ storage.Reader }

type onlyFile struct {
	storage.Body
	file
}

type file interface{ Fd() uintptr }

func (o onlyFiles) Open(ctx context.Context, p string) (storage.Body, error) {
	body, err := o.Reader.Open(ctx, p)
	if err != nil {
		return nil, err
	}
	sent, ok := body.(file)
	if !ok {
		return nil, fmt.Errorf("a %T is no file", body)
	}
	return onlyFile{body, sent}, nil
}

func (onlyFile) Read([]byte) (int, error) { return 0, errors.New("the server reads the body") }

func TestBodiesAreSentByTheKernel(t *testing.T) {
	t.Parallel()
	store, artifact := bigStore(t, 1<<20)
	running := start(t, onlyFiles{store}, server.Options{})
	if status, text := rawGet(t, running.addr, "/"+artifact.Path); status != http.StatusOK || digest.FromString(text) != artifact.Digest {
		t.Errorf("GET: %d with %d bytes", status, len(text))
	}
}

// TestARangeIsSentByTheKernelFromItsStart asks twice on one connection: what the first answer leaves must not be in the second.
func TestARangeIsSentByTheKernelFromItsStart(t *testing.T) {
	t.Parallel()
	store, artifact := bigStore(t, 1<<20)
	running := start(t, store, server.Options{})
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	t.Cleanup(client.CloseIdleConnections)
	want := strings.Repeat("0123456789abcdef", (1<<20)/16)
	for _, at := range []struct {
		asked string
		want  string
	}{{"", want}, {"bytes=70001-", want[70001:]}, {"bytes=5-9", want[5:10]}, {"", want}, {"bytes=-3", want[len(want)-3:]}} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+running.addr+"/"+artifact.Path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if at.asked != "" {
			request.Header.Set("Range", at.asked)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil || string(body) != at.want {
			t.Errorf("%q: got %d bytes, want %d, %v", at.asked, len(body), len(at.want), err)
		}
	}
}

// unsendable is a body whose file is none that the kernel sends.
type unsendable struct {
	inMemory
	folder *os.File
}

func (u unsendable) Open(context.Context, string) (storage.Body, error) { return u, nil }
func (u unsendable) Fd() uintptr                                        { return u.folder.Fd() }

func TestABodyThatTheKernelDoesNotSendIsCopied(t *testing.T) {
	t.Parallel()
	folder, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Close() })
	const body = "hello world"
	artifact := storage.Artifact{Path: podinfo.File("a.tar.gz"), Digest: digest.FromString(body), Size: int64(len(body))}
	running := start(t, unsendable{inMemory{strings.NewReader(body), artifact}, folder}, server.Options{})
	if status, text := rawGet(t, running.addr, "/"+artifact.Path); status != http.StatusOK || text != body {
		t.Errorf("got %d, %q", status, text)
	}
}

// torn is a body whose file the kernel sends once.
type torn struct {
	storage.Reader
	rest *os.File
}

type tornFile struct {
	storage.Body
	files chan uintptr
}

func (o torn) Open(ctx context.Context, p string) (storage.Body, error) {
	body, err := o.Reader.Open(ctx, p)
	if err != nil {
		return nil, err
	}
	files := make(chan uintptr, 2)
	if sent, ok := body.(file); ok {
		files <- sent.Fd()
	}
	files <- o.rest.Fd()
	return tornFile{body, files}, nil
}

func (f tornFile) Fd() uintptr { return <-f.files }

// TestWhatTheKernelCannotSendIsCopied: who reads it learns of the disk's errors.
func TestWhatTheKernelCannotSendIsCopied(t *testing.T) {
	t.Parallel()
	store, artifact := bigStore(t, 4<<20)
	folder, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Close() })
	running := startSmall(t, torn{store, folder}, server.Options{})
	if status, text := rawGet(t, running.addr, "/"+artifact.Path); status != http.StatusOK || digest.FromString(text) != artifact.Digest {
		t.Errorf("GET: %d with %d bytes", status, len(text))
	}
}

func TestABodyWithoutAFileIsCopied(t *testing.T) {
	t.Parallel()
	const body = "hello world"
	artifact := storage.Artifact{Path: podinfo.File("a.tar.gz"), Digest: digest.FromString(body), Size: int64(len(body))}
	running := start(t, inMemory{Reader: strings.NewReader(body), artifact: artifact}, server.Options{})
	if status, text := rawGet(t, running.addr, "/"+artifact.Path); status != http.StatusOK || text != body {
		t.Errorf("got %d, %q", status, text)
	}
}

type inMemory struct {
	*strings.Reader
	artifact storage.Artifact
}

func (m inMemory) Open(context.Context, string) (storage.Body, error) { return m, nil }
func (m inMemory) Stat() storage.Artifact                             { return m.artifact }
func (m inMemory) Close() error                                       { return nil }
