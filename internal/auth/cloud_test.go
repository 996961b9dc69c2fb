package auth

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/failure"
)

// ends is when the logins of the fake cloud end.
var ends = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// accountToken is the token of every ServiceAccount.
var accountToken = web(`{"sub":"canary-account"}`)

// issuer issues tokens of ServiceAccounts.
type issuer struct{ err error }

type tokens struct {
	client.SubResourceClient
	err error
}

func (i issuer) SubResource(name string) client.SubResourceClient {
	if name != "token" {
		return tokens{err: errors.New("only tokens are issued here")}
	}
	return tokens{err: i.err}
}

func (t tokens) Create(_ context.Context, _ client.Object, body client.Object, _ ...client.SubResourceCreateOption) error {
	if request, ok := body.(*authenticationv1.TokenRequest); ok {
		request.Status.Token = accountToken + "." + strings.Join(request.Spec.Audiences, ",")
	}
	return t.err
}

// annotated is an account that a cloud knows.
func annotated(annotations map[string]string) corev1.ServiceAccount {
	return corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{UID: "1", Annotations: annotations}}
}

func azureAccount() corev1.ServiceAccount {
	return annotated(map[string]string{
		"azure.workload.identity/client-id": "client", "azure.workload.identity/tenant-id": "11111111-1111-1111-1111-111111111111",
	})
}

// provider is a cloud, what it answers, and the login that comes of it.
type provider struct {
	name, host string
	account    corev1.ServiceAccount
	answers    map[string]http.HandlerFunc
	logins     string // host and path that gives the login
	want       login
}

func amazon() provider {
	const assumed = `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
		<Credentials><AccessKeyId>id</AccessKeyId><SecretAccessKey>key</SecretAccessKey><SessionToken>session</SessionToken>
		<Expiration>2100-01-01T00:00:00Z</Expiration></Credentials>
		</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`
	return provider{
		name: "aws", host: "123456789012.dkr.ecr.eu-west-1.amazonaws.com",
		account: annotated(map[string]string{"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/apps"}),
		answers: map[string]http.HandlerFunc{
			"sts.eu-west-1.amazonaws.com/": func(w http.ResponseWriter, r *http.Request) {
				if r.FormValue("WebIdentityToken") != accountToken+".sts.amazonaws.com" {
					http.Error(w, "no token of the account", http.StatusForbidden)
					return
				}
				_, _ = io.WriteString(w, assumed)
			},
			"api.ecr.eu-west-1.amazonaws.com/": reply(`{"authorizationData":[{"authorizationToken":%q,"expiresAt":%d}]}`,
				base64.StdEncoding.EncodeToString([]byte("AWS:canary-ecr")), ends.Unix()),
		},
		logins: "api.ecr.eu-west-1.amazonaws.com/",
		want:   login{Username: "AWS", Password: "canary-ecr"},
	}
}

func microsoft() provider {
	const tenant = "login.microsoftonline.com/11111111-1111-1111-1111-111111111111"
	refresh := web(fmt.Sprintf(`{"exp":%d}`, ends.Unix()))
	return provider{
		name: "azure", host: "apps.azurecr.io", account: azureAccount(),
		answers: map[string]http.HandlerFunc{
			"login.microsoftonline.com/common/discovery/instance": reply(`{"tenant_discovery_endpoint":"https://%s/v2.0/.well-known/openid-configuration","metadata":[]}`, tenant),
			tenant + "/v2.0/.well-known/openid-configuration": reply(
				`{"authorization_endpoint":"https://%[1]s/a","token_endpoint":"https://%[1]s/oauth2/v2.0/token","issuer":"https://%[1]s/v2.0"}`, tenant),
			tenant + "/oauth2/v2.0/token": func(w http.ResponseWriter, r *http.Request) {
				if r.FormValue("client_assertion") != accountToken+".api://AzureADTokenExchange" {
					http.Error(w, "no token of the account", http.StatusForbidden)
					return
				}
				reply(`{"token_type":"Bearer","expires_in":3600,"access_token":"canary-entra"}`)(w, r)
			},
			"apps.azurecr.io/oauth2/exchange": func(w http.ResponseWriter, r *http.Request) {
				if r.FormValue("access_token") != "canary-entra" {
					http.Error(w, "no token of the tenant", http.StatusForbidden)
					return
				}
				reply(`{"refresh_token":%q}`, refresh)(w, r)
			},
		},
		logins: "apps.azurecr.io/oauth2/exchange",
		want:   login{Username: "00000000-0000-0000-0000-000000000000", Password: refresh},
	}
}

