package cli_test

import (
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
