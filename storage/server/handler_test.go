package server_test

import (
	"bufio"
	"context"
	_ "crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/storage/local/localtest"
	"sluice.dev/sluice/storage/server"
)

var (
	storedAt = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	podinfo  = storage.Object{Kind: "gitrepository", Namespace: "default", Name: "podinfo"}
)

func publish(t *testing.T, store storage.Store, file, body string) storage.Artifact {
	t.Helper()
	staged, err := store.Stage(t.Context(), 0, func(w io.Writer) error {
		_, err := io.WriteString(w, body)
		return err
	})
	if err != nil {
		t.Fatalf("Stage: %v", err)
	}
	record, err := store.Publish(t.Context(), podinfo, staged, storage.Record{
		Current: storage.Artifact{Path: podinfo.File(file), StoredAt: storedAt},
	})
	if err != nil {
		t.Fatalf("Publish: %v", err)
	}
	return record.Current
}

// observed collects what the server tells its observer.
type observed struct {
	mu  sync.Mutex
	all []server.Served
}

func (o *observed) add(served server.Served) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, served)
}

func (o *observed) last(t *testing.T) server.Served {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.all) == 0 {
		t.Fatal("The observer was told nothing")
	}
	return o.all[len(o.all)-1]
}

func answer(t *testing.T, handler http.Handler, method, target string, header map[string]string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, target, nil)
	for name, value := range header {
		request.Header.Set(name, value)
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

func TestAnswersDescribeTheBody(t *testing.T) {
	t.Parallel()
	store := localtest.Open(t, local.Options{})
	artifact := publish(t, store, "a.tar.gz", "hello world")
	sum, err := hex.DecodeString(artifact.Digest.Encoded())
	if err != nil {
		t.Fatal(err)
	}
	etag := `"` + artifact.Digest.String() + `"`
	described := map[string]string{
		"Etag":                   etag,
		"Repr-Digest":            "sha-256=:" + base64.StdEncoding.EncodeToString(sum) + ":",
		"Cache-Control":          "no-cache",
		"Content-Type":           "application/gzip",
		"X-Content-Type-Options": "nosniff",
		"Accept-Ranges":          "bytes",
	}
	with := func(more map[string]string, without ...string) map[string]string {
		header := map[string]string{}
		maps.Copy(header, described)
		maps.Copy(header, more)
		for _, name := range without {
			delete(header, name)
		}
		return header
	}
	plain := map[string]string{
		"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	}
	type want struct {
		status int
		body   string
		header map[string]string
	}
	cases := map[string]struct {
		reason string
		method string
		target string
		header map[string]string
		want   want
	}{
		"Get": {
			reason: "A body comes whole, with its digest.",
			method: http.MethodGet, target: "/" + artifact.Path,
			want: want{status: 200, body: "hello world", header: with(map[string]string{"Content-Length": "11"})},
		},
		"Head": {
			reason: "HEAD tells the same without the body.",
			method: http.MethodHead, target: "/" + artifact.Path,
			want: want{status: 200, header: with(map[string]string{"Content-Length": "11"})},
		},
		"Query": {
			reason: "A query changes nothing.",
			method: http.MethodGet, target: "/" + artifact.Path + "?a=b",
			want: want{status: 200, body: "hello world", header: with(map[string]string{"Content-Length": "11"})},
		},
		"Range": {
			reason: "A broken download goes on where it stopped; the digests stay those of the whole.",
			method: http.MethodGet, target: "/" + artifact.Path,
			header: map[string]string{"Range": "bytes=6-", "If-Range": etag},
			want: want{status: 206, body: "world", header: with(map[string]string{
				"Content-Length": "5", "Content-Range": "bytes 6-10/11",
			})},
		},
		"RangeOfOtherBytes": {
			reason: "A download of other bytes starts anew.",
			method: http.MethodGet, target: "/" + artifact.Path,
			header: map[string]string{"Range": "bytes=6-", "If-Range": `"sha256:00"`},
			want:   want{status: 200, body: "hello world", header: with(map[string]string{"Content-Length": "11"})},
		},
		"ManyRanges": {
			reason: "Many ranges are ignored: they cost more than the body.",
			method: http.MethodGet, target: "/" + artifact.Path,
			header: map[string]string{"Range": "bytes=0-0,2-2," + strings.Repeat("4-4,", 500) + "6-6"},
			want:   want{status: 200, body: "hello world", header: with(map[string]string{"Content-Length": "11"})},
		},
		"RangeBeyondTheEnd": {
			reason: "A range that does not exist is refused.",
			method: http.MethodGet, target: "/" + artifact.Path,
			header: map[string]string{"Range": "bytes=11-"},
			want: want{status: 416, body: "invalid range: failed to overlap\n", header: map[string]string{
				"Content-Range": "bytes */11", "Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff",
				"Repr-Digest": described["Repr-Digest"],
			}},
		},
		"NotModified": {
			reason: "Who has the bytes need not get them again.",
			method: http.MethodGet, target: "/" + artifact.Path,
			header: map[string]string{"If-None-Match": etag},
			want:   want{status: 304, header: with(nil, "Content-Type", "Accept-Ranges")},
		},
		"Modified": {
			reason: "Who has other bytes gets these.",
			method: http.MethodGet, target: "/" + artifact.Path,
			header: map[string]string{"If-None-Match": `"sha256:00"`, "If-Modified-Since": "Sun, 01 Mar 2026 12:00:00 GMT"},
			want:   want{status: 200, body: "hello world", header: with(map[string]string{"Content-Length": "11"})},
		},
		"Root": {
			reason: "Readiness probes ask for the root.",
			method: http.MethodGet, target: "/",
			want: want{status: 200, body: "artifact server\n", header: map[string]string{
				"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
				"Accept-Ranges": "bytes", "Content-Length": "16",
			}},
		},
		"Missing": {
			reason: "A path without a body is not found, and that is not cached.",
			method: http.MethodGet, target: "/" + podinfo.File("b.tar.gz"),
			want: want{status: 404, body: "not found\n", header: plain},
		},
		"Post": {
			reason: "Nothing is written over HTTP.",
			method: http.MethodPost, target: "/" + artifact.Path,
			want: want{status: 405, body: "method not allowed\n", header: map[string]string{
				"Allow": "GET, HEAD", "Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
			}},
		},
		"Options": {
			reason: "Nothing else is offered either, not even on the root.",
			method: http.MethodOptions, target: "/",
			want: want{status: 405, body: "method not allowed\n", header: map[string]string{
				"Allow": "GET, HEAD", "Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen observed
			got := answer(t, server.New(store, server.Options{Observer: seen.add}), tc.method, tc.target, tc.header)
			header := map[string]string{}
			for name := range got.Header() {
				header[name] = got.Header().Get(name)
			}
			if tc.want.status == http.StatusRequestedRangeNotSatisfiable {
				delete(header, "Etag")
				delete(header, "Cache-Control")
				delete(header, "Accept-Ranges")
				delete(header, "Content-Length")
			}
			gotAll := want{status: got.Code, body: got.Body.String(), header: header}
			if diff := cmp.Diff(tc.want, gotAll, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n%s %s: -want, +got:\n%s", tc.reason, tc.method, tc.target, diff)
			}
			method := tc.method
			if method != http.MethodGet && method != http.MethodHead {
				method = "OTHER"
			}
			served := seen.last(t)
			if served.Method != method || served.Status != tc.want.status || served.Bytes != int64(len(tc.want.body)) || served.Err != nil {
				t.Errorf("%s\nObserver: got %+v", tc.reason, served)
			}
		})
	}
}

func TestTheDigestHeaderFollowsTheAlgorithm(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason    string
		algorithm digest.Algorithm
		file      string
		want      map[string]string
	}{
		"SHA512": {
			reason: "sha512 is registered.", algorithm: digest.SHA512, file: "chart-1.0.0.tgz",
			want: map[string]string{
				"Repr-Digest":  "sha-512=:m3HSJL1i83hdltRq0+o9czGb+8KJDKra4t/3JRlnPKcjI8PZm6XBHXx6zG4UuMXaDEZjR1wuXDre9G9zvN7AQw==:",
				"Content-Type": "application/gzip",
			},
		},
		"SHA384": {
			reason: "sha384 has no registered name.", algorithm: digest.SHA384, file: "index-1.yaml",
			want: map[string]string{"Repr-Digest": "", "Content-Type": "application/octet-stream"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, err := local.Open(t.TempDir(), local.Options{Algorithm: tc.algorithm})
			if err != nil {
				t.Fatalf("Open: %v", err)
			}
			t.Cleanup(func() { _ = store.Close() })
			artifact := publish(t, store, tc.file, "hello")
			response := answer(t, server.New(store, server.Options{}), http.MethodGet, "/"+artifact.Path, nil)
			if got := response.Header().Get("ETag"); got != `"`+tc.algorithm.FromString("hello").String()+`"` {
				t.Errorf("ETag: got %s", got)
			}
			for name, want := range tc.want {
				if got := response.Header().Get(name); got != want {
					t.Errorf("%s\n%s: want %q, got %q", tc.reason, name, want, got)
				}
			}
		})
	}
}

// rawGet sends the target as it is: a client would clean it.
func rawGet(t *testing.T, addr, target string) (status int, text string) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, "GET "+target+" HTTP/1.1\r\nHost: artifacts\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatalf("Write: %v", err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("GET %s: %v", target, err)
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		t.Errorf("GET %s: %v", target, err)
	}
	return response.StatusCode, string(body)
}

