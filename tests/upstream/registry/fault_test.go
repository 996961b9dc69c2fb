package registry_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote/auth"

	"sluice.dev/sluice/tests/upstream"
	"sluice.dev/sluice/tests/upstream/registry"
)

// answer is what a fault made of one request.
type answer struct {
	status int
	header http.Header
	body   string
	broken bool
}

func TestFaults(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789", 10)
	layer := registry.Layer{MediaType: "text/plain", Content: []byte(text)}
	blob, manifest, tags := "/v2/app/blobs/"+layer.Descriptor().Digest.String(), "/v2/app/manifests/v1", "/v2/app/tags/list"
	other := ocispec.Descriptor{MediaType: "application/other", Digest: digest.FromString("other"), Size: 42}
	closed := make(chan time.Time)
	close(closed)
	released := make(chan struct{})
	close(released)

	cases := map[string]struct {
		reason string
		fault  registry.Fault
		method string
		path   string
		header []string
		fails  func(answer) bool
	}{
		"Status": {"the status is sent", registry.Status(503), "GET", blob, nil, func(a answer) bool { return a.status != 503 || !strings.Contains(a.body, "SERVICEUNAVAILABLE") }},
		"Answer": {"just that is sent", registry.Answer(200, "text/x", "tags"), "GET", tags, nil, func(a answer) bool {
			return a.status != 200 || a.header.Get("Content-Type") != "text/x" || a.body != "tags"
		}},
		"RetryLater": {"Retry-After is in seconds", registry.RetryLater(429, 7*time.Second), "GET", manifest, nil, func(a answer) bool { return a.status != 429 || a.header.Get("Retry-After") != "7" }},
		"RetryAt":    {"Retry-After is a date", registry.RetryAt(503, time.Unix(1600000000, 0)), "GET", manifest, nil, func(a answer) bool { return a.header.Get("Retry-After") != "Sun, 13 Sep 2020 12:26:40 GMT" }},
		"Challenge":  {"the challenge is sent as it is", registry.Challenge("Negotiate"), "GET", manifest, nil, func(a answer) bool { return a.status != 401 || a.header.Get("WWW-Authenticate") != "Negotiate" }},
		"ForeignRealm": {"the client is sent elsewhere for a token", registry.ForeignRealm("https://evil.example.org/t"), "GET", manifest, nil, func(a answer) bool {
			return !strings.HasPrefix(a.header.Get("WWW-Authenticate"), `Bearer realm="https://evil.example.org/t",`)
		}},
		"NoReferrers":  {"the API is missing", registry.NoReferrers(), "GET", "/v2/app/referrers/" + other.Digest.String(), nil, func(a answer) bool { return a.status != 404 }},
		"NoHEAD":       {"HEAD is not allowed", registry.NoHEAD(), "HEAD", manifest, nil, func(a answer) bool { return a.status != 405 }},
		"NoHEADButGET": {"GET still is", registry.NoHEAD(), "GET", manifest, nil, func(a answer) bool { return a.status != 200 }},
		"Redirect": {"the location is sent", registry.Redirect(302, "http://elsewhere.example.org/x"), "GET", blob, nil, func(a answer) bool {
			return a.status != 302 || a.header.Get("Location") != "http://elsewhere.example.org/x"
		}},
		"RedirectLoop": {"the location is the same again", registry.RedirectLoop(), "GET", blob, nil, func(a answer) bool { return a.status != 307 || a.header.Get("Location") != blob }},
		"HTML":         {"a page is sent", registry.HTML(), "GET", manifest, nil, func(a answer) bool { return a.status != 200 || !strings.Contains(a.body, "<html>") }},
		"Drop":         {"the connection is closed", registry.Drop(), "GET", manifest, nil, func(a answer) bool { return !a.broken }},
		"GarbageJSON":  {"JSON breaks off", registry.GarbageJSON(), "GET", manifest, nil, func(a answer) bool { return a.status != 200 || !strings.HasSuffix(a.body, ":") }},
		"Huge":         {"megabytes are sent", registry.Huge(5 << 20), "GET", manifest, nil, func(a answer) bool { return len(a.body) < 5<<20 }},
		"Cut":          {"the body breaks off", registry.Cut(33), "GET", blob, nil, func(a answer) bool { return !a.broken || a.body != text[:33] }},
		"Corrupt": {"a byte is another", registry.Corrupt(50), "GET", blob, nil, func(a answer) bool {
			return a.broken || len(a.body) != 100 || a.body[:50] != text[:50] || a.body[50] == text[50]
		}},
		"Slow": {"a trickle arrives whole", registry.Slow(3, closed), "GET", blob, nil, func(a answer) bool { return a.body != text }},
		"Hold": {"a request let go goes on", registry.Hold(released), "GET", blob, nil, func(a answer) bool { return a.body != text }},
		"WrongDigest": {"the digest is another", registry.WrongDigest(), "HEAD", manifest, nil, func(a answer) bool {
			return a.header.Get("Docker-Content-Digest") != digest.FromString("something else").String()
		}},
		"NoDigest":    {"the digest is missing", registry.NoDigest(), "HEAD", manifest, nil, func(a answer) bool { return a.status != 200 || a.header.Get("Docker-Content-Digest") != "" }},
		"ContentType": {"the type is another", registry.ContentType("text/html"), "GET", manifest, nil, func(a answer) bool { return a.header.Get("Content-Type") != "text/html" }},
		"NoLength":    {"the length is missing", registry.NoLength(), "GET", blob, nil, func(a answer) bool { return a.body != text || a.header.Get("Content-Length") != "" }},
		"HeadSays": {"HEAD is of another manifest", registry.HeadSays(other), "HEAD", manifest, nil, func(a answer) bool {
			return a.header.Get("Docker-Content-Digest") != other.Digest.String() || a.header.Get("Content-Length") != "42"
		}},
		"HeadSaysNotGET":  {"GET is not", registry.HeadSays(other), "GET", manifest, nil, func(a answer) bool { return a.header.Get("Docker-Content-Digest") == other.Digest.String() }},
		"IgnoreRange":     {"all is sent", registry.IgnoreRange(), "GET", blob, []string{"Range", "bytes=5-9"}, func(a answer) bool { return a.status != 200 || a.body != text }},
		"RangeWithout":    {"without a fault a part is sent", registry.Fault{}, "GET", blob, []string{"Range", "bytes=5-9"}, func(a answer) bool { return a.status != 206 || a.body != "56789" }},
		"Link":            {"the next page is elsewhere", registry.Link("https://evil.example.org/v2/"), "GET", tags, nil, func(a answer) bool { return a.header.Get("Link") != `<https://evil.example.org/v2/>; rel="next"` }},
		"LinkLoop":        {"the next page is this one", registry.LinkLoop(), "GET", tags, nil, func(a answer) bool { return a.header.Get("Link") != `<`+tags+`>; rel="next"` }},
		"OnAnotherKind":   {"other kinds are left alone", registry.Status(500).On(registry.Blob), "GET", manifest, nil, func(a answer) bool { return a.status != 200 }},
		"WhenNotChosen":   {"others than the chosen are left alone", registry.Status(500).When(func(r registry.Request) bool { return r.Repository == "b" }), "GET", manifest, nil, func(a answer) bool { return a.status != 200 }},
		"WhenChosen":      {"the chosen are struck", registry.Status(500).When(func(r registry.Request) bool { return r.Reference == "v1" }), "GET", manifest, nil, func(a answer) bool { return a.status != 500 }},
		"ErrorKeepsType":  {"errors keep their headers", registry.ContentType("text/plain"), "GET", "/v2/none/manifests/v1", nil, func(a answer) bool { return a.status != 404 || a.header.Get("Content-Type") != "application/json" }},
		"TokenIsSpared":   {"the token server is struck only by name", registry.Status(500), "GET", "/token", nil, func(a answer) bool { return a.status != 401 }},
		"TokenByName":     {"as here", registry.Status(500).On(registry.Token), "GET", "/token", nil, func(a answer) bool { return a.status != 500 }},
		"GarbageUpstream": {"the faults of other servers serve here too", registry.From(upstream.TooManyRequests(time.Second)), "GET", manifest, nil, func(a answer) bool { return a.status != 429 }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registry.ForTest(t, registry.Options{})
			r.Repository("app").PushORAS("v1", layer)
			c := httpClient(t, r)
			c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			ask := func() answer {
				status, header, body, err := get(t, c, tc.method, r.BaseURL()+tc.path, tc.header...)
				return answer{status, header, body, err != nil}
			}
			healthy := ask()
			r.Always(tc.fault)
			if got := ask(); tc.fails(got) {
				t.Errorf("%s: got %d %v %.200q (broken: %t)", tc.reason, got.status, got.header, got.body, got.broken)
			}
			r.Heal()
			if diff := cmp.Diff(healthy.body, ask().body); diff != "" {
				t.Errorf("healed, -before, +after:\n%s", diff)
			}
		})
	}
}

