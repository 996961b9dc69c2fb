package transport

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// ErrDenied says that an address is not dialled by policy.
var ErrDenied = errors.New("address is denied by the dial policy")

// nat64 begins the IPv6 addresses under which a gateway reaches IPv4 addresses; the last four bytes are one (RFC 6052).
const nat64 = "\x00\x64\xff\x9b\x00\x00\x00\x00\x00\x00\x00\x00"

// policy decides about resolved addresses, so that no name and no spelling of an address gets round it.
type policy struct {
	denied        []netip.Prefix
	allowLoopback bool
}

func newPolicy(options Options) policy {
	return policy{denied: append(metadata(), options.DeniedPrefixes...), allowLoopback: options.AllowLoopback}
}

// metadata are the ranges of autoconfigured neighbours, and the addresses at which clouds tell a node who it is: nothing
// there is an upstream.
func metadata() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("169.254.0.0/16"),
		netip.MustParsePrefix("fe80::/10"),
		netip.MustParsePrefix("fd00:ec2::/32"),      // EC2 over IPv6
		netip.MustParsePrefix("fd20:ce::254/128"),   // Google over IPv6
		netip.MustParsePrefix("100.100.100.200/32"), // Alibaba
		netip.MustParsePrefix("168.63.129.16/32"),   // the host of Azure's nodes
	}
}

// isLoopback tells whether the address leads to this machine: the kernel takes 0.0.0.0 and :: for loopback.
func isLoopback(address netip.Addr) bool { return address.IsLoopback() || address.IsUnspecified() }

// control is net.Dialer's hook between resolution and connect.
func (p policy) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	resolved, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("dial %s: %w", Printable(address), ErrDenied)
	}
	return p.check(resolved.Addr())
}

func (p policy) check(address netip.Addr) error {
	plain := address.WithZone("").Unmap()
	if bytes := plain.As16(); plain.Is6() && string(bytes[:12]) == nat64 {
		plain = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	contains := func(prefix netip.Prefix) bool { return prefix.Contains(plain) }
	switch {
	case slices.ContainsFunc(p.denied, contains):
		return fmt.Errorf("dial %s: %w", plain, ErrDenied)
	case isLoopback(plain) && !p.allowLoopback:
		return fmt.Errorf("dial %s: %w: loopback needs --egress-allow-loopback", plain, ErrDenied)
	}
	return nil
}

// checkHost applies the policy to a host that is written as an address. A proxy resolves names out of our sight,
// but it need not be asked for an address that we would not dial.
func (p policy) checkHost(host string) error {
	address, err := netip.ParseAddr(host)
	if err != nil {
		return nil //nolint:nilerr // A name: judged when it is resolved.
	}
	return p.check(address)
}
