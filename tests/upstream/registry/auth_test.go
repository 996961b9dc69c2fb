package registry_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"oras.land/oras-go/v2/registry/remote/auth"

	"sluice.dev/sluice/tests/upstream"
	"sluice.dev/sluice/tests/upstream/registry"
)

func clientTLS(t *testing.T, authority []byte, identities []upstream.Identity) *tls.Config {
	t.Helper()
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if authority != nil {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(authority)
	}
	for _, identity := range identities {
		config.Certificates = append(config.Certificates, identity.TLS)
	}
	return config
}

func TestAccessModes(t *testing.T) {
	t.Parallel()
	users := map[string]string{"ada": "secret"}
	right := auth.Credential{Username: "ada", Password: "secret"}
	wrong := auth.Credential{Username: "ada", Password: "guess"}
	cases := map[string]struct {
		reason     string
		options    registry.Options
		credential auth.Credential
		admitted   bool
		tokens     int
	}{
		"Open":               {"nothing is asked for", registry.Options{}, auth.EmptyCredential, true, 0},
		"BasicRight":         {"the password is right", registry.Options{Auth: registry.Basic, Users: users}, right, true, 0},
		"BasicWrong":         {"the password is wrong", registry.Options{Auth: registry.Basic, Users: users}, wrong, false, 0},
		"BasicNone":          {"there is no password", registry.Options{Auth: registry.Basic, Users: users}, auth.EmptyCredential, false, 0},
		"TokenRight":         {"the token server knows the user", registry.Options{Auth: registry.TokenAuth, Users: users}, right, true, 1},
		"TokenWrong":         {"the token server refuses the password", registry.Options{Auth: registry.TokenAuth, Users: users}, wrong, false, 1},
		"TokenNone":          {"the token server wants a user", registry.Options{Auth: registry.TokenAuth, Users: users}, auth.EmptyCredential, false, 1},
		"TokenAnonymous":     {"anyone may pull", registry.Options{Auth: registry.TokenAuth, Anonymous: true}, auth.EmptyCredential, true, 1},
		"TokenIdentity":      {"the identity token stands for the user", registry.Options{Auth: registry.TokenAuth, Users: users}, auth.Credential{RefreshToken: "identity-token-of-ada"}, true, 1},
		"TokenIdentityWrong": {"the identity token is nobody's", registry.Options{Auth: registry.TokenAuth, Users: users}, auth.Credential{RefreshToken: "stolen"}, false, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registry.ForTest(t, tc.options)
			r.Repository("app").PushFlux("v1", map[string]string{"a": "1"}, nil)
			_, err := pull(t.Context(), client(t, r, "app", tc.credential), "v1")
			if admitted := err == nil; admitted != tc.admitted {
				t.Errorf("%s: pull: %v", tc.reason, err)
			}
			if tc.tokens != 0 && r.Tokens().Count() == 0 || tc.tokens == 0 && r.Count(registry.Token) != 0 {
				t.Errorf("%s: token requests: %+v", tc.reason, r.Tokens().Requests())
			}
		})
	}
}

func TestTLSAndClientCertificates(t *testing.T) {
	t.Parallel()
	ca, err := upstream.NewCA("test")
	if err != nil {
		t.Fatal(err)
	}
	identity, err := ca.Client("ada")
	if err != nil {
		t.Fatal(err)
	}
	r := registry.ForTest(t, registry.Options{CA: ca, ClientCA: ca})
	if _, _, _, err := get(t, httpClient(t, r), http.MethodGet, r.BaseURL()+"/v2/"); err == nil {
		t.Error("a client without a certificate was let in")
	}
	if status, _, _, err := get(t, httpClient(t, r, identity), http.MethodGet, r.BaseURL()+"/v2/"); err != nil || status != http.StatusOK {
		t.Errorf("a client with a certificate: got %d, %v", status, err)
	}
	plain := registry.ForTest(t, registry.Options{})
	if _, _, _, err := get(t, httpClient(t, plain), http.MethodGet, r.BaseURL()+"/v2/"); err == nil {
		t.Error("a client that does not know the authority was let in")
	}
}

