package server

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

func TestWhoMakesRoom(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	ago := func(by time.Duration) time.Time { return start.Add(-by) }
	for name, tc := range map[string]struct {
		reason string
		open   []*place
		want   int // -1 is nobody
	}{
		"LongestIdle": {"Of those that wait for a request the longest goes.", []*place{{since: ago(1)}, {since: ago(3)}, {since: ago(2)}}, 1},
		"Busy":        {"Who waits for us stays.", []*place{{}, {since: ago(1)}, {}}, 1},
		"AllBusy":     {"Nobody goes when all wait for us.", []*place{{}, {}, {}}, -1},
		"Sending":     {"Who has just been sent bytes stays.", []*place{{since: ago(stalledAfter), sending: true}, {}, {}}, -1},
		"Stalled":     {"Who does not accept bytes goes.", []*place{{}, {since: ago(stalledAfter + 1), sending: true}, {}}, 1},
		"Either":      {"The longest wait counts, whatever it is for.", []*place{{since: ago(time.Minute)}, {since: ago(time.Hour), sending: true}, {}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Log(tc.reason)
			l := limit(nil, Options{MaxConns: len(tc.open), MaxConnsPerIP: 1, Now: func() time.Time { return start }})
			for _, p := range tc.open {
				l.open[p] = struct{}{}
			}
			is, slowest, _ := l.tryEnter(&place{listener: l})
			if is != full {
				t.Errorf("It found a place: %d", is)
			}
			if tc.want < 0 && slowest != nil || tc.want >= 0 && slowest != tc.open[tc.want] {
				t.Errorf("want the connection %d to make room, got %+v", tc.want, slowest)
			}
		})
	}
}

func TestPlacesAreGivenBackOnce(t *testing.T) {
	t.Parallel()
	l := limit(nil, Options{MaxConns: 2, MaxConnsPerIP: 2, Now: time.Now})
	client := netip.MustParseAddr("192.0.2.1")
	var places []*place
	for range 2 {
		conn, other := net.Pipe()
		t.Cleanup(func() { _ = other.Close() })
		p := &place{listener: l, conn: conn, client: client}
		if is, _, _ := l.tryEnter(p); is != entered {
			t.Fatalf("It did not enter: %d", is)
		}
		places = append(places, p)
	}
	if is, _, _ := l.tryEnter(&place{listener: l, client: client}); is != refused {
		t.Errorf("The third of an address that may have two: %d", is)
	}
	for range 2 {
		if err := places[0].wrap().Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.open) != 1 || l.share[client] != 1 {
		t.Errorf("Left open: %d, %d of the address", len(l.open), l.share[client])
	}
}
