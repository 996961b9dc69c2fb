package cli_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/config"
	"sluice.dev/sluice/tests/testenv"
)

// shop serves the pages to everyone who logs in, with the rights of config/ui and no more.
type shop struct {
	t *testing.T
	// origin is what browsers see, and address where it listens.
	origin, address string
	process         string
	trusted         *x509.CertPool
	// tokens are those that were used, which must not be told.
	tokens []string
}

// opensShop starts the command as config/ui does, as a user who has the rights of its ClusterRole.
func opensShop(t *testing.T, args ...string) *shop {
	t.Helper()
	made := &shop{t: t, process: "ui-" + env.NewNamespace(t)}
	kubeconfig, err := env.KubeconfigAs(made.process)
	if err != nil {
		t.Fatal(err)
	}
	grants(t, made.process, rbacv1.Subject{Kind: "User", Name: made.process}, rulesOfUI(t), "")
	serving := []string{"--host", "sluice.test"}
	made.origin = "http://sluice.test"
	if !slices.Contains(args, "--behind-proxy") {
		made.origin = "https://sluice.test"
		certificate, key, pool := certified(t)
		made.trusted = pool
		serving = append(serving, "--tls-cert", certificate, "--tls-key", key)
	}
	if !slices.Contains(args, "--auth") {
		serving = append(serving, "--auth", "token")
	}
	shown := served(t, kubeconfig, func(got answer) {
		if slices.ContainsFunc(made.tokens, func(token string) bool { return strings.Contains(got.out+got.told, token) }) {
			t.Error("a token is in the log")
		}
	}, append(serving, args...)...)
	made.address = strings.TrimPrefix(strings.TrimSpace(shown()), "listening on ")
	return made
}

// certified makes a certificate of sluice.test.
func certified(t *testing.T) (certificate, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"sluice.test"}, NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	rawKey, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for path, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: raw}, key: {Type: "PRIVATE KEY", Bytes: rawKey}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key, pool
}

// rulesOfUI are those of the ClusterRole in config/ui.
func rulesOfUI(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	objects, err := config.Build("../../config/ui")
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range objects {
		if obj.GetKind() == "ClusterRole" {
			var role rbacv1.ClusterRole
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &role); err != nil {
				t.Fatal(err)
			}
			return role.Rules
		}
	}
	t.Fatal("config/ui has no ClusterRole")
	return nil
}

// grants gives somebody rights, in a namespace or in all. The binding has the name.
func grants(t *testing.T, name string, whom rbacv1.Subject, rules []rbacv1.PolicyRule, namespace string) client.Object {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	var binding client.Object = &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name}, Subjects: []rbacv1.Subject{whom}}
	if namespace != "" {
		binding = &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name}, Subjects: []rbacv1.Subject{whom}}
	}
	for _, obj := range []client.Object{role, binding} {
		if err := env.Client.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = env.Client.Delete(context.WithoutCancel(t.Context()), obj) })
	}
	return binding
}

// tenant is a ServiceAccount who may read and patch the installations of its own namespace.
type tenant struct {
	name, namespace string
	account         *corev1.ServiceAccount
	binding         client.Object
	token           string
}

func newTenant(t *testing.T, namespace string) *tenant {
	t.Helper()
	made := &tenant{name: "system:serviceaccount:" + namespace + ":tenant", namespace: namespace}
	made.account = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tenant"}}
	if err := env.Client.Create(t.Context(), made.account); err != nil {
		t.Fatal(err)
	}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{"modules.sluice.dev"}, Resources: []string{"moduleinstallations"}, Verbs: []string{"get", "list", "patch"}}}
	made.binding = grants(t, "tenant-"+namespace, rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: "tenant"}, rules, namespace)
	request := &authenticationv1.TokenRequest{}
	if err := env.Client.SubResource("token").Create(t.Context(), made.account, request); err != nil {
		t.Fatal(err)
	}
	made.token = request.Status.Token
	return made
}

// visitor is a browser of nobody yet.
func (s *shop) visitor() *browser {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.address)
	}
	transport := &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: s.trusted, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &browser{t: s.t, client: &http.Client{Jar: jar, Transport: transport}, origin: s.origin, base: "/"}
}

