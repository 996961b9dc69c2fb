package bucket_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/bucket"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/upstream/buckets"
)

// clients reach this machine.
func clients(google string) *bucket.Clients {
	return bucket.New(bucket.Options{
		Transport:      transport.New(transport.Options{AllowLoopback: true, StallTimeout: 5 * time.Second}),
		GoogleEndpoint: google,
	})
}

// open opens the fake by each of its protocols.
func open(t *testing.T, fake *buckets.Fake, kind bucket.Kind, login credential.Bucket) bucket.Bucket {
	t.Helper()
	l := bucket.Location{Kind: kind, Endpoint: fake.Endpoint(), Bucket: buckets.Bucket, Insecure: true, Credential: login}
	if kind == bucket.Azure {
		l.Endpoint = fake.URL()
	}
	b, err := clients(fake.URL()).Open(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func kinds() []bucket.Kind { return []bucket.Kind{bucket.S3, bucket.Google, bucket.Azure} }

// gather lists all that there is.
func gather(ctx context.Context, b bucket.Bucket, most int) ([]bucket.Object, bool, error) {
	return bucket.Gather(ctx, b, "", most, func(context.Context, bucket.Object) (bool, error) { return true, nil })
}

// fetch reads the first object as it is listed.
func fetch(t *testing.T, b bucket.Bucket) (string, error) {
	t.Helper()
	page, err := b.List(t.Context(), bucket.Listing{})
	if err != nil || len(page.Objects) == 0 {
		t.Fatal(page, err)
	}
	return get(t, b, page.Objects[0])
}

func get(t *testing.T, b bucket.Bucket, object bucket.Object) (string, error) {
	t.Helper()
	body, err := b.Get(t.Context(), object)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(body)
	return string(text), err
}

func TestAllKindsListAndGet(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			fake := buckets.New(t)
			fake.PageSize(2)
			want := map[string]string{"a b+c%2F/é": "1", "b": "", "c": strings.Repeat("x", 100_000), "d?e#f": "4", "e&f=g": "5"}
			fake.Put(want)
			b := open(t, fake, kind, credential.Bucket{})
			all, _, err := gather(t.Context(), b, 100)
			if err != nil || len(all) != len(want) {
				t.Fatal(all, err)
			}
			for _, object := range all {
				if got, err := get(t, b, object); err != nil || got != want[object.Key] {
					t.Errorf("%q: got %.20q, %v", object.Key, got, err)
				}
				if strings.Contains(object.ETag, `"`) {
					t.Errorf("etag %s has quotes", object.ETag)
				}
			}
			page, err := b.List(t.Context(), bucket.Listing{Prefix: "c", Most: 1})
			if err != nil || len(page.Objects) != 1 || page.Objects[0].Key != "c" {
				t.Errorf("one of them: %+v, %v", page, err)
			}
		})
	}
}