func google() provider {
	const pool = "projects/123/locations/global/workloadIdentityPools/pool/providers/cluster"
	return provider{
		name: "gcp", host: "europe-docker.pkg.dev",
		account: annotated(map[string]string{"gcp.auth.fluxcd.io/workload-identity-provider": pool}),
		answers: map[string]http.HandlerFunc{
			"sts.googleapis.com/v1/token": func(w http.ResponseWriter, r *http.Request) {
				if r.FormValue("subject_token") != accountToken+".//iam.googleapis.com/"+pool {
					http.Error(w, "no token of the account", http.StatusForbidden)
					return
				}
				reply(`{"access_token":"canary-google","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer","expires_in":3600}`)(w, r)
			},
		},
		logins: "sts.googleapis.com/v1/token",
		want:   login{Username: "oauth2accesstoken", Password: "canary-google"},
	}
}

// subject reads the provider's account and the Secret of the cloud's proxy.
func (p provider) subject(c *cloud, options Options) (Secrets, RegistryRequest) {
	reader := objects{
		secrets:  map[string]map[string]string{"proxy": c.secret()},
		accounts: map[string]corev1.ServiceAccount{"apps": p.account},
	}
	options.ObjectLevelWorkloadIdentity = true
	if options.Tokens == nil {
		options.Tokens = issuer{}
	}
	return New(reader, options), RegistryRequest{
		Namespace: "apps", Host: p.host, Repository: "team/app",
		ServiceAccountName: "apps", ProxySecretName: "proxy", Provider: p.name,
	}
}

func TestAccountsLogInToClouds(t *testing.T) {
	t.Parallel()
	for _, p := range []provider{amazon(), microsoft(), google()} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			c := newCloud(t, p.answers)
			clock := clocktesting.NewFakePassiveClock(ends.Add(-10 * time.Hour))
			secrets, request := p.subject(c, Options{Clock: clock})
			ask := func() {
				t.Helper()
				got, err := secrets.Registry(t.Context(), request)
				if err != nil {
					t.Fatal(err)
				}
				want := p.want
				want.Proxy, want.ProxyUser, want.ProxyPassword = c.address, proxyUser, proxyPassword
				if diff := cmp.Diff(want, revealLogin(got)); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
			ask()
			ask()
			if p.name == "gcp" {
				return // Its token lives by the clock of the machine.
			}
			if got := c.count(p.logins); got != 1 {
				t.Errorf("want one login for both, got %d", got)
			}
			clock.SetTime(clock.Now().Add(time.Hour - time.Second))
			ask()
			if got := c.count(p.logins); got != 1 {
				t.Errorf("want the login kept for an hour, got %d", got)
			}
			clock.SetTime(ends.Add(-time.Hour))
			ask()
			clock.SetTime(ends.Add(-time.Hour + 48*time.Minute))
			ask()
			if got := c.count(p.logins); got != 3 {
				t.Errorf("want a login renewed after an hour and after four fifths of its life, got %d", got)
			}
		})
	}
}

func TestLoginsAreOfOneIdentityAlone(t *testing.T) {
	t.Parallel()
	p := amazon()
	c := newCloud(t, p.answers)
	clock := clocktesting.NewFakePassiveClock(ends.Add(-10 * time.Hour))
	role := func(name string) corev1.ServiceAccount {
		return annotated(map[string]string{"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/" + name})
	}
	again := role("apps")
	again.UID = "2"
	reader := objects{
		secrets:  map[string]map[string]string{"proxy": c.secret(), "other-proxy": c.secret()},
		accounts: map[string]corev1.ServiceAccount{"apps": role("apps"), "other": role("apps")},
	}
	_, request := p.subject(c, Options{})
	secrets := New(reader, Options{Clock: clock, ObjectLevelWorkloadIdentity: true, Tokens: issuer{}})
	steps := []struct {
		reason string
		change func()
		want   int
	}{
		{"the first", func() {}, 1},
		{"the same again", func() {}, 1},
		{"another repository of the registry", func() { request.Repository = "team/other" }, 1},
		{"another account of the same role", func() { request.ServiceAccountName = "other" }, 2},
		{"the account has another role", func() { reader.accounts["other"] = role("more") }, 3},
		{"the account was made anew", func() { reader.accounts["other"], request.ServiceAccountName = again, "other" }, 4},
		{"an equal proxy of another name", func() { request.ProxySecretName = "other-proxy" }, 4},
		{"the first once more", func() { request.ServiceAccountName = "apps" }, 4},
	}
	for _, step := range steps {
		step.change()
		if _, err := secrets.Registry(t.Context(), request); err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		if got := c.count(p.logins); got != step.want {
			t.Errorf("%s: want %d logins, got %d", step.reason, step.want, got)
		}
	}
}

