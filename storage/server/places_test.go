package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/server"
)

// TestSlowClientsDoNotKeepOthersOut takes all places from several addresses, the way that an attacker would.
func TestSlowClientsDoNotKeepOthersOut(t *testing.T) {
	t.Parallel()
	const addresses, each, attempts = 4, 8, 3
	store, artifact := bigStore(t, 32<<20)
	for name, tc := range map[string]struct {
		reason  string
		request string
		// answer is the beginning of what the slow client is told, when it is told anything.
		answer string
	}{
		"Idle":     {"They keep their connections after a request.", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 "},
		"Silent":   {"They send nothing.", "", ""},
		"Header":   {"They never end their header.", "GET / HTTP/1.1\r\nHost: a\r\nX-", ""},
		"Second":   {"They never end the header of their second request.", "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nX-", "HTTP/1.1 200 "},
		"Body":     {"They announce a body that never comes.", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n", "HTTP/1.1 405 "},
		"Download": {"They do not read what they have asked for.", "GET /" + artifact.Path + " HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Log(tc.reason)
			running := startSmall(t, store, server.Options{
				MaxConns: addresses * each, MaxConnsPerIP: each,
				ReadHeaderTimeout: time.Hour, IdleTimeout: time.Hour, ProgressTimeout: time.Hour,
			})
			for i := range addresses * each {
				slow := dialFrom(t, running.addr, 2+i/each)
				if _, err := io.WriteString(slow, tc.request); err != nil {
					t.Fatal(err)
				}
				answer := make([]byte, len(tc.answer))
				if _, err := io.ReadFull(slow, answer); err != nil || string(answer) != tc.answer {
					t.Fatalf("A slow client: got %q, %v", answer, err)
				}
			}
			// Without room each of these would wait for an hour.
			for range attempts {
				greeted(t, dialFrom(t, running.addr, 1))
			}
		})
	}
}

// dialFrom connects from a loopback address of its own.
func dialFrom(t *testing.T, addr string, last int) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(last))}}
	conn, err := dialer.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatalf("Dial from 127.0.0.%d: %v", last, err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// gated makes who opens a body wait, as the hashing of a large one does.
type gated struct {
	storage.Reader
	entered, gate chan struct{}
}

func (g gated) Open(ctx context.Context, p string) (storage.Body, error) {
	close(g.entered)
	<-g.gate
	return g.Reader.Open(ctx, p)
}

func TestWhoIsServedKeepsItsPlace(t *testing.T) {
	t.Parallel()
	store, artifact := bigStore(t, 1<<20)
	gate, entered := make(chan struct{}), make(chan struct{})
	running := start(t, gated{Reader: store, entered: entered, gate: gate}, server.Options{MaxConns: 1})
	first := dial(t, running.addr)
	if _, err := fmt.Fprintf(first, "GET /%s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", artifact.Path); err != nil {
		t.Fatal(err)
	}
	<-entered
	waiting := dial(t, running.addr)
	if _, err := io.WriteString(waiting, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answered := make(chan string, 1)
	go func() {
		reply, _ := io.ReadAll(waiting)
		answered <- string(reply)
	}()
	if len(answered) > 0 {
		t.Fatalf("The second client was answered beside the first: %q", <-answered)
	}
	close(gate)
	if reply, err := io.ReadAll(first); int64(len(reply)) < artifact.Size || err != nil {
		t.Errorf("The first client got %d bytes, %v", len(reply), err)
	}
	if reply := <-answered; !strings.HasPrefix(reply, "HTTP/1.1 200 ") {
		t.Errorf("The second client: got %q", reply)
	}
}

// stuckDisk gives files that, once it is stuck, nobody can read until it is mended.
type stuckDisk struct {
	onlyFiles
	stuck           atomic.Bool
	noticed         sync.Once
	awaited, mended chan struct{}
}

type stuckFile struct {
	onlyFile
	disk *stuckDisk
}

func (d *stuckDisk) Open(ctx context.Context, p string) (storage.Body, error) {
	body, err := d.onlyFiles.Open(ctx, p)
	if err != nil {
		return nil, err
	}
	file, ok := body.(onlyFile)
	if !ok {
		return nil, fmt.Errorf("a %T is no file", body)
	}
	return stuckFile{file, d}, nil
}

// Fd implements file. The server asks for it each time that it has the kernel send.
func (f stuckFile) Fd() uintptr {
	if f.disk.stuck.Load() {
		f.disk.noticed.Do(func() { close(f.disk.awaited) })
		<-f.disk.mended
	}
	return f.file.Fd()
}

// TestTheTimeOfTheDiskIsNotTheClients stops the clock until the disk is waited for, which then takes an hour.
func TestTheTimeOfTheDiskIsNotTheClients(t *testing.T) {
	t.Parallel()
	store, artifact := bigStore(t, 4<<20)
	disk := &stuckDisk{onlyFiles: onlyFiles{store}, awaited: make(chan struct{}), mended: make(chan struct{})}
	var passed atomic.Int64
	began := time.Now()
	running := startSmall(t, disk, server.Options{
		MaxConns: 1, ProgressTimeout: time.Hour, Now: func() time.Time { return began.Add(time.Duration(passed.Load())) },
	})
	first := dial(t, running.addr)
	if _, err := fmt.Fprintf(first, "GET /%s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", artifact.Path); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // The server waits for the client, and then the client for the disk.
	disk.stuck.Store(true)
	got := make(chan int64, 1)
	go func() {
		n, _ := io.Copy(io.Discard, first) // Its length tells.
		got <- n
	}()
	<-disk.awaited
	passed.Store(int64(time.Hour))
	second := dialFrom(t, running.addr, 2)
	time.Sleep(100 * time.Millisecond) // It asks for the place.
	close(disk.mended)
	if n := <-got; n < artifact.Size {
		t.Errorf("The first client got %d bytes of %d", n, artifact.Size)
	}
	greeted(t, second)
}