func TestFailNextStrikesAsOftenAsPlanned(t *testing.T) {
	t.Parallel()
	r := registry.ForTest(t, registry.Options{})
	r.FailNext(2, registry.Status(500))
	r.FailNext(1, registry.Status(429).On(registry.Ping))
	r.FailNext(1, registry.Status(503).On(registry.Blob))
	var got []int
	for range 4 {
		status, _, _, err := get(t, httpClient(t, r), http.MethodGet, r.BaseURL()+"/v2/")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, status)
	}
	if diff := cmp.Diff([]int{500, 500, 429, 200}, got); diff != "" {
		t.Errorf("statuses, -want, +got:\n%s", diff)
	}
}

func TestAChallengeDoesNotUseUpAFault(t *testing.T) {
	t.Parallel()
	r := registry.ForTest(t, registry.Options{Auth: registry.TokenAuth, Anonymous: true})
	r.Repository("app").PushFlux("v1", map[string]string{"a": "1"}, nil)
	r.FailNext(1, registry.Status(http.StatusBadGateway).On(registry.ManifestHEAD))
	from := client(t, r, "app", auth.EmptyCredential)
	if _, err := from.Resolve(t.Context(), "v1"); err == nil {
		t.Error("the fault struck the challenge")
	}
	if _, err := from.Resolve(t.Context(), "v1"); err != nil {
		t.Errorf("after the fault: %v", err)
	}
	r.FailNext(1, registry.Status(http.StatusForbidden).Early())
	if status, _, _, err := get(t, httpClient(t, r), http.MethodGet, r.BaseURL()+"/v2/"); err != nil || status != http.StatusForbidden {
		t.Errorf("an early fault: got %d, %v; want 403", status, err)
	}
}

