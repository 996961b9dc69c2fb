package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

// clouds are all hosts of the clouds at one address: what logs in, and the repositories of a Git server.
type clouds struct {
	address string
	git     http.Handler

	mu       sync.Mutex
	logins   map[string]string // Authorization, by host and repository
	accounts []string          // tokens of ServiceAccounts that were exchanged
}

func newClouds(t *testing.T, ca *upstream.CA, repositories string) *clouds {
	t.Helper()
	inner, err := url.Parse(repositories)
	if err != nil {
		t.Fatal(err)
	}
	c := &clouds{git: httputil.NewSingleHostReverseProxy(inner), logins: map[string]string{}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(c.answer))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		identity, err := ca.Server(hello.ServerName)
		return &identity.TLS, err
	}}
	server.StartTLS()
	t.Cleanup(server.Close)
	c.address = server.Listener.Addr().String()
	return c
}

const (
	entraToken  = "canary-entra-41c9"
	entraTenant = "login.microsoftonline.com/11111111-1111-1111-1111-111111111111"
)

func (c *clouds) answer(w http.ResponseWriter, r *http.Request) {
	switch r.Host + r.URL.Path {
	case "login.microsoftonline.com/common/discovery/instance":
		reply(w, `{"tenant_discovery_endpoint":"https://%s/v2.0/.well-known/openid-configuration","metadata":[]}`, entraTenant)
	case entraTenant + "/v2.0/.well-known/openid-configuration":
		reply(w, `{"authorization_endpoint":"https://%[1]s/a","token_endpoint":"https://%[1]s/oauth2/v2.0/token","issuer":"https://%[1]s/v2.0"}`, entraTenant)
	case entraTenant + "/oauth2/v2.0/token":
		c.exchanged(r.FormValue("client_assertion"))
		reply(w, `{"token_type":"Bearer","expires_in":3600,"access_token":%q}`, entraToken)
	case "sts.eu-west-1.amazonaws.com/":
		c.exchanged(r.FormValue("WebIdentityToken"))
		_, _ = io.WriteString(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
			<Credentials><AccessKeyId>id</AccessKeyId><SecretAccessKey>key</SecretAccessKey><SessionToken>session</SessionToken>
			<Expiration>2100-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`)
	default:
		c.repository(w, r)
	}
}

func reply(w http.ResponseWriter, format string, args ...any) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, format, args...)
}

func (c *clouds) exchanged(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accounts = append(c.accounts, token)
}

// repository wants a login, and notes it.
func (c *clouds) repository(w http.ResponseWriter, r *http.Request) {
	login := r.Header.Get("Authorization")
	if login == "" {
		w.Header().Set("WWW-Authenticate", "Basic")
		http.Error(w, "log in", http.StatusUnauthorized)
		return
	}
	name, _, _ := strings.Cut(r.URL.Path, "/info/refs")
	name = strings.TrimSuffix(name, "/git-upload-pack")
	c.mu.Lock()
	c.logins[r.Host+name] = login
	c.mu.Unlock()
	r.Header.Del("Authorization")
	c.git.ServeHTTP(w, r)
}

func (c *clouds) login(repository string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.logins[repository]
}

// TestAccountsLogInToRepositoriesOfClouds with a token of the API server's, which the cloud exchanges. A submodule at
// CodeCommit gets a signature of its own.
func TestAccountsLogInToRepositoriesOfClouds(t *testing.T) {
	t.Parallel()
	const (
		word    = "canary-clouds-proxy-52aa"
		devops  = "dev.azure.com/team/project/_git/app"
		commits = "git-codecommit.eu-west-1.amazonaws.com/v1/repos/"
	)
	s := newScene(t, "--feature-gates=ObjectLevelWorkloadIdentity=true")
	ca := s.upstream.CA()
	s.trusting(ca)
	tip := s.upstream.Repository("team/project/_git/app").Commit("main", "First", oneFile("replicas: 1\n"))
	lib := s.upstream.Repository("v1/repos/lib").Commit("main", "First", oneFile("replicas: 2\n"))
	app := s.upstream.Repository("v1/repos/app").Commit("main", "First", upstream.Files{
		"lib": {Mode: upstream.Submodule, Content: lib}, ".gitmodules": {Content: "[submodule \"lib\"]\n\tpath = lib\n\turl = ../lib\n"},
	})
	c := newClouds(t, ca, s.upstream.HTTP(upstream.HTTPOptions{}).BaseURL())
	way := newProxy(t, c.address, false, word)
	s.hide("the token of Azure", entraToken)
	s.secret("way", map[string]string{"address": way.URL, "username": "out", "password": word})
	for name, annotations := range map[string]map[string]string{
		"azure": {"azure.workload.identity/client-id": "client", "azure.workload.identity/tenant-id": "11111111-1111-1111-1111-111111111111"},
		"aws":   {"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/apps"},
	} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Annotations: annotations}}
		if err := env.Client.Create(t.Context(), account); err != nil {
			t.Fatal(err)
		}
	}
	s.start()
	as := func(provider string) change {
		return func(spec *sourcev1.GitRepositorySpec) { spec.Provider, spec.ServiceAccountName = provider, provider }
	}
	s.create("azure", "https://"+devops, as(sourcev1.GitProviderAzure), proxySecretRef("way"))
	s.create("aws", "https://"+commits+"app", as(sourcev1.GitProviderAWS), proxySecretRef("way"), submodules)
	s.ready("azure", mainAt(tip))
	s.ready("aws", mainAt(app))

	if login := c.login(devops); login != "Bearer "+entraToken {
		t.Errorf("Azure DevOps was shown %q", login)
	}
	if of, inner := c.login(commits+"app"), c.login(commits+"lib"); of == inner || !strings.HasPrefix(of, "Basic ") || !strings.HasPrefix(inner, "Basic ") {
		t.Errorf("CodeCommit was shown %q for the repository and %q for its submodule", of, inner)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, token := range c.accounts {
		if !strings.HasPrefix(token, "eyJ") {
			t.Errorf("%q is no token of an account", token)
		}
	}
	if len(c.accounts) < 2 {
		t.Errorf("%d tokens were exchanged", len(c.accounts))
	}
}