// logIn is the browser of somebody whose token is taken.
func (s *shop) logIn(token string) *browser {
	s.t.Helper()
	made := s.visitor()
	s.tokens = append(s.tokens, token)
	if code, text, _ := made.ask(http.MethodPost, "/login", url.Values{"token": {token}, "to": {"/installations"}}.Encode()); code != http.StatusOK {
		s.t.Fatalf("the login answers %d: %s", code, text)
	}
	return made
}

// TestTwoTenantsSeeNothingOfEachOther: in tables, counts, searches, pages and streams.
func TestTwoTenantsSeeNothingOfEachOther(t *testing.T) {
	t.Parallel()
	mine, theirs := three(t), three(t)
	tenant := newTenant(t, mine)
	pages := opensShop(t)
	b := pages.logIn(tenant.token)
	list := b.eventually("installations", "3 found")
	if strings.Contains(list, theirs) || !strings.Contains(list, "sluice-view") || !strings.Contains(list, tenant.name) {
		t.Errorf("the table of a tenant: %s", list)
	}
	overview := b.page("")
	if strings.Contains(overview, theirs) || !strings.Contains(overview, "moduleinstallations</a></th><td>3</td>") {
		t.Errorf("the overview of a tenant: %s", overview)
	}
	for _, nothing := range []string{"installations?q=" + theirs, "installations?namespace=" + theirs, "sources", "modules?q=" + mine} {
		if found := b.page(nothing); !strings.Contains(found, "0 found") || !strings.Contains(found, "sluice-view") {
			t.Errorf("%s: %s", nothing, found)
		}
	}
	name := anInstallation(t, list, mine)
	if code, text, _ := b.ask(http.MethodGet, "/o/"+installations+"/"+theirs+"/"+name, ""); code == http.StatusOK || !strings.Contains(text, "forbidden") {
		t.Errorf("an object of the other answers %d: %s", code, text)
	}
	events := b.streams("installations", "", "o/"+installations+"/"+theirs+"/"+name)
	touch(t, theirs, name)
	touch(t, mine, name)
	for _, page := range []string{"installations", ""} {
		if got := <-events[page]; strings.Contains(got, theirs) {
			t.Errorf("the stream of %q tells %s", page, got)
		}
	}
	select {
	case got := <-events["o/"+installations+"/"+theirs+"/"+name]:
		t.Errorf("the stream of the other's object tells %s", got)
	default:
	}
}

// anInstallation is the name of one that a page has.
func anInstallation(t *testing.T, page, namespace string) string {
	t.Helper()
	_, after, found := strings.Cut(page, "/ModuleInstallation/"+namespace+"/")
	name, _, ends := strings.Cut(after, `"`)
	if !found || !ends {
		t.Fatalf("no installation of %s is on %s", namespace, page)
	}
	return name
}

// touch changes an installation.
func touch(t *testing.T, namespace, name string) {
	t.Helper()
	obj := object{t, modulesv1.GroupVersion.WithKind("ModuleInstallation"), namespace, name}
	obj.patch("metadata: {annotations: {touched: '" + rand.Text() + "'}}")
}

// streams opens those of some pages, and waits until they are open. Each gives its first event.
func (b *browser) streams(pages ...string) map[string]chan string {
	b.t.Helper()
	made := map[string]chan string{}
	for _, page := range pages {
		first := make(chan string, 1)
		made[page] = first
		lines := b.opens("/live?page=" + url.QueryEscape(page))
		if line, err := lines.ReadString('\n'); err != nil || line != ":\n" {
			b.t.Fatalf("the stream of %q begins with %q, %v", page, line, err)
		}
		go func() {
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					first <- "ended: " + err.Error()
					return
				}
				if line != "\n" && line != ":\n" {
					rest, _ := lines.ReadString('\n')
					first <- line + rest
					return
				}
			}
		}()
	}
	return made
}

