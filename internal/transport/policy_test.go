package transport

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// TestAddressesOfTheMachineAreDenied asks the policy alone: nothing is sent to what it would let pass by mistake.
func TestAddressesOfTheMachineAreDenied(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason    string
		addresses string
		// allowed is what --egress-allow-loopback makes of it.
		allowed bool
	}{
		"LinkLocal": {"most clouds answer there", "169.254.169.254 ::ffff:169.254.169.254 64:ff9b::169.254.169.254 fe80::1 fe80::1%lo", false},
		"Alibaba":   {"its metadata service", "100.100.100.200 ::ffff:100.100.100.200 64:ff9b::6464:64c8", false},
		"Azure":     {"its host answers for the node", "168.63.129.16 ::ffff:168.63.129.16 64:ff9b::a83f:8110", false},
		"Google":    {"its metadata service over IPv6", "fd20:ce::254", false},
		"Amazon":    {"its metadata service over IPv6", "fd00:ec2::254", false},
		"Loopback":  {"the process's own neighbours", "127.0.0.1 127.8.8.8 ::1 ::ffff:127.0.0.1 64:ff9b::7f00:1", true},
		"Nowhere":   {"the kernel takes it for loopback", "0.0.0.0 :: ::ffff:0.0.0.0", true},
		"Elsewhere": {"upstreams are here, and on private networks", "192.0.2.1 10.0.0.1 100.100.100.201 168.63.129.17 fd20:ce::253 2001:db8::1", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for address := range strings.FieldsSeq(tc.addresses) {
				closed, open := newPolicy(Options{}), newPolicy(Options{AllowLoopback: true})
				to := netip.AddrPortFrom(netip.MustParseAddr(address), 80).String()
				if err := closed.control(t.Context(), "tcp", to, nil); (name != "Elsewhere") != errors.Is(err, ErrDenied) {
					t.Errorf("%s: %s: got %v", tc.reason, address, err)
				}
				if err := open.control(t.Context(), "tcp", to, nil); tc.allowed == errors.Is(err, ErrDenied) {
					t.Errorf("%s: %s with loopback allowed: got %v", tc.reason, address, err)
				}
			}
		})
	}
}

// TestDeniedLoopbackNamesItsFlag: of all that is denied, this alone an operator can allow.
func TestDeniedLoopbackNamesItsFlag(t *testing.T) {
	t.Parallel()
	const flag = "--egress-allow-loopback"
	if err := newPolicy(Options{}).checkHost("127.0.0.1"); err == nil || !strings.Contains(err.Error(), flag) {
		t.Errorf("got %v", err)
	}
	if err := newPolicy(Options{}).checkHost("169.254.169.254"); err == nil || strings.Contains(err.Error(), flag) {
		t.Errorf("got %v", err)
	}
	listed := Options{AllowLoopback: true, DeniedPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	if err := newPolicy(listed).checkHost("127.0.0.1"); !errors.Is(err, ErrDenied) || strings.Contains(err.Error(), flag) {
		t.Errorf("what --egress-deny lists stays denied: got %v", err)
	}
}
