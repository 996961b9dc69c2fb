package cli_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVerifyOfADigestThatIsNone: a status may say anything that its schema lets through.
func TestVerifyOfADigestThatIsNone(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	app := played(t, namespace, repository("app", ""))
	served := filepath.Join(t.TempDir(), "served.tar.gz")
	if err := os.WriteFile(served, []byte("served"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, digest := range []string{"md5:abc", "sha256:abc", "crc:1"} {
		app.patch("status: {artifact: {digest: '" + digest + "'}}")
		got := run(t, env.Kubeconfig, "verify", "gitrepository/app", "-n", namespace, "--artifact", served)
		if got.code != 2 || !strings.Contains(got.told, "the digest in its status, "+digest+", is none") {
			t.Errorf("%s: %+v", digest, got)
		}
	}
}

// TestVerifyEndsInTime: whoever serves an artifact drop by drop is not waited for without end.
func TestVerifyEndsInTime(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	played(t, namespace, repository("app", "")).patch("status: {artifact: {url: 'http://dripping." + namespace + "/a.tar.gz'}}")
	server := before(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/services/dripping") {
			return false
		}
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte("drop"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return true
	})
	got := run(t, env.Kubeconfig, "verify", "gitrepository/app", "-n", namespace, "--server", server, "--timeout", "2s")
	if got.code != 4 || got.out != "" || got.told != "verify gitrepository/app: --timeout has passed\n" {
		t.Errorf("%+v", got)
	}
}
