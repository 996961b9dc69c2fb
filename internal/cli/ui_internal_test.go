package cli

import (
	"net"
	"slices"
	"testing"
)

// TestHostsOfAnAddress: as browsers name them, which leave out a port of 80.
func TestHostsOfAnAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string][]string{
		"127.0.0.1:9191": {"127.0.0.1:9191", "localhost:9191"}, "127.0.0.1:80": {"127.0.0.1:80", "localhost:80", "127.0.0.1", "localhost"},
		"[::1]:80": {"[::1]:80", "localhost:80", "[::1]", "localhost"},
	} {
		resolved, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if got := hostsOf(resolved); !slices.Equal(got, want) {
			t.Errorf("%s is %q, not %q", address, got, want)
		}
	}
}