func TestOnlyPublishedPathsAreServed(t *testing.T) {
	t.Parallel()
	store, err := local.Open(t.TempDir(), local.Options{})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = store.Close() })
	artifact := publish(t, store, "a.tar.gz", "secret")
	live := start(t, store, server.Options{})

	blob := ".sluice/blobs/sha256/" + artifact.Digest.Encoded()
	for _, target := range []string{
		"/gitrepository", "/gitrepository/", "/gitrepository/default", "/gitrepository/default/", "/gitrepository/default/podinfo",
		"/gitrepository/default/podinfo/", "/" + artifact.Path + "/", "//" + artifact.Path, "/gitrepository//default/podinfo/a.tar.gz",
		"/./" + artifact.Path, "/x/../" + artifact.Path, "/gitrepository/default/x/../podinfo/a.tar.gz", "/..", "/../" + artifact.Path,
		"/%2e%2e/" + artifact.Path, "/x/%2E%2e/" + artifact.Path, "/gitrepository%2Fdefault/podinfo/a.tar.gz",
		"/gitrepository/default/podinfo%2fa.tar.gz", "/gitrepository/default/podinfo/..%2fpodinfo%2fa.tar.gz", "/..%5c..%5cetc%5cpasswd",
		"/gitrepository/default/podinfo/a.tar.gz%00", "/%252e%252e/" + artifact.Path, "/.sluice", "/.sluice/", "/.sluice/lock", "/" + blob,
		"/%2esluice/blobs/sha256/" + artifact.Digest.Encoded(), "/.sluice/records/gitrepository/default/podinfo/record.json",
		"/x/../" + blob, "/gitrepository/default/podinfo/.a.tar.gz", "/index.html", "/%2f", "/favicon.ico", "/" + strings.Repeat("a/", 2000),
	} {
		if status, text := rawGet(t, live.addr, target); status != http.StatusNotFound || text != "not found\n" {
			t.Errorf("GET %s: want 404 and nothing else, got %d, %q", target, status, text)
		}
	}
	for target, want := range map[string]string{"/" + artifact.Path: "secret", "/?a": "artifact server\n"} {
		if status, text := rawGet(t, live.addr, target); status != http.StatusOK || text != want {
			t.Errorf("GET %s: want %q, got %d, %q", target, want, status, text)
		}
	}
}

