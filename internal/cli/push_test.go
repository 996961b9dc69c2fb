package cli_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"

	"sluice.dev/sluice/tests/upstream"
	"sluice.dev/sluice/tests/upstream/registry"
)

const hidden = "correct-horse-battery"

// commit makes a work tree whose folder deploy has the files.
func commit(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range files {
		place := filepath.Join(dir, "deploy", name)
		if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(place, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	who := []string{"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b.c", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b.c"}
	for _, args := range [][]string{{"init", "--quiet", "--initial-branch=main"}, {"add", "-A"}, {"commit", "--quiet", "-m", "first"}} {
		if _, err := upstream.Git(t.Context(), dir, who, args...); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// login lets Docker keep a login for the registry.
func login(t *testing.T, host, password string) {
	t.Helper()
	dir := t.TempDir()
	auth := base64.StdEncoding.EncodeToString([]byte("writer:" + password))
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"auths":{"`+host+`":{"auth":"`+auth+`"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_CONFIG", dir)
}

// TestPush: with the login that Docker keeps; a dirty tree and a taken tag are refused, and what helps is told.
func TestPush(t *testing.T) {
	site := registry.ForTest(t, registry.Options{Auth: registry.TokenAuth, Users: map[string]string{"writer": hidden}})
	dir := commit(t, map[string]string{"app.yaml": "kind: ConfigMap\n"})
	login(t, site.Host(), hidden)
	to := site.URL("modules/foo")
	push := func(more ...string) answer {
		return typed(t, append([]string{"push", filepath.Join(dir, "deploy"), to + ":2.0.0", "--insecure-registry"}, more...)...)
	}
	first := push()
	if want := regexp.MustCompile(`^` + regexp.QuoteMeta(strings.TrimPrefix(to, "oci://")) + `@sha256:[0-9a-f]{64}\n$`); first.code != 0 || !want.MatchString(first.out) {
		t.Fatalf("ended with %d: %s%s", first.code, first.out, first.told)
	}
	if want := regexp.MustCompile(`^(✔ )?1 file, \d+ B, revision main@sha1:[0-9a-f]{12}\n$`); !want.MatchString(first.told) {
		t.Errorf("told %q", first.told)
	}
	if again := push("-o", "jsonpath={.kind} {.changed} {.files} {.tag}"); again.out != "Push false 1 2.0.0" || !strings.Contains(again.told, "nothing changed") {
		t.Errorf("ended with %d: %s%s", again.code, again.out, again.told)
	}
	if taken := push("--annotation", "a=b"); taken.code != 2 || taken.out != "" || !strings.Contains(taken.told, "--move-tag") {
		t.Errorf("ended with %d: %s%s", taken.code, taken.out, taken.told)
	}
	if moved := push("--annotation", "a=b", "--move-tag", "--dry-run"); moved.code != 0 || !strings.Contains(moved.told, "not pushed") {
		t.Errorf("ended with %d: %s%s", moved.code, moved.out, moved.told)
	}
	if unsigned := push("--fulcio-url", "https://authority.example"); unsigned.code != 3 || !strings.Contains(unsigned.told, "add --sign-keyless") {
		t.Errorf("ended with %d: %s%s", unsigned.code, unsigned.out, unsigned.told)
	}
	if err := os.WriteFile(filepath.Join(dir, "deploy/new\x1b[31m.yaml"), []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if dirty := push(); dirty.code != 2 || !strings.Contains(dirty.told, "was not committed") || !strings.Contains(dirty.told, "--allow-dirty") || strings.Contains(dirty.told, "\x1b") {
		t.Errorf("ended with %d: %q", dirty.code, dirty.told)
	}
	if dirty := push("--allow-dirty", "--move-tag"); dirty.code != 0 || !strings.Contains(dirty.told, "no commit's") {
		t.Errorf("ended with %d: %q", dirty.code, dirty.told)
	}
	login(t, site.Host(), "wrong-"+hidden)
	if refused := push("--allow-dirty"); refused.code != 2 || !strings.Contains(refused.told, "docker login "+site.Host()) || strings.Contains(refused.told, hidden) {
		t.Errorf("ended with %d: %s", refused.code, refused.told)
	}
	if err := site.Close(); err != nil {
		t.Fatal(err)
	}
	if away := push("--allow-dirty"); away.code != 2 || !strings.Contains(away.told, "refused") {
		t.Errorf("ended with %d: %s", away.code, away.told)
	}
}

// TestPushSigns: by a key that is encrypted, and whose password is not told.
func TestPushSigns(t *testing.T) {
	site := registry.ForTest(t, registry.Options{})
	dir := commit(t, map[string]string{"app.yaml": "kind: ConfigMap\n"})
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := encrypted.Encrypt(der, []byte(hidden))
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "cosign.key")
	if err := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: sealed}), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"push", filepath.Join(dir, "deploy"), site.URL("modules/foo") + ":2.0.0", "--insecure-registry", "--sign-key", key}
	if lacking := typed(t, args...); lacking.code != 3 || !strings.Contains(lacking.told, "set COSIGN_PASSWORD") {
		t.Errorf("ended with %d: %s", lacking.code, lacking.told)
	}
	t.Setenv("COSIGN_PASSWORD", "wrong-"+hidden)
	if wrong := typed(t, args...); wrong.code != 2 || !strings.Contains(wrong.told, "does not open it") || strings.Contains(wrong.told, hidden) || site.Count() != 0 {
		t.Errorf("ended with %d: %s", wrong.code, wrong.told)
	}
	t.Setenv("COSIGN_PASSWORD", hidden)
	if signed := typed(t, args...); signed.code != 0 || !strings.Contains(signed.told, ", signed") {
		t.Errorf("ended with %d: %s", signed.code, signed.told)
	}
}

// TestPushUsage: what cannot be meant is wrong usage.
func TestPushUsage(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"Nothing":    {nil, "PATH oci://REPOSITORY:TAG"},
		"NoTag":      {[]string{".", "oci://localhost:5000/foo"}, "a tag has to be named"},
		"Digest":     {[]string{".", "oci://localhost:5000/foo@sha256:" + strings.Repeat("a", 64)}, "a tag has to be named"},
		"NoScheme":   {[]string{".", "localhost/foo:1"}, "oci://"},
		"BadTag":     {[]string{".", "oci://localhost/foo:-"}, "is no tag"},
		"Annotation": {[]string{".", "oci://localhost/foo:1", "--annotation", "a"}, "is not name=value"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := typed(t, append([]string{"push"}, test.args...)...); got.code != 3 || !strings.Contains(got.told, test.says) {
				t.Errorf("ended with %d: %s", got.code, got.told)
			}
		})
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if got := typed(t, "push", ".", "oci://localhost/foo:1"); got.code != 3 {
		t.Errorf("ended with %d: %s", got.code, got.told)
	}
}