func TestAChangedObjectIsNotRead(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			fake := buckets.New(t)
			fake.Put(map[string]string{"a": "1", "b": "2"})
			b := open(t, fake, kind, credential.Bucket{})
			all, _, err := gather(t.Context(), b, 100)
			if err != nil {
				t.Fatal(err)
			}
			fake.Put(map[string]string{"a": "another"})
			fake.Delete("b")
			if _, err := get(t, b, all[0]); !errors.Is(err, bucket.ErrChanged) {
				t.Errorf("got %v", err)
			}
			if _, err := get(t, b, all[1]); !errors.Is(err, bucket.ErrNoObject) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAMissingBucketIsToldFromAMissingObject(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds() {
		fake := buckets.New(t)
		l := bucket.Location{Kind: kind, Endpoint: fake.Endpoint(), Bucket: "elsewhere", Insecure: true}
		if kind == bucket.Azure {
			l.Endpoint = fake.URL()
		}
		b, err := clients(fake.URL()).Open(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		if _, first, err := gather(t.Context(), b, 10); !errors.Is(err, bucket.ErrNoBucket) || !first {
			t.Errorf("%s: got %v", kind, err)
		}
	}
}

// TestRetryAfterIsPassedOn: when to try again is not decided here.
func TestRetryAfterIsPassedOn(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds() {
		fake := buckets.New(t)
		fake.Put(map[string]string{"a": "1"})
		b := open(t, fake, kind, credential.Bucket{})
		if _, err := b.List(t.Context(), bucket.Listing{}); err != nil {
			t.Fatal(err)
		}
		fake.Take()
		fake.Always(func(w http.ResponseWriter, _ buckets.Request) bool {
			w.Header().Set("Retry-After", "7")
			buckets.Refuse(w, http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
			return true
		})
		_, err := b.List(t.Context(), bucket.Listing{})
		status, ok := errors.AsType[*bucket.StatusError](err)
		if !ok || status.Status != 503 || status.RetryAfter != 7*time.Second {
			t.Errorf("%s: got %v", kind, err)
		}
		if n := len(fake.Take()); n != 1 {
			t.Errorf("%s: %d requests", kind, n)
		}
	}
}

// TestRule1ConnectionsBelongToAnIdentity: what one object's keys opened serves no other.
func TestRule1ConnectionsBelongToAnIdentity(t *testing.T) {
	t.Parallel()
	fake := buckets.New(t)
	all := clients(fake.URL())
	secret := credential.NewSecret[string]
	seen := map[string]string{}
	for name, login := range map[string]credential.Bucket{
		"anonymous": {}, "keys": {AccessKey: "a", SecretKey: secret("bc")}, "other keys": {AccessKey: "ab", SecretKey: secret("c")},
		"proxy": {Proxy: credential.Proxy{URL: "http://127.0.0.1:1"}}, "lenient": {TLS: credential.TLS{SkipVerify: true}},
	} {
		l := bucket.Location{Kind: bucket.S3, Endpoint: fake.Endpoint(), Bucket: buckets.Bucket, Insecure: true, Credential: login}
		first, err := all.Open(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		again, err := all.Open(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		key := fmt.Sprintf("%p", bucket.Client(first))
		if key != fmt.Sprintf("%p", bucket.Client(again)) {
			t.Errorf("%s: a client is made each time", name)
		}
		if other, taken := seen[key]; taken {
			t.Errorf("%s has the client of %s", name, other)
		}
		seen[key] = name
	}
}

// TestRule1CertificatesOpenTheirOwnConnections: a server's authority is trusted for whom it was given to alone, also while a
// connection that it vouches for is idle.
func TestRule1CertificatesOpenTheirOwnConnections(t *testing.T) {
	t.Parallel()
	fake := buckets.New(t)
	fake.Put(map[string]string{"a": "1"})
	server := httptest.NewTLSServer(fake)
	t.Cleanup(server.Close)
	all := clients("")
	l := bucket.Location{Kind: bucket.S3, Endpoint: strings.TrimPrefix(server.URL, "https://"), Bucket: buckets.Bucket}
	list := func(login credential.TLS) error {
		l.Credential.TLS = login
		b, err := all.Open(t.Context(), l)
		if err != nil {
			return err
		}
		_, err = b.List(t.Context(), bucket.Listing{})
		return err
	}
	trusting := credential.TLS{CA: pemOf(server.Certificate().Raw)}
	if err := list(trusting); err != nil {
		t.Fatal(err)
	}
	unknown := &tls.CertificateVerificationError{}
	if err := list(credential.TLS{}); !errors.As(err, &unknown) {
		t.Errorf("the connection of another served it: %v", err)
	}
	if err := list(trusting); err != nil {
		t.Error(err)
	}
}

// TestRule2CredentialsStayAtTheirOrigin: no redirect is followed, so that nothing can go elsewhere.
func TestRule2CredentialsStayAtTheirOrigin(t *testing.T) {
	t.Parallel()
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(other.Close)
	for _, kind := range kinds() {
		fake := buckets.New(t)
		fake.Always(func(w http.ResponseWriter, r buckets.Request) bool {
			http.Redirect(w, r.Request, other.URL, http.StatusTemporaryRedirect)
			return true
		})
		login := credential.Bucket{AccessKey: "key", SecretKey: credential.NewSecret("CANARY")}
		if kind == bucket.Google {
			login = credential.Bucket{Bearer: credential.NewSecret("CANARY")}
		}
		if _, _, err := gather(t.Context(), open(t, fake, kind, login), 10); err == nil || !strings.Contains(err.Error(), "redirect is not followed") && kind != bucket.S3 {
			t.Errorf("%s: got %v", kind, err)
		}
	}
	if asked {
		t.Error("the other origin was asked")
	}
}

// TestRule3NothingIsToldThatWasSecret: whatever a server repeats, and whatever a library puts around an error.
func TestRule3NothingIsToldThatWasSecret(t *testing.T) {
	t.Parallel()
	secret := credential.NewSecret[string]
	// What the server repeats is sent by the clients, but for the key that signs.
	logins := map[bucket.Kind]credential.Bucket{
		bucket.S3:     {AccessKey: "access", SecretKey: secret("CANARYsecret"), SessionToken: secret("CANARYsession")},
		bucket.Google: {Bearer: secret("CANARYbearer")},
		bucket.Azure:  {Query: secret("sv=2024-01-01&sig=CANARYsig%2B")},
	}
	for kind, login := range logins {
		for name, fault := range map[string]buckets.Fault{
			"repeated": func(w http.ResponseWriter, r buckets.Request) bool {
				said := fmt.Sprint(r.URL, r.Header)
				if kind == bucket.S3 {
					said += " CANARYsecret CANARYsession"
				}
				if kind == bucket.Google {
					w.WriteHeader(http.StatusForbidden)
					_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"message": said}})
					return true
				}
				w.Header().Set("X-Ms-Error-Code", "Forbidden CANARYsig%2B")
				buckets.Refuse(w, http.StatusForbidden, "AccessDenied", strings.ReplaceAll(said, "&", "&amp;"))
				return true
			},
			"cut": func(http.ResponseWriter, buckets.Request) bool { panic(http.ErrAbortHandler) },
			"odd": func(w http.ResponseWriter, r buckets.Request) bool {
				fmt.Fprint(w, r.URL, r.Header)
				return true
			},
		} {
			fake := buckets.New(t)
			fake.Always(fault)
			_, _, err := gather(t.Context(), open(t, fake, kind, login), 10)
			if err == nil || strings.Contains(err.Error(), "CANARY") {
				t.Errorf("%s, %s: got %v", kind, name, err)
			}
			for unwrapped := err; unwrapped != nil; unwrapped = errors.Unwrap(unwrapped) {
				if strings.Contains(unwrapped.Error(), "CANARY") {
					t.Errorf("%s, %s: it is beneath", kind, name)
				}
			}
		}
	}
}

// TestRule4ListingsAreBounded: a page, what it unpacks to, how many there are, and what it is made of.
func TestRule4ListingsAreBounded(t *testing.T) {
	t.Parallel()
	entries := func(from, n int) []buckets.Entry {
		all := make([]buckets.Entry, n)
		for i := range all {
			all[i] = buckets.Entry{Key: fmt.Sprintf("%08d", from+i), LastModified: "2024-01-01T00:00:00.000Z", ETag: `"e"`}
		}
		return all
	}
	pages := 0
	for name, tc := range map[string]struct {
		want error
		page func(w http.ResponseWriter, r buckets.Request)
	}{
		"pages that do not end": {bucket.ErrLimit, func(w http.ResponseWriter, _ buckets.Request) {
			pages++
			buckets.WriteListing(w, buckets.Listing{IsTruncated: true, NextContinuationToken: fmt.Sprint(pages), Contents: entries(pages*1000, 1000)})
		}},
		"empty pages that do not end": {bucket.ErrListing, func(w http.ResponseWriter, r buckets.Request) {
			buckets.WriteListing(w, buckets.Listing{IsTruncated: true, NextContinuationToken: r.URL.Query().Get("continuation-token") + "x"})
		}},
		"a token that comes again": {bucket.ErrListing, func(w http.ResponseWriter, _ buckets.Request) {
			buckets.WriteListing(w, buckets.Listing{IsTruncated: true, NextContinuationToken: "again", Contents: entries(0, 1)})
		}},
		"a key that comes again": {bucket.ErrListing, func(w http.ResponseWriter, r buckets.Request) {
			more := r.URL.Query().Get("continuation-token") == ""
			buckets.WriteListing(w, buckets.Listing{IsTruncated: more, NextContinuationToken: "next", Contents: entries(0, 1)})
		}},
		"a page that is too large": {bucket.ErrLimit, func(w http.ResponseWriter, _ buckets.Request) {
			fmt.Fprint(w, "<ListBucketResult><!--")
			for range 9 << 10 {
				fmt.Fprint(w, strings.Repeat("x", 1024))
			}
		}},
		"an entity that grows": {nil, func(w http.ResponseWriter, _ buckets.Request) {
			fmt.Fprint(w, `<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><ListBucketResult><Contents><Key>&b;</Key></Contents></ListBucketResult>`)
		}},
		"elements without end": {nil, func(w http.ResponseWriter, _ buckets.Request) {
			fmt.Fprint(w, strings.Repeat("<ListBucketResult>", 100_000))
		}},
		"a size below zero": {bucket.ErrListing, func(w http.ResponseWriter, _ buckets.Request) {
			buckets.WriteListing(w, buckets.Listing{Contents: []buckets.Entry{{Key: "a", LastModified: "2024-01-01T00:00:00.000Z", ETag: "e", Size: -1}}})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := buckets.New(t)
			fake.Always(func(w http.ResponseWriter, r buckets.Request) bool {
				if r.Kind == "list" {
					tc.page(w, r)
				}
				return r.Kind == "list"
			})
			_, _, err := gather(t.Context(), open(t, fake, bucket.S3, credential.Bucket{}), 20_000)
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("want %v, got %v", tc.want, err)
			}
		})
	}
}

// TestAPageOfSomebodyElseIsNoListing: who stands before a storage may answer 200 with words of his own. It is not taken for a
// bucket that is empty.
func TestAPageOfSomebodyElseIsNoListing(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds() {
		for _, page := range []string{"", "<html><body>Please log in</body></html>", "{\"status\":\"ok\"}", "null", "<Error><Code>SlowDown</Code></Error>"} {
			fake := buckets.New(t)
			fake.Always(func(w http.ResponseWriter, r buckets.Request) bool {
				if r.Kind == "list" {
					_, _ = io.WriteString(w, page)
				}
				return r.Kind == "list"
			})
			b := open(t, fake, kind, credential.Bucket{})
			if all, _, err := gather(t.Context(), b, 10); err == nil {
				t.Errorf("%s, %q: got %v", kind, page, all)
			}
			fake.Heal()
			if all, _, err := gather(t.Context(), b, 10); err != nil || len(all) > 0 {
				t.Errorf("%s, empty: got %v, %v", kind, all, err)
			}
		}
	}
}

// TestRule8BodiesAreChecked: by what each storage says of them.
func TestRule8BodiesAreChecked(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds() {
		fake := buckets.New(t)
		fake.Put(map[string]string{"a": "good"})
		b := open(t, fake, kind, credential.Bucket{})
		if got, err := fetch(t, b); err != nil || got != "good" {
			t.Fatalf("%s: got %q, %v", kind, got, err)
		}
		fake.Always(func(w http.ResponseWriter, r buckets.Request) bool {
			if r.Kind != "get" {
				return false
			}
			recorded := httptest.NewRecorder()
			fake.Answer(recorded, r)
			maps.Copy(w.Header(), recorded.Header())
			_, _ = io.WriteString(w, "evil")
			return true
		})
		if _, err := fetch(t, b); !errors.Is(err, bucket.ErrChecksum) {
			t.Errorf("%s: got %v", kind, err)
		}
	}
}

// TestRule8WhatIsNoChecksumIsNotTakenForOne: encrypted bodies and those of several parts have etags of their own.
func TestRule8WhatIsNoChecksumIsNotTakenForOne(t *testing.T) {
	t.Parallel()
	other := strings.Repeat("ab", 16)
	for name, tc := range map[string]struct {
		etag   string
		header http.Header
		good   bool
	}{
		"KMS":           {other, http.Header{"X-Amz-Server-Side-Encryption": {"aws:kms"}}, true},
		"keys of users": {other, http.Header{"X-Amz-Server-Side-Encryption-Customer-Algorithm": {"AES256"}}, true},
		"S3's own":      {other, http.Header{"X-Amz-Server-Side-Encryption": {"AES256"}}, false},
		"parts":         {other + "-2", nil, true},
		"any text":      {"v7", nil, true},
		"SHA-256":       {"v7", http.Header{"X-Amz-Checksum-Sha256": {"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}}, false},
		"of parts":      {"v7", http.Header{"X-Amz-Checksum-Crc32": {"AAAAAA=="}, "X-Amz-Checksum-Type": {"COMPOSITE"}}, true},
		"CRC-32":        {"v7", http.Header{"X-Amz-Checksum-Crc32": {"AAAAAA=="}}, false},
	} {
		fake := buckets.New(t)
		fake.Set("a", buckets.Object{Body: "body", ETag: tc.etag})
		fake.Always(func(w http.ResponseWriter, _ buckets.Request) bool {
			maps.Copy(w.Header(), tc.header)
			return false
		})
		_, err := fetch(t, open(t, fake, bucket.S3, credential.Bucket{}))
		if good := err == nil; good != tc.good || !good && !errors.Is(err, bucket.ErrChecksum) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestBodiesThatEndEarlyOrNever: what was listed is what is read.
func TestBodiesThatEndEarlyOrNever(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]func(w http.ResponseWriter, r *http.Request){
		"cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "only this")
		},
		"short": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "only this") },
		"long":  func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 1000)) },
		"silent": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := buckets.New(t)
			fake.Set("a", buckets.Object{Body: strings.Repeat("x", 100), ETag: "any"})
			fake.Always(func(w http.ResponseWriter, r buckets.Request) bool {
				if r.Kind == "get" {
					w.Header().Set("ETag", `"any"`)
					w.Header().Set("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
					body(w, r.Request)
				}
				return r.Kind == "get"
			})
			if got, err := fetch(t, open(t, fake, bucket.S3, credential.Bucket{})); err == nil {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestAnEtagThatChangesAtEachGet is another object each time.
func TestAnEtagThatChangesAtEachGet(t *testing.T) {
	t.Parallel()
	fake := buckets.New(t)
	fake.Put(map[string]string{"a": "1"})
	n := 0
	fake.Always(func(w http.ResponseWriter, r buckets.Request) bool {
		if r.Kind == "get" {
			n++
			buckets.WriteObject(w, fmt.Sprint("etag-", n), "1")
		}
		return r.Kind == "get"
	})
	if _, err := fetch(t, open(t, fake, bucket.S3, credential.Bucket{})); !errors.Is(err, bucket.ErrChanged) {
		t.Errorf("got %v", err)
	}
}

// TestRule10Egress: the dial policy holds for every storage.
func TestRule10Egress(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]transport.Options{
		"loopback": {}, "denied": {AllowLoopback: true, DeniedPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	} {
		for _, kind := range kinds() {
			fake := buckets.New(t)
			all := bucket.New(bucket.Options{Transport: transport.New(options), GoogleEndpoint: fake.URL()})
			l := bucket.Location{Kind: kind, Endpoint: fake.Endpoint(), Bucket: buckets.Bucket, Insecure: true}
			if kind == bucket.Azure {
				l.Endpoint = fake.URL()
			}
			b, err := all.Open(t.Context(), l)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := gather(t.Context(), b, 10); !errors.Is(err, transport.ErrDenied) || len(fake.Take()) > 0 {
				t.Errorf("%s, %s: got %v", name, kind, err)
			}
		}
	}
}

// TestCallsEndWithTheirContext: the library's call that takes none too.
func TestCallsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			fake := buckets.New(t)
			fake.Always(func(_ http.ResponseWriter, r buckets.Request) bool {
				if r.Kind == "list" {
					<-r.Context().Done()
				}
				return r.Kind == "list"
			})
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, _, err := gather(ctx, open(t, fake, kind, credential.Bucket{}), 10); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestLocationsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, l := range []bucket.Location{
		{Kind: bucket.S3, Endpoint: "https://host/path", Bucket: "abc"},
		{Kind: bucket.S3, Endpoint: "", Bucket: "abc"},
		{Kind: bucket.S3, Endpoint: "host", Bucket: "a"},
		{Kind: bucket.Azure, Endpoint: "host", Bucket: "abc"},
		{Kind: bucket.Azure, Endpoint: "https://user:CANARY@host", Bucket: "abc"},
		{Kind: bucket.Azure, Endpoint: "https://host", Bucket: "a/b"},
		{Kind: bucket.Google, Bucket: "a/b"},
		{Kind: bucket.Google},
		{Kind: "ftp"},
	} {
		if _, err := clients("").Open(t.Context(), l); err == nil || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%+v: got %v", l, err)
		}
	}
}

// TestAHundredThousandKeys are a listing like others.
func TestAHundredThousandKeys(t *testing.T) {
	t.Parallel()
	fake := buckets.New(t)
	fake.Always(func(w http.ResponseWriter, r buckets.Request) bool {
		if r.Kind != "list" {
			return false
		}
		var page int
		_, _ = fmt.Sscan(r.URL.Query().Get("continuation-token"), &page)
		listing := buckets.Listing{IsTruncated: page < 99, NextContinuationToken: fmt.Sprint(page + 1)}
		for i := range 1000 {
			listing.Contents = append(listing.Contents, buckets.Entry{Key: fmt.Sprintf("%08d", page*1000+i), LastModified: "2024-01-01T00:00:00.000Z", ETag: `"e"`})
		}
		buckets.WriteListing(w, listing)
		return true
	})
	all, _, err := gather(t.Context(), open(t, fake, bucket.S3, credential.Bucket{}), 100_000)
	if err != nil || len(all) != 100_000 {
		t.Errorf("%d objects, %v", len(all), err)
	}
}

// TestCookiesAreNotKept: a client may keep what a server sets for as long as it lives, without a bound, and send all of it.
func TestCookiesAreNotKept(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds() {
		fake := buckets.New(t)
		fake.Put(map[string]string{"a": "1"})
		fake.Always(func(w http.ResponseWriter, _ buckets.Request) bool {
			w.Header().Add("Set-Cookie", "name=value; Path=/")
			return false
		})
		b := open(t, fake, kind, credential.Bucket{})
		for range 2 {
			if _, err := fetch(t, b); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range fake.Requests() {
			if r.Header.Get("Cookie") != "" {
				t.Errorf("%s: %s was asked for with a cookie", kind, r.URL)
			}
		}
	}
}
