package ui

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// doorOf are pages behind a proxy that brings tokens.
func doorOf(t *testing.T, login func(ctx context.Context, token string) (*Person, error)) *UI {
	t.Helper()
	u, err := New(Options{Lister: still{}, Login: login, ByHeader: true, Hosts: []string{host}, Logger: slog.New(slog.DiscardHandler), Now: time.Now, Random: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// brings answers a request that comes with a token, from an address.
func (u *UI) brings(t *testing.T, header http.Header, from string) *httptest.ResponseRecorder {
	t.Helper()
	made := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Host, r.Header, r.RemoteAddr = host, header, from
	u.Handler().ServeHTTP(made, r)
	return made
}

// TestAFaultDoesNotLogPeopleOut: a proxy, and the page's own script, take 401 for the end of a login.
func TestAFaultDoesNotLogPeopleOut(t *testing.T) {
	t.Parallel()
	var wrong error
	u := doorOf(t, func(context.Context, string) (*Person, error) { return nil, wrong })
	for want, err := range map[int]error{http.StatusUnauthorized: &LoginError{"nobody"}, http.StatusBadGateway: errors.New("no answer")} {
		wrong = err
		if got := u.brings(t, http.Header{"Authorization": {"Bearer x"}}, "10.0.0.1:1"); got.Code != want {
			t.Errorf("%v is told as %d", err, got.Code)
		}
	}
}

// TestAnOpenPageAloneIsNoUse: whatever its script reads, as rows change or the network comes back.
func TestAnOpenPageAloneIsNoUse(t *testing.T) {
	t.Parallel()
	u := doorOf(t, func(context.Context, string) (*Person, error) { return &Person{Name: "ann", Reader: still{}}, nil })
	u.ByHeader = false
	now := time.Unix(1_000_000, 0)
	u.Now = func() time.Time { return now }
	if _, err := u.logins.begin(t.Context(), "id", "token"); err != nil {
		t.Fatal(err)
	}
	reads := func(mode string) int {
		now = now.Add(idleLogin / 2)
		return u.brings(t, http.Header{"Cookie": {loginCookie + "=id"}, "Sec-Fetch-Mode": {mode}}, "10.0.0.1:1").Code
	}
	for range 3 {
		if code := reads("navigate"); code != http.StatusOK {
			t.Fatalf("somebody who looks around gets %d", code)
		}
	}
	if code := reads("cors"); code != http.StatusOK {
		t.Fatalf("the script gets %d", code)
	}
	if code := reads("cors"); code != http.StatusUnauthorized {
		t.Errorf("after half an hour in which nobody did anything, the script gets %d", code)
	}
}

// TestOneTokenIsBrought: a proxy that adds its header to the browser's has not made sure of it, and schemes have no case (RFC 9110, section 11.1).
func TestOneTokenIsBrought(t *testing.T) {
	t.Parallel()
	u := doorOf(t, func(_ context.Context, token string) (*Person, error) {
		return &Person{Name: token, Reader: still{}}, nil
	})
	for want, given := range map[int][][]string{
		http.StatusOK:           {{"Bearer a"}, {"bearer a"}},
		http.StatusUnauthorized: {nil, {"Bearer a", "Bearer b"}, {"Bearer a", ""}, {"Bearer"}, {"Basic a"}},
	} {
		for _, headers := range given {
			if got := u.brings(t, http.Header{"Authorization": headers}, "10.0.0.1:1"); got.Code != want {
				t.Errorf("%q answers %d", headers, got.Code)
			}
		}
	}
}
