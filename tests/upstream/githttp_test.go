package upstream_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/tests/upstream"
)

// client runs the real git with extra environment variables, and gives what it printed and said.
func client(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	out, err := upstream.Git(t.Context(), t.TempDir(), env, args...)
	return string(out), err
}

// sample is a repository with one commit under main.
func sample(t *testing.T, fixture *upstream.Fixture) (*upstream.Edited, string) {
	t.Helper()
	repository := fixture.Repository("app")
	return repository, repository.Commit("main", "first", upstream.Text(map[string]string{"a.yaml": "a: 1\n"}))
}

// kinds lists the kinds of the server's requests.
func kinds(server *upstream.GitHTTP) []upstream.Kind {
	var all []upstream.Kind
	for _, request := range server.Requests() {
		all = append(all, request.Kind)
	}
	return all
}

func TestGitClonesOverHTTP(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		v2     bool
		want   []upstream.Kind
	}{
		"V2": {
			reason: "Under v2 the list of refs is a request of its own.",
			v2:     true,
			want:   []upstream.Kind{upstream.InfoRefs, upstream.LsRefs, upstream.Fetch},
		},
		"V0": {
			reason: "With v2 switched off the advertisement lists the refs.",
			want:   []upstream.Kind{upstream.InfoRefs, upstream.Fetch},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := upstream.ForTest(t)
			_, commit := sample(t, fixture)
			server := fixture.HTTP(upstream.HTTPOptions{WithoutV2: !tc.v2})

			dir := filepath.Join(t.TempDir(), "clone")
			if _, err := client(t, nil, "clone", "-q", server.URL("app"), dir); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if head, err := client(t, nil, "-C", dir, "rev-parse", "HEAD"); err != nil || strings.TrimSpace(head) != commit {
				t.Errorf("%s: cloned %s, %v, want %s", tc.reason, head, err, commit)
			}
			if diff := cmp.Diff(tc.want, kinds(server)); diff != "" {
				t.Errorf("%s: requests (-want +got):\n%s", tc.reason, diff)
			}
			for _, request := range server.Requests() {
				if request.Status != http.StatusOK || request.BytesOut == 0 || request.Authorized {
					t.Errorf("%s: noted %+v", tc.reason, request)
				}
			}
			if got := server.Requests()[0].Protocol; got != "version=2" {
				t.Errorf("%s: the client asked for protocol %q", tc.reason, got)
			}
			if server.BytesOut() == 0 || server.BytesIn() == 0 || server.Connections() == 0 {
				t.Errorf("%s: counters stayed at zero", tc.reason)
			}
			server.Reset()
			if server.Count() != 0 || server.BytesOut() != 0 {
				t.Errorf("%s: counters are not reset", tc.reason)
			}
		})
	}
}

func TestCountTellsListingFromFetching(t *testing.T) {
	t.Parallel()
	fixture := upstream.ForTest(t)
	_, commit := sample(t, fixture)
	server := fixture.HTTP(upstream.HTTPOptions{})

	out, err := client(t, nil, "ls-remote", server.URL("app"), "refs/heads/main")
	if err != nil || !strings.HasPrefix(out, commit) {
		t.Fatalf("listed %q, %v, want %s", out, err, commit)
	}
	if got := [3]int{server.Count(), server.Count(upstream.LsRefs), server.Count(upstream.Fetch)}; got != [3]int{2, 1, 0} {
		t.Errorf("all, ls-refs, fetch: %v, want [2 1 0]", got)
	}
}

