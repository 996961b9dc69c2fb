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

// TestAPlanIsOfTheEditedTemplate: what a file says of the release's template counts, beside which release is chosen.
func TestAPlanIsOfTheEditedTemplate(t *testing.T) {
	t.Parallel()
	namespace, content := golden(t)
	file := edited(t, namespace, "apiVersion: modules.sluice.dev/v1alpha1\nkind: ModuleTemplate\nmetadata: {name: foo-3.0.0}\n"+
		"spec: {moduleName: foo, version: 3.0.0, channel: slow, artifact: {path: elsewhere, sourceRef: {apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, name: next}}}\n")
	got := run(t, env.Kubeconfig, "plan", "foo", "-n", namespace, "--artifact", content, "-f", file)
	if got.code != 1 || !strings.Contains(got.out, `there is no folder "elsewhere"`) || strings.Contains(got.out, "Inventory may not be read") {
		t.Errorf("ended with %d, %s: %s", got.code, got.told, got.out)
	}
}