// TestRevokedRightsAreHonoured: in streams too, without any news; and whoever is not known any more is out.
func TestRevokedRightsAreHonoured(t *testing.T) {
	t.Parallel()
	namespace := three(t)
	tenant := newTenant(t, namespace)
	pages := opensShop(t)
	b := pages.logIn(tenant.token)
	b.eventually("installations", "3 found")
	events := b.streams("installations")
	if err := env.Client.Delete(t.Context(), tenant.binding); err != nil {
		t.Fatal(err)
	}
	if got := <-events["installations"]; !strings.HasPrefix(got, "event: reload") {
		t.Errorf("the stream tells %s", got)
	}
	if list := b.page("installations"); !strings.Contains(list, "0 found") || strings.Contains(list, "/ModuleInstallation/") {
		t.Errorf("after that, the table has %s", list)
	}
	events = b.streams("installations")
	if err := env.Client.Delete(t.Context(), tenant.account); err != nil {
		t.Fatal(err)
	}
	if got := <-events["installations"]; !strings.HasPrefix(got, "event: reload") && !strings.HasPrefix(got, "ended") {
		t.Errorf("the stream of one who is gone tells %s", got)
	}
	testenv.Eventually(t, "one who is gone is asked for a token", func(context.Context) (bool, string) {
		code, text, _ := b.ask(http.MethodGet, "/installations", "")
		return code == http.StatusUnauthorized && strings.Contains(text, "Bearer token"), text
	})
}

// TestWhoActsIsThePerson: the audit log has every write under their own name, and nothing under the process's but lists and watches
// of our kinds.
func TestWhoActsIsThePerson(t *testing.T) {
	t.Parallel()
	namespace := three(t)
	tenant := newTenant(t, namespace)
	pages := opensShop(t, "--actions")
	b := pages.logIn(tenant.token)
	name := anInstallation(t, b.eventually("installations", "3 found"), namespace)
	obj := object{t, modulesv1.GroupVersion.WithKind("ModuleInstallation"), namespace, name}
	of := "/o/" + installations + "/" + namespace + "/" + name
	for _, page := range []string{of, of + "/graph", of + "/why", of + "/do/suspend"} {
		b.ask(http.MethodGet, page, "")
	}
	b.ask(http.MethodPost, of+"/plan", "")
	if code, text, _ := b.ask(http.MethodPost, of+"/do/suspend", "reason=tired&version="+obj.get().GetResourceVersion()); code != http.StatusOK {
		t.Fatalf("suspend answers %d: %s", code, text)
	}
	if by := obj.get().GetAnnotations()["sluice.dev/suspended-by"]; by != tenant.name {
		t.Errorf("suspended by %q", by)
	}
	requests, err := env.Requests(tenant.name)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(requests, func(r testenv.Request) bool { return r.Verb == "patch" && r.Object.Name == name }) {
		t.Error("the audit log has no patch by the tenant")
	}
	requests, err = env.Requests(pages.process)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range requests {
		ours := strings.HasSuffix(r.Object.Group, "sluice.dev") || strings.HasSuffix(r.Object.Group, "fluxcd.io")
		if r.Object.Resource != "" && (!ours || r.Verb != "list" && r.Verb != "watch") || r.Impersonated() != "" {
			t.Errorf("the process asked for %s %s", r.Verb, r.URI)
		}
	}
}

// TestLogins: only those whom the API server knows by a token of their own come in.
func TestLogins(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	tenant := newTenant(t, namespace)
	pages := opensShop(t)
	pages.tokens = append(pages.tokens, tenant.token)
	b := pages.visitor()
	for _, token := range []string{"", " ", "x", "a.b.c", tenant.token + "x", strings.Repeat("x", 20<<10)} {
		if code, text, headers := b.ask(http.MethodPost, "/login", url.Values{"token": {token}}.Encode()); code != http.StatusUnauthorized || headers.Get("Set-Cookie") != "" || token != "" && strings.Contains(text, tenant.token) {
			t.Errorf("a token %.10q answers %d: %s", token, code, text)
		}
	}
	for _, path := range []string{"/", "/installations", "/live?page=installations", "/o/" + installations + "/" + namespace + "/a"} {
		if code, text, _ := b.ask(http.MethodGet, path, ""); code != http.StatusUnauthorized || !strings.Contains(text, "Bearer token") {
			t.Errorf("%s answers %d without a login", path, code)
		}
	}
	if code, text, _ := b.ask(http.MethodGet, "/healthz", "", "Host", "10.0.0.1:8443"); code != http.StatusOK || text != "ok\n" {
		t.Errorf("the health answers %d: %s", code, text)
	}
	for host, path := range map[string]string{"10.0.0.1:8443": "/", "evil.example": "/assets/ui.js"} {
		if code, _, _ := b.ask(http.MethodGet, path, "", "Host", host); code != http.StatusMisdirectedRequest {
			t.Errorf("%s of %s answers %d", path, host, code)
		}
	}
	for to, want := range map[string]string{"//evil.example/": "/", "https://evil.example": "/", `/\evil.example`: "/", "/sources?q=a": "/sources"} {
		_, _, headers := b.ask(http.MethodPost, "/login", url.Values{"token": {tenant.token}, "to": {to}}.Encode())
		if headers.Get("X-Test-Path") != want {
			t.Errorf("a login that leads to %s comes to %s", to, headers.Get("X-Test-Path"))
		}
	}
	if code, _, headers := b.ask(http.MethodGet, "/", ""); code != http.StatusOK || headers.Get("Strict-Transport-Security") == "" {
		t.Errorf("the overview answers %d: %v", code, headers)
	}
	if code, _, _ := b.ask(http.MethodPost, "/logout", "", "Sec-Fetch-Site", "cross-site"); code != http.StatusForbidden {
		t.Errorf("another site logs people out: %d", code)
	}
	events := b.opens("/live?page=installations")
	b.ask(http.MethodPost, "/logout", "")
	_, _ = io.Copy(io.Discard, events) // It ends, whatever it told before.
	if code, _, _ := b.ask(http.MethodGet, "/", ""); code != http.StatusUnauthorized {
		t.Errorf("one who has logged out gets %d", code)
	}
}

