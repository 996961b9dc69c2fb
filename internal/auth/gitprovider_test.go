package auth

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/transport"
)

// repositories are a cloud's: their URL, and what lets in.
func (p provider) repositories(c *cloud, address string) (Secrets, GitRequest) {
	secrets, r := p.subject(c, Options{})
	return secrets, GitRequest{
		Namespace: r.Namespace, URL: address, Provider: r.Provider, ServiceAccountName: r.ServiceAccountName, ProxySecretName: r.ProxySecretName,
	}
}

func TestAccountsLogInToRepositoriesOfClouds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		of           provider
		url          string
		user, bearer string
		login        string // that is made once
	}{
		"Azure DevOps": {
			of: microsoft(), url: "https://dev.azure.com/team/project/_git/app", bearer: "canary-entra",
			login: "login.microsoftonline.com/11111111-1111-1111-1111-111111111111/oauth2/v2.0/token",
		},
		"Azure DevOps by its old name": {
			of: microsoft(), url: "https://team.visualstudio.com/project/_git/app", bearer: "canary-entra",
			login: "login.microsoftonline.com/11111111-1111-1111-1111-111111111111/oauth2/v2.0/token",
		},
		"CodeCommit": {
			of: amazon(), url: "https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/app", user: "id%session",
			login: "sts.eu-west-1.amazonaws.com/",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCloud(t, tc.of.answers)
			secrets, request := tc.of.repositories(c, tc.url)
			for range 2 {
				got, err := secrets.Git(t.Context(), request)
				if err != nil {
					t.Fatal(err)
				}
				if got.Username != tc.user || got.BearerToken.Reveal() != tc.bearer || got.Password.IsZero() != (tc.user == "") || got.Proxy.URL != c.address {
					t.Errorf("got %+v", reveal(got))
				}
			}
			if count := c.count(tc.login); count != 1 {
				t.Errorf("%d logins", count)
			}
		})
	}
}

// TestRepositoriesOfCodeCommitHaveASignatureEach: submodules get theirs by asking for their own URL.
func TestRepositoriesOfCodeCommitHaveASignatureEach(t *testing.T) {
	t.Parallel()
	p := amazon()
	c := newCloud(t, p.answers)
	signatures := map[string]string{}
	for _, name := range []string{"app", "lib"} {
		address := "https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/" + name
		secrets, request := p.repositories(c, address)
		got, err := secrets.Git(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if before, known := signatures[got.Password.Reveal()]; known || got.Password.IsZero() {
			t.Errorf("%s has the signature of %s", address, before)
		}
		signatures[got.Password.Reveal()] = address
	}
}

// TestNobodyElseGetsTheTokenOfACloud: an object names its URL and its proxy, and a token is worth more than that.
func TestNobodyElseGetsTheTokenOfACloud(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"https://dev.azure.com.example.com/team/app", "https://example.com/dev.azure.com", "https://dev.azure.com:8443/team/app",
		"http://dev.azure.com/team/app", "https://visualstudio.com/app", "ssh://git@ssh.dev.azure.com/v3/team/app",
		"https://git-codecommit.eu-west-1.amazonaws.com.example.com/v1/repos/app", "http://git-codecommit.eu-west-1.amazonaws.com/v1/repos/app",
	} {
		for _, of := range []provider{microsoft(), amazon()} {
			c := newCloud(t, of.answers)
			secrets, request := of.repositories(c, address)
			got, err := secrets.Git(t.Context(), request)
			f := failure.Of(err)
			if f == nil || f.Disposition != failure.Stalls || f.Reason != sourcev1.InvalidProviderConfigurationReason || got.Username != "" || !got.BearerToken.IsZero() {
				t.Errorf("%s of %s: %+v, %v", address, of.name, reveal(got), err)
			}
			if len(c.asked) > 0 {
				t.Errorf("%s of %s: asked for %v", address, of.name, c.asked)
			}
		}
	}
}