func TestHangsEndWithTheClientOrTheRegistry(t *testing.T) {
	t.Parallel()
	layer := registry.Layer{MediaType: "text/plain", Content: []byte("0123456789")}
	for name, fault := range map[string]registry.Fault{
		"hang": registry.Hang(), "hang after": registry.HangAfter(4), "hold": registry.Hold(nil),
		"slow": registry.Slow(1, nil),
	} {
		r := registry.ForTest(t, registry.Options{})
		r.Repository("app").PushORAS("v1", layer)
		// The registry tells when the request has come in, so that nobody has to guess.
		arrived := make(chan struct{}, 2)
		r.Always(registry.Custom(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
			arrived <- struct{}{}
			next.ServeHTTP(w, req)
		}))
		r.Always(fault)
		url := r.BaseURL() + "/v2/app/blobs/" + layer.Descriptor().Digest.String()
		ask := func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
			if err != nil {
				return err
			}
			response, err := httpClient(t, r).Do(request)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			_, err = response.Body.Read(make([]byte, 1))
			for err == nil {
				_, err = response.Body.Read(make([]byte, 1))
			}
			return err
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-arrived; cancel() }()
		if err := ask(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: the client went away and got %v", name, err)
		}
		go func() { <-arrived; r.Close() }()
		if err := ask(t.Context()); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("%s: the registry was closed and the client got %v", name, err)
		}
	}
}
