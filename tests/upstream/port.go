package upstream

import (
	"context"
	"fmt"
	"net"
)

// Port is an open port, with TLS where it is asked for, that counts what passes. It is for servers that this
// package does not know.
type Port struct {
	wire *countingListener
	url  string
}

// Listen opens a port. Of the options it heeds Address, CA, Identity and ClientCA.
func Listen(ctx context.Context, options HTTPOptions) (*Port, error) {
	wire, scheme, err := listen(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return &Port{wire: wire, url: scheme + "://" + wire.Addr().String()}, nil
}

// Accept waits for the next connection.
func (p *Port) Accept() (net.Conn, error) { return p.wire.outer.Accept() }

// Close closes the port; connections stay.
func (p *Port) Close() error { return p.wire.Close() }

// Addr is the address of the port.
func (p *Port) Addr() net.Addr { return p.wire.Addr() }

// URL is scheme://host:port, without a slash at its end.
func (p *Port) URL() string { return p.url }

// BytesOut counts the bytes sent: headers and TLS included.
func (p *Port) BytesOut() int64 { return p.wire.out.Load() }

// BytesIn counts the bytes received.
func (p *Port) BytesIn() int64 { return p.wire.in.Load() }

// Connections counts the connections accepted so far.
func (p *Port) Connections() int { return int(p.wire.accepted.Load()) }

// Reset sets all counters to zero.
func (p *Port) Reset() { p.wire.reset() }
