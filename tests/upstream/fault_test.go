package upstream_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/tests/upstream"
)

func TestFaultsReachTheGitClient(t *testing.T) {
	t.Parallel()
	fixture := upstream.ForTest(t)
	repository := fixture.Repository("app")
	repository.Bulk("main", 50, 1<<20)
	cases := map[string]struct {
		reason string
		fault  upstream.Fault
		want   string
	}{
		"Forbidden":   {"A status is handed on.", upstream.Status(http.StatusForbidden), "403"},
		"NotFound":    {"A status is handed on.", upstream.Status(http.StatusNotFound), "not found"},
		"ServerError": {"A status is handed on.", upstream.Status(http.StatusInternalServerError), "500"},
		"TooMany":     {"A status is handed on.", upstream.TooManyRequests(time.Minute), "429"},
		"HTML":        {"A page is no advertisement.", upstream.HTML(), "not valid: is this a git repository?"},
		"Garbage":     {"Noise is no advertisement.", upstream.Garbage(), "fatal"},
		"GarbagePack": {"Noise is no pack.", upstream.Garbage().On(upstream.Fetch), "fatal"},
		"Drop":        {"The connection ends without an answer.", upstream.Drop(), "Empty reply from server"},
		"CutAfter":    {"The pack is not whole.", upstream.CutAfter(1000), "early EOF"},
		"CutBody":     {"The advertisement is not whole.", upstream.CutBody(20).On(upstream.InfoRefs), "fatal"},
		"Flip":        {"A flipped bit breaks the pack.", upstream.Flip(1234), "fatal"},
		"FlipMagic":   {"The first byte belongs to the pack's signature.", upstream.Flip(0), "pack signature mismatch"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := fixture.HTTP(upstream.HTTPOptions{})
			server.Always(tc.fault)
			_, err := client(t, nil, "clone", "-q", server.URL("app"), filepath.Join(t.TempDir(), "clone"))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
			server.Heal()
			if _, err := client(t, nil, "clone", "-q", server.URL("app"), filepath.Join(t.TempDir(), "clone")); err != nil {
				t.Errorf("%s: after healing: %v", tc.reason, err)
			}
		})
	}
}

func TestFailNextIsUsedUp(t *testing.T) {
	t.Parallel()
	fixture := upstream.ForTest(t)
	sample(t, fixture)
	server := fixture.HTTP(upstream.HTTPOptions{})
	server.FailNext(2, upstream.TooManyRequests(3*time.Second))
	server.FailNext(1, upstream.Status(http.StatusNotFound).On(upstream.Fetch))
	server.FailNext(1, upstream.Status(http.StatusBadGateway))

	for i, want := range []int{429, 429, 502, 200, 200} {
		response := get(t, server.URL("app")+"/info/refs?service=git-upload-pack")
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("answer %d: %d, want %d", i, response.StatusCode, want)
		}
		if after := response.Header.Get("Retry-After"); (want == 429) != (after == "3") {
			t.Errorf("answer %d: Retry-After is %q", i, after)
		}
	}
}

func TestHangIsReleasedByCloseAndByTheClient(t *testing.T) {
	t.Parallel()
	fixture := upstream.ForTest(t)
	repository := fixture.Repository("app")
	repository.Bulk("main", 50, 1<<20)
	cases := map[string]struct {
		reason string
		fault  upstream.Fault
		kind   upstream.Kind
	}{
		"Headers": {"No answer ever comes.", upstream.Hang(), upstream.InfoRefs},
		"Pack":    {"The pack stops in the middle.", upstream.HangAfter(1000), upstream.Fetch},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := fixture.HTTP(upstream.HTTPOptions{})
			server.Always(tc.fault)
			reached := make(chan struct{}, 2)
			server.Before(upstream.Fetch, func() { reached <- struct{}{} })

			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 2)
			clone := func(ctx context.Context) {
				_, err := upstream.Git(ctx, fixture.Root, nil, "clone", "-q", "--bare", server.URL("app"), filepath.Join(t.TempDir(), "clone"))
				ended <- err
			}
			go clone(ctx)
			await(t, func() bool { return server.Count(tc.kind) == 1 })
			cancel()
			if err := <-ended; err == nil {
				t.Errorf("%s: the client that went away got its clone", tc.reason)
			}

			go clone(t.Context())
			await(t, func() bool { return server.Count(tc.kind) == 2 })
			server.Close() // It waits for the handlers, so that it ends at all is half of the test.
			if err := <-ended; err == nil {
				t.Errorf("%s: the client got its clone", tc.reason)
			}
		})
	}
}

