package registry

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/tests/upstream"
	fixture "sluice.dev/sluice/tests/upstream/registry"
)

func TestRealmRule(t *testing.T) {
	t.Parallel()
	const hosts = "tokens.example.net auth.example.org:8443"
	for _, test := range []struct {
		reason, registry, realm string
		trusted                 bool
	}{
		{"the registry itself", "https://ghcr.io", "https://ghcr.io/token", true},
		{"the registry's host in capitals", "https://ghcr.io", "https://GHCR.io/token", true},
		{"another port of the registry's host", "https://127.0.0.1:5000", "https://127.0.0.1:5001/token", true},
		{"a registry without TLS", "http://127.0.0.1:5000", "http://127.0.0.1:5001/token", true},
		{"TLS where the registry has none", "http://r.example.com", "https://auth.example.com/token", true},
		{"Docker Hub", "https://registry-1.docker.io", "https://auth.docker.io/token", true},
		{"GitLab", "https://registry.gitlab.com", "https://gitlab.com/jwt/auth", true},
		{"an allowed host", "https://ghcr.io", "https://tokens.example.net/token", true},
		{"an allowed host at any port", "https://ghcr.io", "https://tokens.example.net:8443/token", true},
		{"an allowed host and port", "https://ghcr.io", "https://auth.example.org:8443/token", true},
		{"an allowed host at another port", "https://ghcr.io", "https://auth.example.org/token", false},
		{"a downgrade", "https://ghcr.io", "http://ghcr.io/token", false},
		{"another domain", "https://ghcr.io", "https://evil.example/token", false},
		{"a suffix that looks alike", "https://ghcr.io", "https://evilghcr.io/token", false},
		{"a prefix that looks alike", "https://ghcr.io", "https://ghcr.io.evil.com/token", false},
		{"a sibling under a public suffix", "https://a.co.uk", "https://b.co.uk/token", false},
		{"a public suffix itself", "https://r.github.io", "https://github.io/token", false},
		{"a sibling under a private suffix", "https://a.github.io", "https://b.github.io/token", false},
		{"a name in the cluster", "https://r.a.svc.cluster.local", "https://t.b.svc.cluster.local/token", false},
		{"a single label", "https://registry", "https://tokens/token", false},
		{"addresses have no domain", "https://10.0.0.1", "https://10.0.0.2/token", false},
		{"a name instead of the address", "https://127.0.0.1:5000", "https://localhost:5000/token", false},
		{"an address instead of the name", "https://localhost:5000", "https://127.0.0.1:5000/token", false},
		{"metadata service", "https://169.254.169.254", "https://169.254.169.254/token", false},
		{"metadata service mapped to IPv6", "https://ghcr.io", "https://[::ffff:169.254.169.254]/token", false},
		{"a user in it", "https://ghcr.io", "https://ghcr.io@evil.com/token", false},
		{"a user for the registry", "https://ghcr.io", "https://u:p@ghcr.io/token", false},
		{"a file", "https://ghcr.io", "file:///etc/passwd", false},
		{"ftp", "https://ghcr.io", "ftp://ghcr.io/token", false},
		{"no scheme", "https://ghcr.io", "//ghcr.io/token", false},
		{"a path alone", "https://ghcr.io", "/token", false},
		{"opaque", "https://ghcr.io", "https:ghcr.io/token", false},
		{"a fragment", "https://ghcr.io", "https://ghcr.io/token#x", false},
		{"a backslash", "https://ghcr.io", `https://evil.com\@ghcr.io/token`, false},
		{"a line break", "https://ghcr.io", "https://ghcr.io/\r\nX: y", false},
		{"a dot at the end", "https://ghcr.io", "https://ghcr.io./token", false},
		{"an empty port", "https://ghcr.io", "https://ghcr.io:/token", false},
		{"letters that look alike", "https://ghcr.io", "https://ghcг.io/token", false},
		{"nothing", "https://ghcr.io", "", false},
		{"a long one", "https://ghcr.io", "https://ghcr.io/" + strings.Repeat("a", maxRealm), false},
	} {
		origin, err := url.Parse(test.registry)
		if err != nil {
			t.Fatal(err)
		}
		rule := realmRule{registry: origin, hosts: strings.Fields(hosts)}
		_, err = rule.parse(test.realm)
		if test.trusted != (err == nil) || err != nil && !errors.Is(err, ErrRealm) {
			t.Errorf("%s: registry %s, realm %q: %v", test.reason, test.registry, test.realm, err)
		}
	}
}