// brokenReader fails in a way that clients are not to read about.
type brokenReader struct{ err error }

func (r brokenReader) Open(context.Context, string) (storage.Body, error) { return nil, r.err }

func TestDamageAndFaultsServeNoBytes(t *testing.T) {
	t.Parallel()
	store := localtest.Open(t, local.Options{})
	artifact := publish(t, store, "a.tar.gz", "hello")
	if err := store.Damage(artifact.Path); err != nil {
		t.Fatal(err)
	}
	fault := errors.New("read /data/secret: input/output error")
	cases := map[string]struct {
		reason string
		reader storage.Reader
		status int
		body   string
		err    error
	}{
		"Damaged": {reason: "Damage is not served.", reader: store, status: 404, body: "not found\n", err: storage.ErrDamaged},
		"Fault":   {reason: "A fault's words stay here.", reader: brokenReader{fault}, status: 500, body: "internal server error\n", err: fault},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen observed
			got := answer(t, server.New(tc.reader, server.Options{Observer: seen.add}), http.MethodGet, "/"+artifact.Path, nil)
			if got.Code != tc.status || got.Body.String() != tc.body || got.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s\ngot %d, %q, %v", tc.reason, got.Code, got.Body, got.Header())
			}
			if !errors.Is(seen.last(t).Err, tc.err) {
				t.Errorf("%s\nObserver: want %v, got %v", tc.reason, tc.err, seen.last(t).Err)
			}
		})
	}
}

func TestAClientThatHasGoneIsNoFault(t *testing.T) {
	t.Parallel()
	var seen observed
	handler := server.New(brokenReader{context.Canceled}, server.Options{Observer: seen.add})
	ctx, leave := context.WithCancel(t.Context())
	leave()
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/"+podinfo.File("a.tar.gz"), nil)
	handler.ServeHTTP(httptest.NewRecorder(), request)
	if served := seen.last(t); served.Err != nil || served.Status >= http.StatusInternalServerError {
		t.Errorf("The observer is told of %d, %v", served.Status, served.Err)
	}
}