func TestAccountsNeedTheGateForRepositories(t *testing.T) {
	t.Parallel()
	p := microsoft()
	c := newCloud(t, p.answers)
	reader := objects{secrets: map[string]map[string]string{"proxy": c.secret()}, accounts: map[string]corev1.ServiceAccount{"apps": p.account}}
	_, err := New(reader, Options{}).Git(t.Context(), GitRequest{
		Namespace: "apps", URL: "https://dev.azure.com/team/app", Provider: "azure", ServiceAccountName: "apps", ProxySecretName: "proxy",
	})
	if f := failure.Of(err); f == nil || f.Disposition != failure.Stalls || f.Reason != sourcev1.FeatureGateDisabledReason {
		t.Errorf("got %v", err)
	}
}

// githubApp is a GitHub App with one installation, and its Secret.
type githubApp struct {
	key    *rsa.PrivateKey
	secret map[string]string
}

func newGitHubApp(t *testing.T) githubApp {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return githubApp{key, map[string]string{"githubAppID": "7", "githubAppInstallationID": "42", "githubAppPrivateKey": string(text)}}
}

// proven answers those who prove to be the App.
func (a githubApp) proven(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		claims := jwt.MapClaims{}
		_, err := jwt.ParseWithClaims(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), claims, func(*jwt.Token) (any, error) { return &a.key.PublicKey, nil })
		if err != nil || claims["iss"] != "7" {
			http.Error(w, fmt.Sprintf(`{"message":"who are you, %s?"}`, r.Header.Get("Authorization")), http.StatusUnauthorized)
			return
		}
		answer(w, r)
	}
}

func (a githubApp) subject(c *cloud) (Secrets, GitRequest) {
	reader := objects{secrets: map[string]map[string]string{"app": a.secret, "proxy": c.secret()}}
	return New(reader, Options{Transport: transport.New(transport.Options{AllowLoopback: true})}), GitRequest{
		Namespace: "apps", URL: "https://github.com/team/app", SecretName: "app", ProxySecretName: "proxy", Provider: "github",
	}
}

func TestGitHubApps(t *testing.T) {
	t.Parallel()
	const token = "app/installations/42/access_tokens"
	given := reply(`{"token":"ghs_canary","expires_at":"2100-01-01T00:00:00Z"}`)
	for name, tc := range map[string]struct {
		secret map[string]string
		hosts  map[string]http.HandlerFunc
		asked  string
	}{
		"By its id": {nil, map[string]http.HandlerFunc{"api.github.com/" + token: given}, "api.github.com/" + token},
		"By an organisation": {
			map[string]string{"githubAppInstallationID": "", "githubAppInstallationOwner": "team"},
			map[string]http.HandlerFunc{"api.github.com/" + token: given, "api.github.com/orgs/team/installation": reply(`{"id":42}`)},
			"api.github.com/" + token,
		},
		"By a user": {
			map[string]string{"githubAppInstallationID": "", "githubAppInstallationOwner": "ada"},
			map[string]http.HandlerFunc{"api.github.com/" + token: given, "api.github.com/users/ada/installation": reply(`{"id":42}`)},
			"api.github.com/" + token,
		},
		"A server of one's own": {
			map[string]string{"githubAppBaseURL": "https://git.example.com"},
			map[string]http.HandlerFunc{"git.example.com/api/v3/" + token: given},
			"git.example.com/api/v3/" + token,
		},
		"With its API": {
			map[string]string{"githubAppBaseURL": "https://git.example.com/api/v3/"},
			map[string]http.HandlerFunc{"git.example.com/api/v3/" + token: given},
			"git.example.com/api/v3/" + token,
		},
		"In a tenant": {
			map[string]string{"githubAppBaseURL": "https://api.team.ghe.com"},
			map[string]http.HandlerFunc{"api.team.ghe.com/" + token: given},
			"api.team.ghe.com/" + token,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newGitHubApp(t)
			maps.Copy(a.secret, tc.secret)
			for path, answer := range tc.hosts {
				tc.hosts[path] = a.proven(answer)
			}
			c := newCloud(t, tc.hosts)
			secrets, request := a.subject(c)
			for range 2 {
				got, err := secrets.Git(t.Context(), request)
				if err != nil {
					t.Fatal(err)
				}
				if got.Username != "x-access-token" || got.Password.Reveal() != "ghs_canary" {
					t.Errorf("got %+v", reveal(got))
				}
			}
			if count := c.count(tc.asked); count != 1 {
				t.Errorf("asked %d times for a token", count)
			}
		})
	}
}

