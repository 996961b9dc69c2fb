package registry

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/credential"
	fixture "sluice.dev/sluice/tests/upstream/registry"
)

func TestPullFromARealRegistry(t *testing.T) {
	t.Parallel()
	for _, auth := range []fixture.Auth{fixture.None, fixture.Basic, fixture.TokenAuth} {
		site, r := distribution(t, auth)
		pushed := site.Repository(name).PushORAS("v1", layer("first"), layer("second"))
		client, _ := newClient(t, nil)

		found, err := client.Resolve(t.Context(), r, "v1")
		if err != nil || found.Digest != pushed.Digest || found.MediaType != pushed.MediaType || found.Size != pushed.Size {
			t.Fatalf("%q: Resolve: %+v, %v", auth, found, err)
		}
		tags, err := tagsOf(t, client, r)
		if diff := cmp.Diff([]string{"v1"}, tags); diff != "" || err != nil {
			t.Errorf("%q: Tags: %v %s", auth, err, diff)
		}
		document, err := client.Manifest(t.Context(), r, found.Digest)
		if err != nil || document.Manifest == nil || document.Index != nil || len(document.Manifest.Layers) != 2 {
			t.Fatalf("%q: Manifest: %+v, %v", auth, document, err)
		}
		stream, err := client.Blob(t.Context(), r, document.Manifest.Layers[1])
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(stream)
		if err != nil || string(content) != "second" || stream.Close() != nil {
			t.Errorf("%q: Blob: %q, %v", auth, content, err)
		}
		referrers, err := client.Referrers(t.Context(), r, found.Digest, "")
		if err != nil || len(referrers) != 0 {
			t.Errorf("%q: Referrers: %v, %v", auth, referrers, err)
		}

		site.Reset()
		if _, err := client.Resolve(t.Context(), r, "v1"); err != nil || len(site.Requests()) != 1 {
			t.Errorf("%q: a poll is %d requests: %v", auth, len(site.Requests()), err)
		}
		if site.Connections() != 0 {
			t.Errorf("%q: a poll opened %d connections", auth, site.Connections())
		}
	}
}

func TestWrongAndMissingCredentials(t *testing.T) {
	t.Parallel()
	for _, auth := range []fixture.Auth{fixture.Basic, fixture.TokenAuth} {
		site, r := distribution(t, auth)
		site.Repository(name).PushORAS("v1", layer("x"))
		wrong, missing, identityOnly, userOnly := r, r, r, r
		wrong.Credential.Password = credential.NewSecret("wrong-" + password)
		missing.Credential = credential.Registry{TLS: r.Credential.TLS}
		identityOnly.Credential = credential.Registry{IdentityToken: credential.NewSecret(password + "-wrong"), TLS: r.Credential.TLS}
		userOnly.Credential.Password = credential.Secret{}
		for reason, as := range map[string]Repository{
			"wrong": wrong, "missing": missing, "identity token": identityOnly, "user alone": userOnly,
		} {
			client, _ := newClient(t, nil)
			site.Reset()
			for range 2 {
				_, err := client.Resolve(t.Context(), as, "v1")
				if !errors.Is(err, ErrAuthentication) || !strings.Contains(err.Error(), "spec.secretRef") {
					t.Errorf("%q with %s credential: %v", auth, reason, err)
				}
				mustNotLeak(t, err)
			}
			if sent := len(site.Requests()); sent > 6 {
				t.Errorf("%q with %s credential: %d requests for two polls", auth, reason, sent)
			}
		}
	}
}

func TestIdentityAndRegistryTokens(t *testing.T) {
	t.Parallel()
	site, r := distribution(t, fixture.TokenAuth)
	site.Repository(name).PushORAS("v1", layer("x"))
	client, _ := newClient(t, nil)

	identity := r
	identity.Credential = credential.Registry{
		IdentityToken: credential.NewSecret(site.Tokens().IdentityToken(user)), TLS: r.Credential.TLS,
	}
	if _, err := client.Resolve(t.Context(), identity, "v1"); err != nil {
		t.Errorf("identity token: %v", err)
	}
	token, err := site.Tokens().RegistryToken(name, "pull")
	if err != nil {
		t.Fatal(err)
	}
	direct := r
	direct.Credential = credential.Registry{RegistryToken: credential.NewSecret(token), TLS: r.Credential.TLS}
	before := site.Tokens().Count()
	if _, err := client.Resolve(t.Context(), direct, "v1"); err != nil || site.Tokens().Count() != before {
		t.Errorf("registry token: %v, %d token requests", err, site.Tokens().Count()-before)
	}
	if err := site.Registry.RevokeTokens(); err != nil {
		t.Fatal(err)
	}
	site.Reset()
	if _, err := client.Resolve(t.Context(), direct, "v1"); !errors.Is(err, ErrAuthentication) || site.Count(fixture.ManifestHEAD) != 1 {
		t.Errorf("revoked registry token: %v after %d requests", err, site.Count(fixture.ManifestHEAD))
	}
}

