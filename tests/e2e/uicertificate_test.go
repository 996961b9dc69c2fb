package e2e

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/tests/upstream"
)

// TestACertificateThatIsNotTaken: why it is not is told in one line, to whoever reads the log of the web UI.
func TestACertificateThatIsNotTaken(t *testing.T) {
	t.Parallel()
	ca, err := upstream.NewCA("pages")
	if err != nil {
		t.Fatal(err)
	}
	made, err := ca.Server("sluice.test")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certificate, key, kubeconfig := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "kubeconfig")
	const nowhere = "{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}"
	if err := errors.Join(os.WriteFile(certificate, made.CertPEM, 0o600), os.WriteFile(key, made.KeyPEM, 0o600), os.WriteFile(kubeconfig, []byte(nowhere), 0o600)); err != nil {
		t.Fatal(err)
	}
	pages := exec.CommandContext(t.Context(), program(t), "ui", "--kubeconfig", kubeconfig, "--listen", "127.0.0.1:0", "--auth", "token", "--host", "sluice.test", "--tls-cert", certificate, "--tls-key", key)
	out, err := pages.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	told, err := pages.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := pages.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pages.Wait() }) // It ends with the test.
	if !bufio.NewScanner(out).Scan() {
		t.Fatal("it does not say that it listens")
	}
	if err := os.WriteFile(certificate, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(told)
	for lines.Scan() {
		switch line := lines.Text(); {
		case strings.Contains(line, "failed to find any PEM data") && strings.Contains(line, certificate):
			return
		case strings.Contains(line, "SetLogger"):
			t.Fatal(line)
		}
	}
	t.Error("nothing is told")
}
