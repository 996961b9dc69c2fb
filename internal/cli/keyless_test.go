package cli_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/rebuild"
	"sluice.dev/sluice/internal/verify/verifytest"
	"sluice.dev/sluice/tests/upstream/registry"
)

// TestPushSignsKeyless: as whom the token names, so that a source which trusts just that identity takes it, and one that trusts
// another does not. A second push signs nothing, and what nobody could trust is not pushed.
func TestPushSignsKeyless(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	site, sigstore := registry.ForTest(t, registry.Options{}), verifytest.NewSigstore(t)
	served, namespace := sigstore.Serve(t), env.NewNamespace(t)
	trusted := filepath.Join(folder(t, map[string]string{"trusted_root.json": string(sigstore.TrustedRoot(t))}), "trusted_root.json")
	foreign := filepath.Join(folder(t, map[string]string{"trusted_root.json": string(verifytest.NewSigstore(t).TrustedRoot(t))}), "trusted_root.json")
	source := filepath.Join(commit(t, map[string]string{"app.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"}), "deploy")
	push := func(root, tag string, more ...string) answer {
		return typed(t, append([]string{
			"push", source, site.URL("modules/foo") + ":" + tag, "--insecure-registry", "--sign-keyless",
			"--fulcio-url", served.URL, "--rekor-url", served.URL, "--trusted-root", root,
		}, more...)...)
	}
	if lacking := push(trusted, "1.0.0"); lacking.code != 3 || !strings.Contains(lacking.told, "set SIGSTORE_ID_TOKEN") {
		t.Errorf("ended with %d: %s", lacking.code, lacking.told)
	}
	token := verifytest.Token(t, "jane@example.com", "https://issuer.example")
	t.Setenv("SIGSTORE_ID_TOKEN", "no-token")
	if none := push(trusted, "1.0.0"); none.code != 2 || !strings.Contains(none.told, "is no token of identity") || strings.Contains(none.told, "no-token") {
		t.Errorf("ended with %d: %s", none.code, none.told)
	}
	t.Setenv("SIGSTORE_ID_TOKEN", token+"x")
	if forged := push(trusted, "1.0.0"); forged.code != 2 || !strings.Contains(forged.told, "not by a provider that is known") || strings.Contains(forged.told, token) {
		t.Errorf("ended with %d: %s", forged.code, forged.told)
	}
	t.Setenv("SIGSTORE_ID_TOKEN", token)
	if plain := push(trusted, "1.0.0", "--fulcio-url", "http://authority.example"); plain.code != 2 || !strings.Contains(plain.told, "is no https URL") {
		t.Errorf("ended with %d: %s", plain.code, plain.told)
	}
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"a":{"logID":"x"}}`)) }))
	t.Cleanup(broken.Close)
	for name, args := range map[string][]string{
		"the authority": {"--fulcio-url", broken.URL}, "the log": {"--rekor-url", broken.URL},
	} {
		if got := push(trusted, "1.0.0", args...); got.code != 2 {
			t.Errorf("%s answers with nonsense, and it ended with %d: %s", name, got.code, got.told)
		}
	}
	var recorded atomic.Int64
	public := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { recorded.Add(1) }))
	t.Cleanup(public.Close)
	if untrusted := push(foreign, "1.0.0", "--rekor-url", public.URL); untrusted.code != 2 || recorded.Load() != 0 {
		t.Errorf("%d times recorded for good, ended with %d: %s", recorded.Load(), untrusted.code, untrusted.told)
	}
	for _, changed := range []string{"true", "false"} {
		if got := push(trusted, "2.0.0", "-o", "jsonpath={.signed} {.changed}"); got.code != 0 || got.out != "true "+changed {
			t.Errorf("ended with %d: %s%s", got.code, got.out, got.told)
		}
	}
	if forged := push(trusted, "2.0.0", "--fulcio-url", verifytest.NewSigstore(t).Serve(t).URL); forged.code != 2 {
		t.Errorf("a certificate of anybody's says that it is signed, and it ended with %d: %s", forged.code, forged.told)
	}
	store(t, namespace, "apiVersion: v1\nkind: Secret\nmetadata: {name: root}\nstringData:\n  trusted_root.json: '"+string(sigstore.TrustedRoot(t))+"'\n")
	for subject, want := range map[string]string{"^jane@example.com$": "", "^bob@example.com$": "none of"} {
		made, err := (&rebuild.Rebuilder{Reader: env.Client, Dir: t.TempDir(), AllowLoopback: true}).Rebuild(t.Context(), signedBy(site, namespace, subject))
		if err == nil {
			defer func() { _ = made.Close() }()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || err == nil && !strings.Contains(made.VerifiedBy, "jane@example.com") {
			t.Errorf("%s: verified by %q, %v", subject, made.VerifiedBy, err)
		}
	}
}

// signedBy is a source that takes what the subject has signed.
func signedBy(site *registry.Fixture, namespace, subject string) *sourcev1.OCIRepository {
	made := &sourcev1.OCIRepository{Spec: sourcev1.OCIRepositorySpec{
		URL: site.URL("modules/foo"), Insecure: true, Reference: &sourcev1.OCIRepositoryRef{Tag: "2.0.0"},
		Verify: &sourcev1.OCIRepositoryVerification{
			Provider: "cosign", TrustedRootSecretRef: &meta.LocalObjectReference{Name: "root"},
			MatchOIDCIdentity: []sourcev1.OIDCIdentityMatch{{Issuer: "^https://issuer.example$", Subject: subject}},
		},
	}}
	made.Namespace, made.Name = namespace, "foo"
	return made
}