func TestTokensAreSharedByOneIdentityOnly(t *testing.T) {
	t.Parallel()
	site, r := distribution(t, fixture.TokenAuth)
	site.Repository(name).PushORAS("v1", layer("x"))
	site.Repository("org/second").PushORAS("v1", layer("x"))
	site.Reset()
	client, _ := newClient(t, nil)
	other := r
	other.Credential.Username, other.Credential.Password = "other", credential.NewSecret("other-password")
	second := r
	second.Name = "org/second"

	for range 3 {
		for _, as := range []Repository{r, other, second} {
			if _, err := client.Resolve(t.Context(), as, "v1"); err != nil {
				t.Fatal(err)
			}
		}
	}
	var got [][]string
	for _, request := range site.Tokens().Requests() {
		got = append(got, append([]string{request.Username}, request.Scopes...))
	}
	want := [][]string{
		{user, "repository:org/app:pull"}, {"other", "repository:org/app:pull"}, {user, "repository:org/second:pull"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	seen := map[string]bool{}
	for _, request := range site.Requests() {
		if header := request.Header.Get("Authorization"); strings.HasPrefix(header, "Bearer ") {
			seen[header] = true
		}
	}
	if len(seen) != 3 {
		t.Errorf("%d different tokens were used, not 3", len(seen))
	}
}

func TestConcurrentRequestsShareOneToken(t *testing.T) {
	t.Parallel()
	site, r := distribution(t, fixture.TokenAuth)
	site.Repository(name).PushORAS("v1", layer("x"))
	client, _ := newClient(t, nil)
	for _, reason := range []string{"first token", "revoked token"} {
		site.Reset()
		var wait sync.WaitGroup
		for range 20 {
			wait.Go(func() {
				if _, err := client.Resolve(t.Context(), r, "v1"); err != nil {
					t.Errorf("%s: %v", reason, err)
				}
			})
		}
		wait.Wait()
		if got := site.Tokens().Count(); got != 1 {
			t.Errorf("%s: %d token requests", reason, got)
		}
		site.RevokeTokens()
	}
}

func TestARefusedTokenDoesNotLoop(t *testing.T) {
	t.Parallel()
	tokens := 0
	r := serve(t, func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/token" {
			tokens++
			respond(w, http.StatusOK, "application/json", `{"token":"token-`+strings.Repeat("x", tokens)+`"}`)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="https://`+request.Host+`/token"`)
		respond(w, http.StatusUnauthorized, "application/json",
			`{"errors":[{"code":"UNAUTHORIZED","message":"`+request.Header.Get("Authorization")+`"}]}`)
	})
	client, seen := newClient(t, nil)
	for range 2 {
		_, err := tagsOf(t, client, r)
		if !errors.Is(err, ErrAuthentication) || strings.Contains(err.Error(), "token-x") {
			t.Errorf("Tags: %v", err)
		}
	}
	if got := seen.count(""); got != 6 || tokens != 2 {
		t.Errorf("%d requests and %d tokens for two calls: %v", got, tokens, seen.sent)
	}
}

func TestBasicIsAnsweredToTheRegistryOnly(t *testing.T) {
	t.Parallel()
	var elsewhere Repository
	var stolen []string
	elsewhere = serve(t, func(w http.ResponseWriter, request *http.Request) {
		stolen = append(stolen, request.Header.Get("Authorization"))
		w.Header().Set("WWW-Authenticate", `Basic realm="give"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	for _, status := range []int{301, 302, 303, 307, 308} {
		r := serve(t, func(w http.ResponseWriter, request *http.Request) {
			if _, _, ok := request.BasicAuth(); !ok {
				w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			http.Redirect(w, request, "https://"+elsewhere.Host+request.URL.Path, status)
		})
		r.Credential.TLS.CA = append(r.Credential.TLS.CA, elsewhere.Credential.TLS.CA...)
		client, _ := newClient(t, nil)
		_, err := client.Blob(t.Context(), r, blobDescriptor([]byte("x")))
		if !errors.Is(err, ErrAuthentication) {
			t.Errorf("status %d: %v", status, err)
		}
	}
	for _, header := range stolen {
		if header != "" {
			t.Errorf("another server got %q", header)
		}
	}
	if len(stolen) == 0 {
		t.Error("no redirect was followed")
	}
}
