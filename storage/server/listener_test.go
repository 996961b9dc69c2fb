package server

import (
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"
	"unsafe"
)

func TestWhoMakesRoom(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	// Each of these is what a connection did last, and how long ago.
	idle := func(l *limitedListener, p *place) { l.watch(p, http.StateIdle) }
	busy := func(l *limitedListener, p *place) { l.watch(p, http.StateActive) }
	sending := func(_ *limitedListener, p *place) { p.await(p.listener.now()) }
	type did struct {
		what func(*limitedListener, *place)
		ago  time.Duration
	}
	for name, tc := range map[string]struct {
		reason string
		open   []did
		want   int // -1 is nobody
	}{
		"LongestIdle": {"Of those that wait for a request the longest goes.", []did{{idle, 1}, {idle, 3}, {idle, 2}}, 1},
		"Busy":        {"Who waits for us stays.", []did{{busy, time.Hour}, {idle, 1}, {busy, time.Hour}}, 1},
		"AllBusy":     {"Nobody goes when all wait for us.", []did{{busy, time.Hour}, {busy, time.Hour}, {busy, 1}}, -1},
		"Sending":     {"Who has just been sent bytes stays.", []did{{sending, stalledAfter - 1}, {busy, 1}, {busy, 1}}, -1},
		"Stalled":     {"Who does not accept bytes goes.", []did{{busy, 1}, {sending, stalledAfter}, {busy, 1}}, 1},
		"Either":      {"The longest wait counts, whatever it is for.", []did{{idle, time.Minute}, {sending, time.Hour}, {busy, 1}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Log(tc.reason)
			now := start
			l := limit(nil, Options{MaxConns: len(tc.open), MaxConnsPerIP: len(tc.open), Now: func() time.Time { return now }})
			var open []*place
			for i, last := range tc.open {
				p := &place{TCPConn: &net.TCPConn{}, listener: l, client: netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})}
				now = start.Add(-last.ago)
				if is := l.enter(p); is != entered {
					t.Fatalf("It did not enter: %d", is)
				}
				last.what(l, p)
				open = append(open, p)
			}
			now = start
			is := l.enter(&place{listener: l})
			if (is == entered) != (tc.want >= 0) {
				t.Errorf("It got a place: %d", is)
			}
			for i, p := range open {
				if _, stays := l.open[p]; stays == (i == tc.want) {
					t.Errorf("Connection %d stays: %t, want %d to make room", i, stays, tc.want)
				}
			}
		})
	}
}

// TestPlacesKnowNoTimeOfDay: somebody sets the clock, once the only place is taken.
func TestPlacesKnowNoTimeOfDay(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		last   func(*limitedListener, *place)
		set    time.Duration
		want   entry
	}{
		"Back":    {"Who waits for nothing makes room.", func(l *limitedListener, p *place) { l.watch(p, http.StateIdle) }, -time.Hour, entered},
		"Forward": {"Who has just been sent bytes stays.", func(_ *limitedListener, p *place) { p.await(p.listener.now()) }, time.Hour, full},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			l := limit(nil, Options{MaxConns: 1, MaxConnsPerIP: 2, ProgressTimeout: time.Minute, Now: func() time.Time { return now }})
			p := &place{TCPConn: &net.TCPConn{}, listener: l}
			if is := l.enter(p); is != entered {
				t.Fatalf("It did not enter: %d", is)
			}
			tc.last(l, p)
			now = afterSetting(now.Add(time.Millisecond), tc.set)
			if is := l.enter(&place{listener: l}); is != tc.want {
				t.Errorf("%s The newcomer: %d, want %d", tc.reason, is, tc.want)
			}
		})
	}
}

// afterSetting is what the clock says once it was set: another time of day, and nothing else. Package time makes no such
// times; it keeps the seconds of the day's time in 33 bits before the nanoseconds.
func afterSetting(t time.Time, by time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(by/time.Second) << 30
	return t
}

func TestPlacesAreGivenBackOnce(t *testing.T) {
	t.Parallel()
	l := limit(nil, Options{MaxConns: 2, MaxConnsPerIP: 2, Now: time.Now})
	client := netip.MustParseAddr("192.0.2.1")
	var places []*place
	for range 2 {
		p := &place{TCPConn: &net.TCPConn{}, listener: l, client: client}
		if is := l.enter(p); is != entered {
			t.Fatalf("It did not enter: %d", is)
		}
		places = append(places, p)
	}
	if is := l.enter(&place{listener: l, client: client}); is != refused {
		t.Errorf("The third of an address that may have two: %d", is)
	}
	for range 2 {
		_ = places[0].Close() // It is open as far as the places are concerned, and no more.
	}
	if len(l.open) != 1 || l.share[client] != 1 {
		t.Errorf("Left open: %d, %d of the address", len(l.open), l.share[client])
	}
}