func TestGitHubAppsThatCannotBe(t *testing.T) {
	t.Parallel()
	other := newGitHubApp(t)
	for name, tc := range map[string]struct {
		secret map[string]string
		says   string
	}{
		"No id":              {map[string]string{"githubAppID": ""}, "githubAppID"},
		"An id of letters":   {map[string]string{"githubAppID": "seven"}, "githubAppID"},
		"A path for an id":   {map[string]string{"githubAppInstallationID": "42/../../x"}, "githubAppInstallationID"},
		"No installation":    {map[string]string{"githubAppInstallationID": ""}, "githubAppInstallationOwner"},
		"Two installations":  {map[string]string{"githubAppInstallationOwner": "team"}, "githubAppInstallationOwner"},
		"No key":             {map[string]string{"githubAppPrivateKey": ""}, "githubAppPrivateKey"},
		"Noise for a key":    {map[string]string{"githubAppPrivateKey": "canary-noise"}, "githubAppPrivateKey"},
		"A key too long":     {map[string]string{"githubAppPrivateKey": longKey(t, 6000)}, "more than 4096 bits"},
		"Without TLS":        {map[string]string{"githubAppBaseURL": "http://git.example.com"}, "githubAppBaseURL"},
		"A user in the URL":  {map[string]string{"githubAppBaseURL": "https://canary@git.example.com"}, "githubAppBaseURL"},
		"Two ways to log in": {map[string]string{"username": "ada", "password": "canary-password"}, "two ways"},
		"Metadata":           {map[string]string{"githubAppBaseURL": "https://169.254.169.254"}, "denied"},
		"Another's key":      {map[string]string{"githubAppPrivateKey": other.secret["githubAppPrivateKey"]}, "401"},
		"Not installed":      {map[string]string{"githubAppInstallationID": "", "githubAppInstallationOwner": "../ada"}, "404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newGitHubApp(t)
			maps.Copy(a.secret, tc.secret)
			c := newCloud(t, map[string]http.HandlerFunc{
				"api.github.com/app/installations/42/access_tokens": a.proven(reply(`{"token":"ghs_canary","expires_at":"2100-01-01T00:00:00Z"}`)),
			})
			secrets, request := a.subject(c)
			got, err := secrets.Git(t.Context(), request)
			if f := failure.Of(err); f == nil || f.Disposition != failure.Retries || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v (%+v), want it to say %q", err, f, tc.says)
			}
			if err != nil && (strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "eyJ")) || got.Username != "" {
				t.Errorf("%+v, %v", reveal(got), err)
			}
		})
	}
	a := newGitHubApp(t)
	secrets, request := a.subject(newCloud(t, nil))
	for _, change := range []func(*GitRequest){
		func(r *GitRequest) { r.SecretName = "" }, func(r *GitRequest) { r.URL = "ssh://git@github.com/team/app" },
	} {
		r := request
		change(&r)
		_, err := secrets.Git(t.Context(), r)
		if f := failure.Of(err); f == nil || f.Disposition != failure.Stalls || f.Reason != sourcev1.InvalidProviderConfigurationReason {
			t.Errorf("got %v (%+v)", err, f)
		}
	}
}

// longKey is an RSA key of so many bits, which is one as far as reading it tells: to find primes would take long.
func longKey(t *testing.T, bits int) string {
	t.Helper()
	odd := func() *big.Int {
		n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), uint(bits/2)))
		if err != nil {
			t.Fatal(err)
		}
		return n.SetBit(n.SetBit(n.SetBit(n, bits/2-1, 1), bits/2-2, 1), 0, 1)
	}
	for {
		p, q, one := odd(), odd(), big.NewInt(1)
		less, least := new(big.Int).Sub(p, one), new(big.Int).Sub(q, one)
		d := new(big.Int).ModInverse(big.NewInt(65537), new(big.Int).Mul(less, least))
		inverse := new(big.Int).ModInverse(q, p)
		if d == nil || inverse == nil {
			continue
		}
		der, err := asn1.Marshal([]any{0, new(big.Int).Mul(p, q), 65537, d, p, q, new(big.Int).Mod(d, less), new(big.Int).Mod(d, least), inverse})
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: der}))
	}
}
