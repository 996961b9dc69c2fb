package cli_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestAPlanIsInterrupted: while the content is read, from upstream or through the API server, as anywhere else.
func TestAPlanIsInterrupted(t *testing.T) {
	t.Parallel()
	namespace, _ := golden(t)
	asked := make(chan struct{})
	drips := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte("drop"))
		_ = http.NewResponseController(w).Flush()
		select {
		case asked <- struct{}{}:
		case <-r.Context().Done():
		}
		<-r.Context().Done()
	}
	upstream := httptest.NewServer(http.HandlerFunc(drips))
	t.Cleanup(upstream.CloseClientConnections)
	object{t, repositories, namespace, "next"}.patch("spec: {url: '" + upstream.URL + "/next'}")
	object{t, repositories, namespace, "next"}.patch("status: {artifact: {url: 'http://dripping." + namespace + "/a.tar.gz'}}")
	server := before(t, func(w http.ResponseWriter, r *http.Request) bool {
		isContent := strings.Contains(r.URL.Path, "/services/")
		if isContent {
			drips(w, r)
		}
		return isContent
	})
	for _, flags := range []string{"--from-upstream --egress-allow-loopback", "--server " + server} {
		for _, command := range []string{"plan foo", "build mi/foo"} {
			ctx, stop := context.WithCancel(t.Context())
			go func() {
				defer stop()
				select {
				case <-asked:
				case <-ctx.Done():
				}
			}()
			line := command + " -n " + namespace + " --system-namespace " + namespace + " " + flags
			if got := begin(ctx, env.Kubeconfig, strings.Fields(line)...)(); got.code != 130 || got.out != "" || !strings.HasSuffix(got.told, ": interrupted\n") {
				t.Errorf("%s: %+v", line, got)
			}
			stop()
		}
	}
}