func FuzzTargetsNeverEscape(f *testing.F) {
	for _, seed := range []string{
		"/", "/gitrepository/default/podinfo/a.tar.gz", "/gitrepository/default/podinfo/", "/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd",
		"/gitrepository%2fdefault/podinfo/a.tar.gz", "//gitrepository/default/podinfo/a.tar.gz", "/.sluice/lock", "/a/b/c/d\x00", "/a/b/c/%00",
		"/gitrepository/default/podinfo/%61.tar.gz", "*", "http://other/gitrepository/default/podinfo/a.tar.gz",
	} {
		f.Add(seed)
	}
	asked := &listeningReader{}
	handler := server.New(asked, server.Options{})
	f.Fuzz(func(t *testing.T, target string) {
		request, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n")))
		if err != nil {
			return // net/http answers 400 by itself.
		}
		asked.path = ""
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request.WithContext(t.Context()))
		if asked.path != "" {
			if _, _, err := storage.ParsePath(asked.path); err != nil {
				t.Fatalf("GET %q asked the storage for %q", target, asked.path)
			}
		}
		if recorder.Code >= 300 && recorder.Code < 400 {
			t.Fatalf("GET %q was redirected to %q", target, recorder.Header().Get("Location"))
		}
		if recorder.Code == http.StatusOK && request.URL.Path != "/" {
			t.Fatalf("GET %q was served: %q", target, recorder.Body)
		}
	})
}

// listeningReader notes what it is asked for and has nothing.
type listeningReader struct{ path string }

func (r *listeningReader) Open(_ context.Context, p string) (storage.Body, error) {
	r.path = p
	return nil, storage.ErrNotFound
}

func TestOnlyANameThatCarriesItsDigestIsImmutable(t *testing.T) {
	t.Parallel()
	const body = "hello world"
	bound := "1.0.0-" + digest.FromString(body).Encoded()[:12] + ".tar.gz"
	for name, tc := range map[string]struct {
		reason string
		file   string
		want   string
	}{
		"Plain":   {"An object of the same name may use it again.", "1.0.0.tar.gz", "no-cache"},
		"Digest":  {"It means these bytes and no others.", bound, "max-age=31536000, immutable"},
		"Another": {"The digest is that of other bytes.", "1.0.0-b94d27b99340.tar.gz", "no-cache"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := localtest.Open(t, local.Options{})
			artifact := publish(t, store, tc.file, body)
			got := answer(t, server.New(store, server.Options{}), http.MethodGet, "/"+artifact.Path, nil)
			if is := got.Header().Get("Cache-Control"); is != tc.want {
				t.Errorf("%s\nCache-Control: want %q, got %q", tc.reason, tc.want, is)
			}
		})
	}
}

func TestLatestIsNotCached(t *testing.T) {
	t.Parallel()
	store := localtest.Open(t, local.Options{})
	handler := server.New(store, server.Options{})
	for _, file := range []string{"a.tar.gz", "b.tar.gz"} {
		artifact := publish(t, store, file, "body of "+file)
		got := answer(t, handler, http.MethodGet, "/gitrepository/default/podinfo/latest.tar.gz", nil)
		header := got.Header()
		if got.Code != http.StatusOK || got.Body.String() != "body of "+file || header.Get("Cache-Control") != "no-cache" ||
			header.Get("Content-Location") != "/"+artifact.Path || header.Get("ETag") != `"`+artifact.Digest.String()+`"` {
			t.Errorf("%s: got %d, %q, %v", file, got.Code, got.Body, header)
		}
	}
}

// TestTheTimeVouchesForNoOtherBody: both bodies were stored in the same second.
func TestTheTimeVouchesForNoOtherBody(t *testing.T) {
	t.Parallel()
	store := localtest.Open(t, local.Options{})
	handler := server.New(store, server.Options{})
	at := storedAt.Format(http.TimeFormat)
	publish(t, store, "a.tar.gz", "hello moon!")
	bound := publish(t, store, "b-"+digest.FromString("hello world").Encoded()[:12]+".tar.gz", "hello world").Path
	for name, tc := range map[string]struct {
		reason string
		path   string
		header map[string]string
		status int
	}{
		"Changed": {"Who has the earlier body gets this one.", podinfo.File(storage.LatestFile), map[string]string{"If-Modified-Since": at}, 200},
		"Resumed": {"Who has half of the earlier body gets all of this one.", podinfo.File(storage.LatestFile), map[string]string{"Range": "bytes=6-", "If-Range": at}, 200},
		"Bound":   {"A name that carries its digest has meant nothing else.", bound, map[string]string{"If-Modified-Since": at}, 304},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := answer(t, handler, http.MethodGet, "/"+tc.path, tc.header)
			if got.Code != tc.status || got.Code == http.StatusOK && got.Body.String() != "hello world" {
				t.Errorf("%s\ngot %d, %q", tc.reason, got.Code, got.Body)
			}
		})
	}
}
