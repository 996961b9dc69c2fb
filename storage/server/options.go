// Package server serves artifacts over HTTP by their path, whole or in ranges, and never lists anything.
// It does not know where bodies come from: it asks a storage.Reader.
package server

import (
	"cmp"
	"log" //nolint:depguard // net/http takes no other logger.
	"time"
)

// Options tune the server. The zero value works.
type Options struct {
	// ReadHeaderTimeout is how long a client may take to send a request. Zero means 5 s.
	ReadHeaderTimeout time.Duration
	// IdleTimeout is how long a connection may wait for its next request. Zero means 30 s.
	IdleTimeout time.Duration
	// ProgressTimeout is how long a client may take to accept the next 64 KiB of a body. A download that moves on at
	// 64 KiB in that time is never cut, however long it takes in all. Zero means 30 s.
	ProgressTimeout time.Duration
	// ShutdownGrace is how long Serve lets running downloads finish when it is told to stop. Zero means 10 s.
	ShutdownGrace time.Duration
	// MaxHeaderBytes bounds a request's header, in bytes; net/http allows 4 KiB more. Zero means 8 KiB.
	MaxHeaderBytes int
	// MaxConns bounds the open connections. A further one takes the place of the connection that has waited longest for
	// its next request, or for its client to accept 64 KiB for more than 1 s; when all are busy, it waits. Zero means 1024.
	MaxConns int
	// MaxConnsPerIP bounds the open connections of one client address. Further ones are closed at once. Zero means 256.
	MaxConnsPerIP int
	// Observer is told about each request when it has ended. Nil means nobody is told.
	Observer func(Served)
	// ErrorLog takes what net/http has to say about connections. Nil means the standard logger.
	ErrorLog *log.Logger
	// Now is the clock; nil means the system's.
	Now func() time.Time
}

// Served is one request that has ended. It is meant for metrics and logs.
type Served struct {
	// Method is GET, HEAD, or OTHER for anything else.
	Method string
	// Status is the HTTP status that was answered.
	Status int
	// Bytes counts what was sent of the body.
	Bytes int64
	// Duration is the time from the end of the request's header to the end of the answer.
	Duration time.Duration
	// Err is why the storage could not serve the path, other than that there is nothing under it. It names damage too.
	Err error
}

func (o Options) withDefaults() Options {
	o.ReadHeaderTimeout = cmp.Or(o.ReadHeaderTimeout, 5*time.Second)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 30*time.Second)
	o.ProgressTimeout = cmp.Or(o.ProgressTimeout, 30*time.Second)
	o.ShutdownGrace = cmp.Or(o.ShutdownGrace, 10*time.Second)
	o.MaxHeaderBytes = cmp.Or(o.MaxHeaderBytes, 8<<10)
	o.MaxConns = cmp.Or(o.MaxConns, 1024)
	o.MaxConnsPerIP = cmp.Or(o.MaxConnsPerIP, 256)
	if o.Observer == nil {
		o.Observer = func(Served) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