// TestTheProxyBringsTheToken: with --auth header each request has its own, and there is no other way in.
func TestTheProxyBringsTheToken(t *testing.T) {
	t.Parallel()
	namespace := three(t)
	tenant, other := newTenant(t, namespace), newTenant(t, env.NewNamespace(t))
	pages := opensShop(t, "--auth", "header", "--behind-proxy")
	b := pages.visitor()
	as := func(token string) []string { return []string{"Authorization", token} }
	for _, given := range []string{"", "Bearer ", "Bearer x", "Basic " + tenant.token} {
		if code, _, _ := b.ask(http.MethodGet, "/installations", "", as(given)...); code != http.StatusUnauthorized {
			t.Errorf("%.10q answers %d", given, code)
		}
	}
	if code, _, _ := b.ask(http.MethodPost, "/login", url.Values{"token": {tenant.token}}.Encode()); code != http.StatusUnauthorized {
		t.Errorf("the form answers %d", code)
	}
	testenv.Eventually(t, "the tenant's are found", func(context.Context) (bool, string) {
		_, text, headers := b.ask(http.MethodGet, "/installations", "", as("Bearer "+tenant.token)...)
		return strings.Contains(text, "3 found") && headers.Get("Set-Cookie") == "" && !strings.Contains(text, "Log out"), text
	})
	if code, text, _ := b.ask(http.MethodGet, "/installations", "", as("Bearer "+other.token)...); code != http.StatusOK || !strings.Contains(text, "0 found") {
		t.Errorf("another one gets %d: %s", code, text)
	}
	if code, _, _ := b.ask(http.MethodGet, "/installations", ""); code != http.StatusUnauthorized {
		t.Errorf("without a token after that: %d", code)
	}
}

// TestUIFlags: what does not go together is refused before anything is served.
func TestUIFlags(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{
		"--listen 0.0.0.0:0":                             "--auth",
		"--listen :0":                                    "--auth",
		"--listen [::]:0":                                "--auth",
		"--listen example.com:80":                        "--auth",
		"--listen 127.0.0.1":                             "ADDRESS:PORT",
		"--listen 127.0.0.1:0 --host a":                  "--auth",
		"--listen 127.0.0.1:0 --behind-proxy":            "--auth",
		"--listen :0 --auth who --host a --behind-proxy": "token or header",
		"--listen :0 --auth token --behind-proxy":        "--host",
		"--listen :0 --auth token --host a":              "TLS",
		"--listen :0 --auth token --host a --tls-cert a": "TLS",
		"--listen :0 --auth token --host a --tls-cert a --tls-key b --behind-proxy": "TLS",
		"--listen :0 --auth token --host a --tls-cert /none --tls-key /none":        "/none",
	} {
		if got := run(t, env.Kubeconfig, append([]string{"ui"}, strings.Fields(flags)...)...); got.code != 3 || got.out != "" || !strings.Contains(got.told, want) {
			t.Errorf("%s ends with %d: %s", flags, got.code, got.told)
		}
	}
}