func TestNoLoginIsKeptIfNoneShallBe(t *testing.T) {
	t.Parallel()
	p := amazon()
	c := newCloud(t, p.answers)
	secrets, request := p.subject(c, Options{MaxTokens: -1})
	for want := 1; want <= 2; want++ {
		if _, err := secrets.Registry(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		if got := c.count(p.logins); got != want {
			t.Errorf("want %d logins, got %d", want, got)
		}
	}
}

func TestWaitingForALogin(t *testing.T) {
	t.Parallel()
	p, other := amazon(), microsoft()
	release, arrived := make(chan struct{}), make(chan struct{}, 1)
	gives := p.answers[p.logins]
	p.answers[p.logins] = func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-release
		gives(w, r)
	}
	maps.Copy(p.answers, other.answers)
	c := newCloud(t, p.answers)
	secrets, request := p.subject(c, Options{Clock: clocktesting.NewFakePassiveClock(ends.Add(-10 * time.Hour))})

	impatient, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := secrets.Registry(impatient, request)
		failed <- err
	}()
	<-arrived
	var patient sync.WaitGroup
	var got atomic.Int32
	for range 3 {
		patient.Go(func() {
			if _, err := secrets.Registry(t.Context(), request); err != nil {
				t.Error(err)
				return
			}
			got.Add(1)
		})
	}
	cancel()
	err := <-failed
	if !errors.Is(err, context.Canceled) || failure.Of(err).Reason != "AuthenticationFailed" {
		t.Errorf("who gives up must not wait on: %v", err)
	}

	elsewhere, away := other.subject(c, Options{})
	elsewhere.clouds = secrets.clouds
	if _, err := elsewhere.Registry(t.Context(), away); err != nil {
		t.Errorf("a login elsewhere waits for this one: %v", err)
	}
	close(release)
	patient.Wait()
	if got.Load() != 3 || c.count(p.logins) != 1 {
		t.Errorf("want one login for 3, got %d for %d", c.count(p.logins), got.Load())
	}
}

func TestCloudsRefuse(t *testing.T) {
	t.Parallel()
	reflect := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		http.Error(w, fmt.Sprintf("canary-free words: %s %s", r.Header.Get("Authorization"), body), http.StatusForbidden)
	}
	hang := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // Only then is it seen that the client leaves.
		<-r.Context().Done()
	}
	cases := map[string]struct {
		reason string
		of     func() provider
		path   string
		answer http.HandlerFunc
		change func(*Options, *provider)
		want   []string
	}{
		"role":        {reason: "The role does not trust the account.", of: amazon, path: "sts.eu-west-1.amazonaws.com/", answer: reflect, want: []string{"AssumeRoleWithWebIdentity"}},
		"registry":    {reason: "The role may not use the registry.", of: amazon, path: "api.ecr.eu-west-1.amazonaws.com/", answer: reflect, want: []string{"exchange the token at the registry"}},
		"odd answer":  {reason: "An answer is not believed to be whole.", of: amazon, path: "api.ecr.eu-west-1.amazonaws.com/", answer: reply(`{}`), want: []string{"no authorization data"}},
		"exchange":    {reason: "The registry repeats what it was given.", of: microsoft, path: "apps.azurecr.io/oauth2/exchange", answer: reflect, want: []string{"exchange the token at the registry", "403"}},
		"half answer": {reason: "A library that stumbles does not take the program with it.", of: microsoft, path: "apps.azurecr.io/oauth2/exchange", answer: reply(`{}`), want: []string{"cannot be read"}},
		"endless":     {reason: "A token that says nothing of its end.", of: microsoft, path: "apps.azurecr.io/oauth2/exchange", answer: reply(`{"refresh_token":%q}`, web(`{}`)), want: []string{"cannot be read"}},
		"tenant":      {reason: "The tenant does not trust the account.", of: microsoft, path: "login.microsoftonline.com/11111111-1111-1111-1111-111111111111/oauth2/v2.0/token", answer: reflect, want: []string{"403"}},
		"pool":        {reason: "The pool does not trust the account.", of: google, path: "sts.googleapis.com/v1/token", answer: reflect, want: []string{"403"}},
		"silence":     {reason: "A cloud that says nothing ends with the login's time.", of: google, path: "sts.googleapis.com/v1/token", answer: hang, change: func(o *Options, _ *provider) { o.LoginTimeout = 200 * time.Millisecond }, want: []string{"context deadline exceeded"}},
		"annotation":  {reason: "The cloud does not know the account.", of: microsoft, change: func(_ *Options, p *provider) { p.account = annotated(nil) }, want: []string{"annotations"}},
		"no tokens":   {reason: "The API server issues none.", of: amazon, change: func(o *Options, _ *provider) { o.Tokens = issuer{err: errors.New("forbidden")} }, want: []string{"create a token of the service account: forbidden"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, options := tc.of(), Options{}
			if tc.path != "" {
				p.answers[tc.path] = tc.answer
			}
			if tc.change != nil {
				tc.change(&options, &p)
			}
			secrets, request := p.subject(newCloud(t, p.answers), options)
			_, err := secrets.Registry(t.Context(), request)
			if err == nil {
				t.Fatalf("%s got no error", tc.reason)
			}
			if found := failure.Of(err); found.Disposition != failure.Retries || found.Reason != "AuthenticationFailed" {
				t.Errorf("%s got %v %s", tc.reason, found.Disposition, found.Reason)
			}
			for _, part := range append(tc.want, "log in to '"+p.host+"' as service account 'apps/apps' with spec.provider "+p.name) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s want %q in %q", tc.reason, part, err)
				}
			}
			printed := strings.ReplaceAll(err.Error(), "canary-free", "")
			keepsSecrets(t, errors.New(printed), map[string]string{"token": accountToken, "proxy": proxyPassword, "entra": "canary-entra"})
		})
	}
}