func TestSlowLetsAChunkThroughForEachTick(t *testing.T) {
	t.Parallel()
	fixture := upstream.ForTest(t)
	sample(t, fixture)
	server := fixture.HTTP(upstream.HTTPOptions{})
	ticks := make(chan time.Time)
	server.Always(upstream.Slow(10, ticks))

	response := open(t, server.URL("app")+"/info/refs?service=git-upload-pack", ticks)
	defer response.Body.Close()
	for range 3 {
		ticks <- time.Time{}
	}
	await(t, func() bool { return server.Requests()[0].BytesOut == 40 })
	close(ticks)
	rest, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(rest), "refs/heads/main") {
		t.Errorf("read %q, %v, want the whole list of refs", rest, err)
	}
}

func TestEndlessNeverEnds(t *testing.T) {
	t.Parallel()
	fixture := upstream.ForTest(t)
	sample(t, fixture)
	server := fixture.HTTP(upstream.HTTPOptions{})
	server.Always(upstream.Endless())
	response := open(t, server.URL("app")+"/info/refs?service=git-upload-pack", nil)
	defer response.Body.Close()
	if n, err := io.CopyN(io.Discard, response.Body, 8<<20); err != nil {
		t.Errorf("the answer ended after %d bytes: %v", n, err)
	}
}

func TestRedirectLeadsToTheSink(t *testing.T) {
	t.Parallel()
	fixture := upstream.ForTest(t)
	sample(t, fixture)
	server, sink := fixture.HTTP(upstream.HTTPOptions{}), fixture.Sink(upstream.SinkOptions{})
	server.Always(upstream.Redirect(http.StatusFound, sink.URL()))

	if _, err := client(t, nil, "ls-remote", server.URL("app")); err == nil {
		t.Error("the sink was taken for a repository")
	}
	requests := sink.Requests()
	if len(requests) == 0 || requests[0].Kind != upstream.InfoRefs || requests[0].Authorized {
		t.Fatalf("the sink saw %+v, want a request for the refs", requests)
	}
}

func TestSinkRemembersCredentials(t *testing.T) {
	t.Parallel()
	fixture := upstream.ForTest(t)
	ca := fixture.CA()
	sink := fixture.Sink(upstream.SinkOptions{CA: ca})
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool(), MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()

	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, sink.URL()+"/app.git/git-upload-pack",
		strings.NewReader("0014command=ls-refs\n"))
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth("ada", "secret")
	request.Header.Set("Cookie", "session=1")
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()

	secrets := sink.Secrets()
	slices.Sort(secrets)
	if diff := cmp.Diff([]string{"Authorization: Basic YWRhOnNlY3JldA==", "Cookie: session=1"}, secrets); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
	if got := sink.Requests()[0]; got.Kind != upstream.LsRefs || !got.Authorized || response.StatusCode != got.Status {
		t.Errorf("the sink saw %+v", got)
	}
}

func get(t *testing.T, url string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// open gets the URL; the answer may need a first tick before even its headers arrive.
func open(t *testing.T, url string, ticks chan<- time.Time) *http.Response {
	t.Helper()
	if ticks != nil {
		go func() { ticks <- time.Time{} }()
	}
	return get(t, url)
}

// await waits for something that another process does soon.
func await(t *testing.T, happened func() bool) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !happened() {
		select {
		case <-ticker.C:
		case <-t.Context().Done():
			t.Fatal(errors.New("the test ended first"))
		}
	}
}