func TestAccessIsAskedFor(t *testing.T) {
	t.Parallel()
	fixture := upstream.ForTest(t)
	sample(t, fixture)
	server := fixture.HTTP(upstream.HTTPOptions{})
	basic := upstream.Access{Username: "ada", Password: "secret"}
	bearer := upstream.Access{BearerToken: "token"}

	cases := []struct {
		reason string
		access upstream.Access
		header string
		want   string
	}{
		{reason: "Nothing is asked, nothing is needed."},
		{reason: "Without a password the client is challenged.", access: basic, want: "could not read Username"},
		{reason: "The right password is let in.", access: basic, header: "Basic YWRhOnNlY3JldA=="},
		{reason: "A wrong password is not.", access: basic, header: "Basic YWRhOndyb25n", want: "could not read Username"},
		{reason: "The right token is let in.", access: bearer, header: "Bearer token"},
		{reason: "A wrong token is not.", access: bearer, header: "Bearer other", want: "could not read Username"},
		{reason: "An empty token is no key to a server with passwords.", access: basic, header: "Bearer ", want: "could not read Username"},
	}
	for _, tc := range cases {
		server.SetAccess(tc.access)
		server.Reset()
		_, err := client(t, nil, "-c", "http.extraHeader=Authorization: "+tc.header, "ls-remote", server.URL("app"))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
		for _, request := range server.Requests() {
			if request.Authorized != (tc.header != "") {
				t.Errorf("%s: authorized is %v", tc.reason, request.Authorized)
			}
		}
	}
}

func TestTLSAsksForTheRightCertificates(t *testing.T) {
	t.Parallel()
	fixture := upstream.ForTest(t)
	_, commit := sample(t, fixture)
	ca, clients := fixture.CA(), fixture.CA()
	ours, err := clients.Client("ada")
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := ca.Client("mallory")
	if err != nil {
		t.Fatal(err)
	}
	expired, err := ca.ExpiredServer("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	plain := fixture.HTTP(upstream.HTTPOptions{CA: ca})
	mutual := fixture.HTTP(upstream.HTTPOptions{CA: ca, ClientCA: clients})
	old := fixture.HTTP(upstream.HTTPOptions{Identity: &expired})

	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	trust := "http.sslCAInfo=" + file("ca.pem", ca.PEM())
	cases := map[string]struct {
		reason string
		server *upstream.GitHTTP
		config []string
		fails  bool
	}{
		"Trusted": {reason: "The authority is known.", server: plain, config: []string{trust}},
		"Unknown": {reason: "Nobody knows the authority.", server: plain, fails: true},
		"Expired": {reason: "The certificate has ended.", server: old, config: []string{trust}, fails: true},
		"Client": {reason: "The client shows a certificate of the right authority.", server: mutual, config: []string{
			trust, "http.sslCert=" + file("ours.pem", ours.CertPEM), "http.sslKey=" + file("ours.key", ours.KeyPEM),
		}},
		"NoClient": {reason: "The client shows none.", server: mutual, config: []string{trust}, fails: true},
		"Foreign": {reason: "The client shows one of another authority.", server: mutual, fails: true, config: []string{
			trust, "http.sslCert=" + file("foreign.pem", foreign.CertPEM), "http.sslKey=" + file("foreign.key", foreign.KeyPEM),
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var args []string
			for _, setting := range tc.config {
				args = append(args, "-c", setting)
			}
			out, err := client(t, nil, append(args, "ls-remote", tc.server.URL("app"), "main")...)
			if tc.fails != (err != nil) || !tc.fails && !strings.HasPrefix(out, commit) {
				t.Errorf("%s: %q, %v", tc.reason, out, err)
			}
		})
	}
}

func TestRefMovesBetweenListingAndFetching(t *testing.T) {
	t.Parallel()
	fixture := upstream.ForTest(t)
	repository, listed := sample(t, fixture)
	server := fixture.HTTP(upstream.HTTPOptions{})
	moved := ""
	server.Before(upstream.Fetch, func() {
		if moved == "" {
			moved = repository.Commit("main", "second", upstream.Text(map[string]string{"a.yaml": "a: 2\n"}))
		}
	})

	dir := filepath.Join(t.TempDir(), "clone")
	if _, err := client(t, nil, "clone", "-q", server.URL("app"), dir); err != nil {
		t.Fatal(err)
	}
	head, err := client(t, nil, "-C", dir, "rev-parse", "HEAD")
	if err != nil || strings.TrimSpace(head) != listed {
		t.Errorf("cloned %q, %v, want the commit that was listed: %s", head, err, listed)
	}
	if now := repository.Raw("rev-parse", "main"); now != moved || now == listed {
		t.Errorf("main is %s, want the commit made while fetching: %s", now, moved)
	}
}