func TestProxyOfAnObjectIsTheOnlyWay(t *testing.T) {
	t.Parallel()
	p := google()
	c := newCloud(t, p.answers)
	secrets, request := p.subject(c, Options{})
	reader := objects{
		secrets:  map[string]map[string]string{"proxy": {"address": c.address, "username": proxyUser, "password": "canary-wrong"}},
		accounts: map[string]corev1.ServiceAccount{"apps": p.account},
	}
	secrets.reader = reader
	_, err := secrets.Registry(t.Context(), request)
	if err == nil || !strings.Contains(err.Error(), "Proxy Authentication Required") || c.count(p.logins) != 0 {
		t.Fatalf("want the proxy's refusal, got %v", err)
	}
	keepsSecrets(t, err, nil)
}

// The controller's own identity comes from variables, so these tests run by themselves.

// leaveClouds takes from the process what it knows of clouds from the one who runs the tests.
func leaveClouds(t *testing.T) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		for _, cloud := range []string{"AWS_", "AZURE_", "GOOGLE_", "GCE_", "GCLOUD_", "CLOUDSDK_"} {
			if strings.HasPrefix(name, cloud) {
				t.Setenv(name, "")
			}
		}
	}
}

func TestControllerLogsInToAmazon(t *testing.T) {
	leaveClouds(t)
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "canary-key")
	p := amazon()
	c := newCloud(t, p.answers)
	secrets, request := p.subject(c, Options{})
	request.ServiceAccountName = ""
	got, err := secrets.Registry(t.Context(), request)
	if err != nil || got.Password.Reveal() != "canary-ecr" {
		t.Fatalf("got %s, %v", got.Username, err)
	}
	if c.count("sts.eu-west-1.amazonaws.com/") != 0 {
		t.Error("an account's token was asked for")
	}
}