// hostileRealms point at the sink, or away from the registry in some other way.
func hostileRealms(sink, plainSink string) []string {
	sinkPort := sink[strings.LastIndexByte(sink, ':')+1:]
	plainPort := plainSink[strings.LastIndexByte(plainSink, ':')+1:]
	return []string{
		"https://localhost:" + sinkPort + "/token", "https://LOCALHOST:" + sinkPort + "/token",
		"http://localhost:" + plainPort + "/token", plainSink + "/token", "HTTP" + plainSink[4:] + "/token",
		"https://127.0.0.2:" + sinkPort + "/token", "https://[::1]:" + sinkPort + "/token",
		"https://[::ffff:127.0.0.1]:" + sinkPort + "/token", "https://127.1:" + sinkPort + "/token",
		"https://2130706433:" + sinkPort + "/token", "https://0x7f000001:" + sinkPort + "/token",
		"https://0177.0.0.1:" + sinkPort + "/token", "https://0.0.0.0:" + sinkPort + "/token",
		"https://[::]:" + sinkPort + "/token", "https://127.0.0.1.:" + sinkPort + "/token",
		"https://169.254.169.254/token", "https://[fe80::1]/token", "https://[fd00:ec2::254]/token",
		"http://169.254.169.254/latest/meta-data/", "https://user@localhost:" + sinkPort + "/token",
		"https://127.0.0.1@localhost:" + sinkPort + "/token", "https://u:p@127.0.0.1:" + sinkPort + "/token",
		`https://localhost:` + sinkPort + `\@127.0.0.1/token`, "https://127.0.0.1:" + sinkPort + "#@localhost/token",
		"//localhost:" + sinkPort + "/token", "/token", "token", "", "file:///etc/passwd",
		"file://localhost/etc/passwd", "ftp://127.0.0.1/token", "gopher://127.0.0.1/token", "javascript:alert(1)",
		"unix:///run/docker.sock", "https:localhost:" + sinkPort, "https:///token", "https://:" + sinkPort + "/token",
		"https://127.0.0.1:0/token", "https://127.0.0.1:99999/token", "https://127.0.0.1%00.localhost/token",
		"https://127.0.0.1%2elocalhost:" + sinkPort + "/token", "https://localhost:" + sinkPort + "/token\r\nX: y",
		"https://ⓛocalhost:" + sinkPort + "/token", "https://sub.localhost:" + sinkPort + "/token",
	}
}

func TestForeignRealmsGetNothing(t *testing.T) {
	t.Parallel()
	ca, err := upstream.NewCA("sink")
	if err != nil {
		t.Fatal(err)
	}
	sink := need(upstream.NewSink(t.Context(), upstream.SinkOptions{CA: ca}))(t)
	plainSink := need(upstream.NewSink(t.Context(), upstream.SinkOptions{}))(t)
	realms := hostileRealms(sink.URL(), plainSink.URL())
	var current string
	r := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Bearer realm="+strconv.Quote(current)+`,service="s"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	r.Credential.TLS.CA = append(r.Credential.TLS.CA, ca.PEM()...)
	identityToken := r
	identityToken.Credential.Password = credential.Secret{}
	identityToken.Credential.IdentityToken = credential.NewSecret("identity-" + password)
	anonymous := r
	anonymous.Credential = credential.Registry{TLS: r.Credential.TLS}

	if len(realms) < 30 {
		t.Fatalf("only %d realms", len(realms))
	}
	for _, current = range realms {
		for _, as := range []Repository{r, identityToken, anonymous} {
			client, seen := newClient(t, nil)
			_, err := client.Resolve(t.Context(), as, "v1")
			if !errors.Is(err, ErrRealm) {
				t.Errorf("realm %q: %v", current, err)
			}
			mustNotLeak(t, err)
			if sent := seen.count(""); sent != 1 || seen.count("credentials") != 0 {
				t.Errorf("realm %q: sent %v", current, seen.sent)
			}
		}
	}
	if got := len(sink.Requests()) + len(plainSink.Requests()); got != 0 {
		t.Errorf("the sink got %d requests", got)
	}
}

func TestTokenRedirectsStayInTheRule(t *testing.T) {
	t.Parallel()
	ca, err := upstream.NewCA("sink")
	if err != nil {
		t.Fatal(err)
	}
	sink := need(upstream.NewSink(t.Context(), upstream.SinkOptions{CA: ca}))(t)
	_, port, _ := strings.Cut(strings.TrimPrefix(sink.URL(), "https://"), ":")
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, withIdentityToken := range []bool{false, true} {
			r := serve(t, func(w http.ResponseWriter, request *http.Request) {
				if request.URL.Path == "/token" {
					http.Redirect(w, request, "https://localhost:"+port+"/stolen", status)
					return
				}
				w.Header().Set("WWW-Authenticate", `Bearer realm="https://`+request.Host+`/token",service="s"`)
				w.WriteHeader(http.StatusUnauthorized)
			})
			r.Credential.TLS.CA = append(r.Credential.TLS.CA, ca.PEM()...)
			if withIdentityToken {
				r.Credential.IdentityToken = credential.NewSecret(password)
			}
			client, _ := newClient(t, nil)
			_, err := client.Resolve(t.Context(), r, "v1")
			if err == nil || !withIdentityToken && !errors.Is(err, ErrRealm) {
				t.Errorf("status %d: %v", status, err)
			}
			mustNotLeak(t, err)
		}
	}
	if got := sink.Requests(); len(got) != 0 {
		t.Errorf("the sink got %d requests", len(got))
	}
}

func need[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func TestAnAllowedHostHandsOutTokens(t *testing.T) {
	t.Parallel()
	site, r := distribution(t, fixture.TokenAuth)
	site.Repository(name).PushORAS("v1", layer("x"))
	_, port, _ := strings.Cut(r.Host, ":")
	site.SetRealm("https://localhost:" + port + "/token")
	client, _ := newClient(t, func(o *Options) { o.RealmHosts = []string{"localhost"} })
	if _, err := client.Resolve(t.Context(), r, "v1"); err != nil {
		t.Errorf("Resolve: %v", err)
	}
	strict, _ := newClient(t, nil)
	if _, err := strict.Resolve(t.Context(), r, "v1"); !errors.Is(err, ErrRealm) {
		t.Errorf("Resolve without the host: %v", err)
	}
}
