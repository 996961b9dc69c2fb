package transport_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/transport"
)

// send asks as nobody, and gives the status of the answer.
func send(ctx context.Context, factory *transport.Factory, method, target string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, method, target, strings.NewReader(""))
	if err != nil {
		return 0, err
	}
	response, err := factory.Anonymous().Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

func TestAnonymousGoesByTheProxyOfItsContext(t *testing.T) {
	t.Parallel()
	server := origin(t, func(s *httptest.Server) { s.Start() })
	proxy := newHTTPProxy(t, "me", proxyPassword, func(s *httptest.Server) { s.Start() })
	asked := 0
	factory := newFactory(t, transport.Options{AllowLoopback: true, Proxy: func(*http.Request) (*url.URL, error) { asked++; return nil, nil }})
	if status, err := send(transport.WithProxy(t.Context(), proxy.credential()), factory, http.MethodGet, server.URL); err != nil || status != http.StatusOK {
		t.Fatalf("by the proxy: %d, %v", status, err)
	}
	if diff := cmp.Diff([]string{"GET " + server.Listener.Addr().String()}, proxy.requests()); diff != "" || asked != 0 {
		t.Errorf("the environment was asked %d times; -want +got of the proxy:\n%s", asked, diff)
	}
	if status, err := send(t.Context(), factory, http.MethodGet, server.URL); err != nil || status != http.StatusOK {
		t.Fatalf("without a proxy: %d, %v", status, err)
	}
	if len(proxy.requests()) != 1 || asked != 1 {
		t.Errorf("the environment was asked %d times, the proxy for %v", asked, proxy.requests())
	}
}

func TestAnonymousFollowsRedirectsAsOthersDo(t *testing.T) {
	t.Parallel()
	end := origin(t, func(s *httptest.Server) { s.Start() })
	target := ""
	from := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target+r.URL.Query().Get("to"), http.StatusFound)
	}))
	t.Cleanup(from.Close)
	factory := newFactory(t, transport.Options{AllowLoopback: true})
	for name, tc := range map[string]struct {
		reason string
		method string
		target string
		status int
		want   error
	}{
		"elsewhere": {"Another origin is asked.", http.MethodGet, end.URL, http.StatusOK, nil},
		"question":  {"What was posted is not sent on.", http.MethodPost, end.URL, http.StatusFound, nil},
		"circle":    {"Three are enough.", http.MethodGet, from.URL, 0, transport.ErrRedirect},
		"file":      {"Nothing but http is spoken.", http.MethodGet, "ftp://127.0.0.1/x", 0, transport.ErrRedirect},
		"metadata":  {"Nobody is led to where nobody may go.", http.MethodGet, "http://169.254.169.254/x", 0, transport.ErrDenied},
	} {
		target = tc.target
		status, err := send(t.Context(), factory, tc.method, from.URL)
		if status != tc.status || !errors.Is(err, tc.want) {
			t.Errorf("%s: %s got %d, %v", name, tc.reason, status, err)
		}
	}
}