// TestTheControllersLoginIsShownToNoProxy: a proxy sees what is sent to a site that it can stand in for.
func TestTheControllersLoginIsShownToNoProxy(t *testing.T) {
	leaveClouds(t)
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "canary-key")
	p := amazon()
	const repository = "https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/app"
	for reason, tc := range map[string]struct {
		registry func(*RegistryRequest)
		git      func(*GitRequest)
		refused  bool
	}{
		"a proxy alone":                {func(*RegistryRequest) {}, func(*GitRequest) {}, false},
		"certificates alone":           {func(r *RegistryRequest) { r.CertSecretName = "ca" }, func(r *GitRequest) { r.SecretName = "ca" }, false},
		"a proxy and certificates":     {func(r *RegistryRequest) { r.CertSecretName = "ca" }, func(r *GitRequest) { r.SecretName = "ca" }, true},
		"a proxy and any certificate":  {func(r *RegistryRequest) { r.Insecure = true }, nil, true},
		"as an account of the objects": {func(r *RegistryRequest) { r.Insecure, r.ServiceAccountName = true, "apps" }, nil, false},
	} {
		c := newCloud(t, p.answers)
		secrets, request := p.subject(c, Options{})
		secrets.reader = objects{
			secrets:  map[string]map[string]string{"proxy": c.secret(), "ca": {"ca.crt": string(cloudCA.PEM())}},
			accounts: map[string]corev1.ServiceAccount{"apps": p.account},
		}
		request.ServiceAccountName = ""
		tc.registry(&request)
		if reason == "certificates alone" {
			request.ProxySecretName = ""
			t.Setenv("HTTPS_PROXY", "")
			secrets.clouds.keep(loginRequest{provider: "aws"}.key("eu-west-1"), granted{username: "AWS"}, ends)
			secrets.clouds.keep(loginRequest{provider: "aws"}.key(repository), granted{username: "id"}, ends)
		}
		got, err := secrets.Registry(t.Context(), request)
		if f := failure.Of(err); tc.refused != (err != nil) || err != nil && (f == nil || f.Reason != "InvalidProviderConfiguration") || tc.refused != (got.Username == "") {
			t.Errorf("%s: a registry: %q, %v", reason, got.Username, err)
		}
		if tc.git == nil {
			continue
		}
		r := GitRequest{Namespace: "apps", URL: repository, Provider: "aws", ProxySecretName: request.ProxySecretName}
		tc.git(&r)
		login, err := secrets.Git(t.Context(), r)
		if f := failure.Of(err); tc.refused != (err != nil) || err != nil && (f == nil || f.Reason != "InvalidProviderConfiguration") || tc.refused != (login.Username == "") {
			t.Errorf("%s: a repository: %q, %v", reason, login.Username, err)
		}
		if tc.refused && len(c.asked) > 0 {
			t.Errorf("%s: asked for %v", reason, c.asked)
		}
	}
}

// TestAPanicOfALoginIsItsError: those who wait for it together are nobody's callers, so that nobody else would catch it.
func TestAPanicOfALoginIsItsError(t *testing.T) {
	secrets := New(objects{}, Options{})
	_, err := secrets.clouds.once(t.Context(), "key", func(context.Context) (granted, time.Time, error) { panic("half an answer") })
	if err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("got %v", err)
	}
}

func TestNodeLocalIdentityGoesToNoProxy(t *testing.T) {
	var asked atomic.Int32
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Metadata-Flavor", "Google")
		if !strings.HasPrefix(r.URL.Path, "/computeMetadata/v1/instance/service-accounts/default/token") {
			_, _ = io.WriteString(w, "project")
			return
		}
		reply(`{"access_token":"canary-node","expires_in":3600,"token_type":"Bearer"}`)(w, r)
	}))
	t.Cleanup(node.Close)
	leaveClouds(t)
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(node.URL, "http://"))
	p := google()
	c := newCloud(t, p.answers)
	secrets, request := p.subject(c, Options{})
	request.ServiceAccountName = ""
	got, err := secrets.Registry(t.Context(), request)
	if err != nil || got.Password.Reveal() != "canary-node" || asked.Load() == 0 {
		t.Fatalf("got %s, %v", got.Username, err)
	}
	if len(c.asked) != 0 {
		t.Errorf("the proxy was asked for %v", c.asked)
	}
}

func TestPodIdentityGoesToNoProxy(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "canary-pod" {
			http.Error(w, "no token of the pod", http.StatusForbidden)
			return
		}
		reply(`{"AccessKeyId":"id","SecretAccessKey":"key","Token":"t","Expiration":"2100-01-01T00:00:00Z"}`)(w, r)
	}))
	t.Cleanup(node.Close)
	leaveClouds(t)
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", node.URL)
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "canary-pod")
	p := amazon()
	c := newCloud(t, p.answers)
	secrets, request := p.subject(c, Options{})
	request.ServiceAccountName = ""
	if _, err := secrets.Registry(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	want := []string{"CONNECT api.ecr.eu-west-1.amazonaws.com:443", "api.ecr.eu-west-1.amazonaws.com/"}
	if diff := cmp.Diff(want, c.asked); diff != "" {
		t.Errorf("only the registry is behind the proxy: -want +got:\n%s", diff)
	}
}
