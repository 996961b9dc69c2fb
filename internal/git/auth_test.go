package git_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/upstream"
)

func TestHTTPCredentials(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	hash := f.Repository("app").Commit("main", "m", upstream.Text(map[string]string{"a": "a"}))
	server := f.HTTP(upstream.HTTPOptions{Access: upstream.Access{Username: "user", Password: canary, BearerToken: "token-" + canary}})
	secret := credential.NewSecret[string]
	userinfo := strings.Replace(server.URL("app"), "http://", "http://user:"+canary+"@", 1)
	wrongUserinfo := strings.Replace(server.URL("app"), "http://", "http://user:wrong-"+canary+"@", 1)
	cases := map[string]struct {
		reason string
		url    string
		as     credential.Git
		want   error
	}{
		"basic":          {"User name and password.", server.URL("app"), credential.Git{Username: "user", Password: secret(canary)}, nil},
		"bearer":         {"A token.", server.URL("app"), credential.Git{BearerToken: secret("token-" + canary)}, nil},
		"userinfo":       {"What the URL says, without a credential.", userinfo, credential.Git{}, nil},
		"not both":       {"A credential comes before the URL.", wrongUserinfo, credential.Git{Username: "user", Password: secret(canary)}, nil},
		"none":           {"Nothing to show.", server.URL("app"), credential.Git{}, git.ErrAuthentication},
		"wrong":          {"A wrong password.", server.URL("app"), credential.Git{Username: "user", Password: secret("no-" + canary)}, git.ErrAuthentication},
		"wrong token":    {"A wrong token.", server.URL("app"), credential.Git{BearerToken: secret("no-" + canary)}, git.ErrAuthentication},
		"wrong userinfo": {"A wrong password in the URL.", wrongUserinfo, credential.Git{}, git.ErrAuthentication},
		"contradiction":  {"Both ways at once.", server.URL("app"), credential.Git{Username: "u", BearerToken: secret(canary)}, git.ErrCredential},
		"line break":     {"A token that is no header.", server.URL("app"), credential.Git{BearerToken: secret(canary + "\r\nX: y")}, git.ErrCredential},
		"colon":          {"A name that basic auth cannot carry.", server.URL("app"), credential.Git{Username: "a:b", Password: secret(canary)}, git.ErrCredential},
	}
	for name, c := range cases {
		client := newClient(t)
		remote := git.Remote{URL: c.url, Credential: c.as}
		_, listErr := client.ListRefs(t.Context(), remote)
		commit, fetchErr := client.Fetch(t.Context(), remote, git.Want{Hash: hash})
		if c.want == nil {
			if err := errors.Join(listErr, fetchErr); err != nil {
				t.Errorf("%s %s: %v", name, c.reason, err)
				continue
			}
			if err := commit.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		checkError(t, name, listErr, c.want)
		checkError(t, name, fetchErr, c.want)
	}
}

func TestTokenFixedAfterRefusal(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	f.Repository("app").Commit("main", "m", upstream.Text(map[string]string{"a": "a"}))
	server := f.HTTP(upstream.HTTPOptions{})
	client := newClient(t)
	if _, err := client.ListRefs(t.Context(), git.Remote{URL: server.URL("app")}); err != nil {
		t.Fatal(err)
	}
	server.SetAccess(upstream.Access{BearerToken: canary})
	_, err := client.ListRefs(t.Context(), git.Remote{URL: server.URL("app")})
	checkError(t, "token needed now", err, git.ErrAuthentication)
	with := git.Remote{URL: server.URL("app"), Credential: credential.Git{BearerToken: credential.NewSecret(canary)}}
	if _, err := client.ListRefs(t.Context(), with); err != nil {
		t.Error(err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	f.Repository("app").Commit("main", "m", upstream.Text(map[string]string{"a": "a"}))
	ca, clients, other := f.CA(), f.CA(), f.CA()
	identity, err := clients.Client("someone")
	if err != nil {
		t.Fatal(err)
	}
	expired, err := ca.ExpiredServer("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := ca.Server("example.com")
	if err != nil {
		t.Fatal(err)
	}
	good := f.HTTP(upstream.HTTPOptions{CA: ca})
	mutual := f.HTTP(upstream.HTTPOptions{CA: ca, ClientCA: clients})
	old := f.HTTP(upstream.HTTPOptions{Identity: &expired})
	misnamed := f.HTTP(upstream.HTTPOptions{Identity: &foreign})
	key := credential.NewSecret(identity.KeyPEM)
	cases := map[string]struct {
		reason string
		server *upstream.GitHTTP
		tls    credential.TLS
		want   string // a word of the error; empty when it must work
	}{
		"custom ca":       {"An authority of one's own.", good, credential.TLS{CA: ca.PEM()}, ""},
		"several cas":     {"More than one authority.", good, credential.TLS{CA: append(other.PEM(), ca.PEM()...)}, ""},
		"client":          {"A client certificate.", mutual, credential.TLS{CA: ca.PEM(), Certificate: identity.CertPEM, Key: key}, ""},
		"unknown":         {"Nobody vouches for the server.", good, credential.TLS{}, "unknown authority"},
		"other":           {"Somebody else does.", good, credential.TLS{CA: other.PEM()}, "unknown authority"},
		"expired":         {"The certificate has ended.", old, credential.TLS{CA: ca.PEM()}, "expired"},
		"name":            {"It is for another host.", misnamed, credential.TLS{CA: ca.PEM()}, "127.0.0.1"},
		"no client":       {"The server wants a certificate.", mutual, credential.TLS{CA: ca.PEM()}, "certificate"},
		"bad ca":          {"No PEM at all.", good, credential.TLS{CA: []byte("hello")}, "ca certificate"},
		"key as ca":       {"PEM of something else.", good, credential.TLS{CA: identity.KeyPEM}, "ca certificate"},
		"no key":          {"Half a pair.", mutual, credential.TLS{Certificate: identity.CertPEM}, "client certificate and key: tls: failed to find any PEM data in key input"},
		"no certificate":  {"The other half.", mutual, credential.TLS{Key: key}, "client certificate"},
		"bad key":         {"No PEM.", mutual, credential.TLS{Certificate: identity.CertPEM, Key: credential.NewSecret(canary)}, "client certificate and key: tls: failed to find any PEM data in key input"},
		"bad certificate": {"No PEM.", mutual, credential.TLS{Certificate: []byte("x"), Key: key}, "client certificate"},
		"mismatch":        {"Two halves of different pairs.", mutual, credential.TLS{Certificate: ca.PEM(), Key: key}, "client certificate and key"},
	}
	for name, c := range cases {
		_, err := newClient(t).ListRefs(t.Context(), git.Remote{URL: c.server.URL("app"), Credential: credential.Git{TLS: c.tls}})
		if c.want == "" {
			if err != nil {
				t.Errorf("%s %s: %v", name, c.reason, err)
			}
			continue
		}
		checkError(t, name, err, nil)
		if err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error must say %q: %v", name, c.want, err)
		}
		configuration := strings.HasPrefix(c.want, "client") || strings.HasPrefix(c.want, "ca ")
		if got := errors.Is(err, git.ErrCredential); got != configuration {
			t.Errorf("%s: is a credential error: %t", name, got)
		}
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		f := upstream.ForTest(t)
		hash := f.Repository("app").Commit("main", "m", upstream.Text(map[string]string{"a": "a"}))
		old, moved := f.HTTP(upstream.HTTPOptions{}), f.HTTP(upstream.HTTPOptions{})
		old.Always(upstream.Redirect(code, moved.BaseURL()))
		client := newClient(t)
		remote := signed(old.URL("app"))
		for range 2 {
			if _, err := client.ListRefs(t.Context(), remote, "refs/heads/main"); err != nil {
				t.Errorf("%d: list: %v", code, err)
			}
		}
		fetch(t, client, remote, git.Want{Hash: hash})
		for _, request := range moved.Requests() {
			if request.Authorized || request.Header.Get("Referer") != "" {
				t.Errorf("%d: the other origin got %v", code, request.Header)
			}
		}
		if moved.Count(upstream.Fetch) != 1 || old.Count(upstream.Fetch) != 0 {
			t.Errorf("%d: the pack must come from the new place", code)
		}
		if old.Count(upstream.InfoRefs) != 3 {
			t.Errorf("%d: a redirect must not be remembered: %d advertisements", code, old.Count(upstream.InfoRefs))
		}
	}
}

func TestRefusedRedirects(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	hash := f.Repository("app").Commit("main", "m", upstream.Text(map[string]string{"a": "a"}))
	sink := f.Sink(upstream.SinkOptions{})
	ca := f.CA()

	plain := f.HTTP(upstream.HTTPOptions{})
	plain.Always(upstream.Redirect(http.StatusFound, plain.BaseURL()))
	_, err := newClient(t).ListRefs(t.Context(), signed(plain.URL("app")))
	checkError(t, "loop", err, transport.ErrRedirect)
	if plain.Count() != 4 {
		t.Errorf("loop: want one request and three redirects, got %d requests", plain.Count())
	}

	secure := f.HTTP(upstream.HTTPOptions{CA: ca})
	secure.Always(upstream.Redirect(http.StatusFound, sink.URL()))
	remote := signed(secure.URL("app"))
	remote.Credential.TLS.CA = ca.PEM()
	_, err = newClient(t).ListRefs(t.Context(), remote)
	checkError(t, "downgrade", err, transport.ErrRedirect)

	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		post := f.HTTP(upstream.HTTPOptions{})
		post.Always(upstream.Redirect(code, sink.URL()).On(upstream.LsRefs, upstream.Fetch))
		_, err = newClient(t).ListRefs(t.Context(), signed(post.URL("app")))
		checkError(t, "post", err, git.ErrProtocol)
		_, err = newClient(t).Fetch(t.Context(), signed(post.URL("app")), git.Want{Hash: hash})
		checkError(t, "post", err, git.ErrProtocol)
	}
	if got := sink.Requests(); len(got) != 0 {
		t.Errorf("the sink was asked: %v", got)
	}

	away := f.HTTP(upstream.HTTPOptions{})
	away.Always(upstream.Redirect(http.StatusFound, sink.URL()))
	_, err = newClient(t).ListRefs(t.Context(), signed(away.URL("app")))
	checkError(t, "away", err, git.ErrNotFound)
	if len(sink.Requests()) != 1 || len(sink.Secrets()) != 0 {
		t.Errorf("the sink got %v", sink.Secrets())
	}

	metadata := f.HTTP(upstream.HTTPOptions{})
	metadata.Always(upstream.Redirect(http.StatusFound, "http://169.254.169.254"))
	_, err = newClient(t).ListRefs(t.Context(), signed(metadata.URL("app")))
	checkError(t, "metadata", err, transport.ErrDenied)
}

func TestRefusedURLsAreNotRepeated(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"https://user:" + canary + "@host/a?b", "https://host/a?token=" + canary, "file://user:" + canary + "@host/a",
		"https://user:" + canary + "@ho st/a", "https://user:" + canary + "%zz@host/a", canary + "@host:a",
		"https://u:" + url.QueryEscape(canary) + "\n@host/a", "ssh://user:" + canary + "@host/a",
	} {
		_, err := newClient(t).ListRefs(t.Context(), git.Remote{URL: raw})
		checkError(t, "url", err, git.ErrURL)
	}
}
