package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// connections is how many clients ask a server at a time. Each keeps its connection.
const connections = 32

// clients are a number of clients that ask for one path again and again, as cheaply as they can: the server is measured.
type clients struct {
	address, path string
	size          int64
	done          atomic.Int64
}

// during runs work while the clients ask.
func (c *clients) during(ctx context.Context, work func() error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	failures := make(chan error, connections)
	var running sync.WaitGroup
	for range connections {
		running.Go(func() {
			if err := c.client(ctx); err != nil && ctx.Err() == nil {
				failures <- fmt.Errorf("GET %s: %w", c.path, err)
			}
		})
	}
	err := work()
	stop()
	running.Wait()
	close(failures)
	return errors.Join(err, <-failures)
}

func (c *clients) client(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	request := []byte("GET /" + c.path + " HTTP/1.1\r\nHost: bench\r\n\r\n")
	room := make([]byte, 256<<10)
	for ctx.Err() == nil {
		if _, err := conn.Write(request); err != nil {
			return err
		}
		if err := c.take(conn, room); err != nil {
			return err
		}
		c.done.Add(1)
	}
	return nil
}

// take reads one answer, which has to have the size.
func (c *clients) take(conn io.Reader, room []byte) error {
	have, header := 0, -1
	for header < 0 {
		n, err := conn.Read(room[have:])
		if err != nil {
			return err
		}
		have += n
		header = bytes.Index(room[:have], []byte("\r\n\r\n"))
	}
	length := []byte("\r\nContent-Length: " + strconv.FormatInt(c.size, 10) + "\r\n")
	if !bytes.HasPrefix(room, []byte("HTTP/1.1 200 ")) || !bytes.Contains(room[:header+2], length) {
		return fmt.Errorf("answer %q", room[:header])
	}
	for left := c.size - int64(have-header-len("\r\n\r\n")); left > 0; {
		n, err := conn.Read(room)
		if err != nil {
			return err
		}
		left -= int64(n)
	}
	return nil
}

// rate lets the clients ask for a while, and tells what a request took of the server's CPU, and of the time.
func (c *clients) rate(ctx context.Context, server *fileServer, window time.Duration) (u usage, err error) {
	err = c.during(ctx, func() error {
		time.Sleep(window / 4) // The first requests make connections and fill caches.
		before, err := cpuOf(server.pid)
		if err != nil {
			return err
		}
		began, done := time.Now(), c.done.Load()
		for n := 0; n < 50 && (n == 0 || c.done.Load() == done); n++ {
			time.Sleep(window) // A machine with much else to do takes longer for the first.
		}
		after, err := cpuOf(server.pid)
		if err != nil {
			return err
		}
		took, requests := time.Since(began), c.done.Load()-done
		if requests == 0 {
			return fmt.Errorf("%s answered nothing in %s", server.name, took.Round(time.Second))
		}
		u = usage{cpu: (after - before) / time.Duration(requests), wall: took / time.Duration(requests), peak: largest(server.pid)}
		return nil
	})
	return u, err
}