func TestTokensAreRecordedAndRevoked(t *testing.T) {
	t.Parallel()
	r := registry.ForTest(t, registry.Options{Auth: registry.TokenAuth, Users: map[string]string{"ada": "secret"}})
	r.Repository("app").PushFlux("v1", map[string]string{"a": "1"}, nil)
	from := client(t, r, "app", auth.Credential{Username: "ada", Password: "secret"})
	for range 2 {
		if _, err := pull(t.Context(), from, "v1"); err != nil {
			t.Fatal(err)
		}
	}
	want := []registry.TokenRequest{{
		Method: http.MethodGet, Username: "ada", Password: "secret", Service: r.Host(),
		Scopes: []string{"repository:app:pull"}, Status: http.StatusOK,
	}}
	if diff := cmp.Diff(want, r.Tokens().Requests()); diff != "" {
		t.Errorf("token requests, -want, +got:\n%s", diff)
	}
	r.RevokeTokens()
	if _, err := pull(t.Context(), from, "v1"); err != nil {
		t.Errorf("pull after the tokens were revoked: %v", err)
	}
	if got := r.Tokens().Count(); got != 2 {
		t.Errorf("token requests after the tokens were revoked: got %d, want 2", got)
	}
	r.Tokens().SetExpiry(-2 * time.Minute)
	r.RevokeTokens()
	if _, err := pull(t.Context(), from, "v1"); err == nil {
		t.Error("a token that had ended was taken")
	}
}

func TestPermitAndRegistryToken(t *testing.T) {
	t.Parallel()
	r := registry.ForTest(t, registry.Options{Auth: registry.TokenAuth, Users: map[string]string{"ada": "secret"}})
	r.Tokens().Permit(func(user, repository, action string) bool {
		return user == "ada" && repository == "mine" && action == "pull"
	})
	for _, name := range []string{"mine", "theirs"} {
		r.Repository(name).PushFlux("v1", map[string]string{"a": "1"}, nil)
		_, err := pull(t.Context(), client(t, r, name, auth.Credential{Username: "ada", Password: "secret"}), "v1")
		if (err == nil) != (name == "mine") {
			t.Errorf("pull %q: %v", name, err)
		}
	}
	token, err := r.Tokens().RegistryToken("theirs", "pull")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pull(t.Context(), client(t, r, "theirs", auth.Credential{AccessToken: token}), "v1"); err != nil {
		t.Errorf("pull with a registry token: %v", err)
	}
}

func TestSetUsersAndSetRealm(t *testing.T) {
	t.Parallel()
	for _, mode := range []registry.Auth{registry.Basic, registry.TokenAuth} {
		r := registry.ForTest(t, registry.Options{Auth: mode, Users: map[string]string{"ada": "old"}})
		r.Repository("app").PushFlux("v1", map[string]string{"a": "1"}, nil)
		r.SetUsers(map[string]string{"ada": "new"})
		for password, admitted := range map[string]bool{"old": false, "new": true} {
			_, err := pull(t.Context(), client(t, r, "app", auth.Credential{Username: "ada", Password: password}), "v1")
			if (err == nil) != admitted {
				t.Errorf("mode %q, password %q: %v", mode, password, err)
			}
		}
		r.SetRealm("https://elsewhere.example.org/token")
		_, header, _, err := get(t, httpClient(t, r), http.MethodGet, r.BaseURL()+"/v2/")
		if err != nil {
			t.Fatal(err)
		}
		challenge := header.Get("WWW-Authenticate")
		if strings.Contains(challenge, `realm="https://elsewhere.example.org/token"`) != (mode == registry.TokenAuth) {
			t.Errorf("mode %q: challenge %q", mode, challenge)
		}
	}
}

func TestDockerConfig(t *testing.T) {
	t.Parallel()
	r := registry.ForTest(t, registry.Options{Auth: registry.Basic, Users: map[string]string{"ada": "secret"}})
	type entry struct{ Auth, IdentityToken, RegistryToken string }
	read := func(raw []byte) entry {
		var config struct{ Auths map[string]entry }
		if err := json.Unmarshal(raw, &config); err != nil {
			t.Fatal(err)
		}
		return config.Auths[r.Host()]
	}
	got := []entry{read(r.DockerConfig("ada")), read(r.DockerConfigIdentity("ada")), read(r.DockerConfigToken("abc"))}
	want := []entry{{Auth: "YWRhOnNlY3JldA=="}, {IdentityToken: "identity-token-of-ada"}, {RegistryToken: "abc"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configs, -want, +got:\n%s", diff)
	}
	if slices.Equal(r.DockerConfig("eve"), r.DockerConfig("ada")) {
		t.Error("a user that the registry does not know got a config that works")
	}
}
