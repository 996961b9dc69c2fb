package registry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/tests/upstream"
	fixture "sluice.dev/sluice/tests/upstream/registry"
)

// noise are bytes that no two parts of look alike.
func noise(size int) []byte {
	out := make([]byte, 0, size+64)
	for sum := []byte(digest.FromString("seed").Encoded()); len(out) < size; {
		out = append(out, sum...)
		sum = []byte(digest.FromBytes(sum).Encoded())
	}
	return out[:size]
}

func pull(ctx context.Context, client *Client, r Repository, d ocispec.Descriptor) ([]byte, error) {
	stream, err := client.Blob(ctx, r, d)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(stream)
	if closed := stream.Close(); err == nil {
		err = closed
	}
	return content, err
}

func TestBlobIsCheckedAtItsEnd(t *testing.T) {
	t.Parallel()
	content := noise(100_000)
	for reason, test := range map[string]struct {
		fault fixture.Fault
		want  error
	}{
		"a byte changed":                {fixture.Corrupt(50_000), ErrDigest},
		"a byte changed, no length":     {corruptWithoutLength(50_000), ErrDigest},
		"never complete":                {cutAlways(), io.ErrUnexpectedEOF},
		"other bytes of another length": {answer(content[:99_999]), ErrDigest},
		"more bytes, length given":      {answer(append(bytes.Clone(content), 'x')), ErrDigest},
		"more bytes, no length":         {stream(append(bytes.Clone(content), 'x')), ErrDigest},
		"fewer bytes, no length":        {stream(content[:99_999]), io.ErrUnexpectedEOF},
		"nothing":                       {stream(nil), io.ErrUnexpectedEOF},
		"encoded":                       {fixture.Header("Content-Encoding", "gzip"), ErrProtocol},
		"a part that nobody asked for":  {fixture.Status(http.StatusPartialContent), nil},
	} {
		site, r := distribution(t, fixture.None)
		d := site.Repository(name).PushBlob(ocispec.MediaTypeImageLayerGzip, content)
		site.Always(test.fault.On(fixture.Blob))
		client, _ := newClient(t, nil)
		got, err := pull(t.Context(), client, r, d)
		if err == nil {
			t.Errorf("%s: accepted %d bytes", reason, len(got))
		}
		if test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestABlobIsItsBytes: registries name a blob by another digest than was asked for, and do not say that they send parts.
func TestABlobIsItsBytes(t *testing.T) {
	t.Parallel()
	content := noise(1000)
	requests := 0
	r := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Docker-Content-Digest", digest.SHA512.FromBytes(content).String())
		w.Header().Set("Content-Length", "1000")
		if requests++; requests > 1 {
			w.Header().Set("Content-Length", "500")
			w.Header().Set("Content-Range", "bytes 500-999/1000")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(content[500:])
			return
		}
		_, _ = w.Write(content[:500])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	client, _ := newClient(t, nil)
	if got, err := pull(t.Context(), client, r, blobDescriptor(content)); err != nil || !bytes.Equal(got, content) || requests != 2 {
		t.Errorf("%d bytes, %d requests: %v", len(got), requests, err)
	}
}

func answer(content []byte) fixture.Fault {
	return fixture.Custom(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		_, _ = w.Write(content)
	})
}

// stream answers without a length.
func stream(content []byte) fixture.Fault {
	return fixture.Custom(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		_, _ = w.Write(content)
	})
}

func corruptWithoutLength(at int) fixture.Fault {
	content := noise(100_000)
	content[at] ^= 1
	return stream(content)
}

// cutAlways sends ten bytes of whatever is asked for.
func cutAlways() fixture.Fault { return fixture.Cut(10) }

func TestABrokenBlobIsContinued(t *testing.T) {
	t.Parallel()
	content := noise(300_000)
	for reason, test := range map[string]struct {
		cuts     []int64
		requests int
		works    bool
	}{
		"unbroken":              {nil, 1, true},
		"once":                  {[]int64{100_000}, 2, true},
		"twice":                 {[]int64{100_000, 50_000}, 3, true},
		"before its first byte": {[]int64{0}, 2, true},
		"thrice":                {[]int64{100_000, 50_000, 1000}, 3, false},
	} {
		site, r := distribution(t, fixture.TokenAuth)
		d := site.Repository(name).PushBlob(ocispec.MediaTypeImageLayerGzip, content)
		client, _ := newClient(t, nil)
		if _, err := client.Resolve(t.Context(), r, "v1"); !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
		site.Reset()
		for _, cut := range test.cuts {
			site.FailNext(1, fixture.Cut(cut).On(fixture.Blob))
		}
		got, err := pull(t.Context(), client, r, d)
		if test.works != (err == nil) || test.works && !bytes.Equal(got, content) {
			t.Errorf("%s: %d bytes, %v", reason, len(got), err)
		}
		if site.Count(fixture.Blob) != test.requests {
			t.Errorf("%s: %d requests", reason, site.Count(fixture.Blob))
		}
	}
}

func TestPartsAreJudged(t *testing.T) {
	t.Parallel()
	content := noise(1000)
	for reason, test := range map[string]struct {
		answer func(w http.ResponseWriter)
		says   string
	}{
		"the range is ignored": {func(w http.ResponseWriter) { _, _ = w.Write(content) }, "cannot send a part"},
		"another range": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Range", "bytes 0-999/1000")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(content)
		}, "sends the part"},
		"no range": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusPartialContent) }, "sends the part"},
		"gone":     {func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, "404"},
		"other bytes": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Range", "bytes 500-999/1000")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(content[:500])
		}, "bytes with digest"},
		"encoded": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Range", "bytes 500-999/1000")
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(http.StatusPartialContent)
		}, "content encoding"},
	} {
		requests := 0
		r := serve(t, func(w http.ResponseWriter, request *http.Request) {
			if requests++; requests > 1 {
				if got := request.Header.Get("Range"); got != "bytes=500-999" {
					t.Errorf("%s: range %q", reason, got)
				}
				test.answer(w)
				return
			}
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write(content[:500])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		client, _ := newClient(t, nil)
		got, err := pull(t.Context(), client, r, blobDescriptor(content))
		if err == nil || !strings.Contains(err.Error(), test.says) || requests != 2 {
			t.Errorf("%s: %d bytes, %d requests: %v", reason, len(got), requests, err)
		}
	}
}

func TestBlobStreams(t *testing.T) {
	t.Parallel()
	content := noise(64 << 10)
	site, r := distribution(t, fixture.None)
	d := site.Repository(name).PushBlob(ocispec.MediaTypeImageLayerGzip, content)
	var observed int64
	client, _ := newClient(t, func(o *Options) { o.Observe = func(n int64) { observed += n } })
	stream, err := client.Blob(t.Context(), r, d)
	if err != nil {
		t.Fatal(err)
	}
	if err := iotest.TestReader(stream, content); err != nil {
		t.Error(err)
	}
	if err := stream.Close(); err != nil || observed != d.Size {
		t.Errorf("Close: %v, observed %d bytes", err, observed)
	}
	if n, err := stream.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("Read after the end: %d, %v", n, err)
	}
	empty := site.Repository(name).PushBlob(ocispec.MediaTypeImageLayer, nil)
	if got, err := pull(t.Context(), client, r, empty); err != nil || len(got) != 0 {
		t.Errorf("empty blob: %d bytes, %v", len(got), err)
	}
}

func TestAClosedOrCancelledStreamEnds(t *testing.T) {
	t.Parallel()
	content := noise(1 << 20)
	site, r := distribution(t, fixture.None)
	d := site.Repository(name).PushBlob(ocispec.MediaTypeImageLayerGzip, content)
	client, _ := newClient(t, nil)
	site.Always(fixture.HangAfter(1000).On(fixture.Blob))
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := client.Blob(ctx, r, d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stream, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.ReadAll(stream); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	_ = stream.Close()
	site.Heal()
	stream, err = client.Blob(t.Context(), r, d)
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.Close()
	if _, err := stream.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("closed: %v", err)
	}
}

func TestBlobStoresGetNoCredentials(t *testing.T) {
	t.Parallel()
	ca := need(upstream.NewCA("blob store"))(t)
	content := noise(100_000)
	for _, auth := range []fixture.Auth{fixture.Basic, fixture.TokenAuth} {
		site, r := distribution(t, auth)
		r.Credential.TLS.CA = append(r.Credential.TLS.CA, ca.PEM()...)
		d := site.Repository(name).PushBlob(ocispec.MediaTypeImageLayerGzip, content)
		for reason, test := range map[string]struct {
			store *fixture.BlobStore
			cut   bool
			works bool
		}{
			"a store with TLS":                {site.BlobStore(ca), false, true},
			"a store whose connection breaks": {site.BlobStore(ca), true, true},
			"a downgrade to http":             {site.BlobStore(nil), false, false},
		} {
			client, _ := newClient(t, nil)
			site.Heal()
			site.Always(fixture.RedirectBlobs(test.store))
			if test.cut {
				test.store.FailNext(1, fixture.Cut(1000))
			}
			got, err := pull(t.Context(), client, r, d)
			if test.works != (err == nil) || test.works && !bytes.Equal(got, content) {
				t.Errorf("%q, %s: %d bytes, %v", auth, reason, len(got), err)
			}
			if got := test.store.Secrets(); len(got) != 0 {
				t.Errorf("%q, %s: the blob store got %v", auth, reason, got)
			}
			if requests := len(test.store.Requests()); test.works != (requests > 0) {
				t.Errorf("%q, %s: %d requests to the store", auth, reason, requests)
			}
		}
	}
}

func TestRedirectsElsewhereCarryNothing(t *testing.T) {
	t.Parallel()
	ca := need(upstream.NewCA("sink"))(t)
	sink := need(upstream.NewSink(t.Context(), upstream.SinkOptions{CA: ca}))(t)
	plain := need(upstream.NewSink(t.Context(), upstream.SinkOptions{}))(t)
	_, port, _ := strings.Cut(strings.TrimPrefix(sink.URL(), "https://"), ":")
	for _, auth := range []fixture.Auth{fixture.Basic, fixture.TokenAuth} {
		site, r := distribution(t, auth)
		r.Credential.TLS.CA = append(r.Credential.TLS.CA, ca.PEM()...)
		pushed := site.Repository(name).PushORAS("v1", layer("x"))
		client, _ := newClient(t, nil)
		for _, target := range []string{sink.URL(), "https://localhost:" + port, plain.URL(), "file:///etc/passwd", "ftp://localhost/x"} {
			for _, status := range []int{301, 302, 303, 307, 308} {
				site.Heal()
				site.Always(fixture.Redirect(status, target+"/x"))
				_, resolveErr := client.Resolve(t.Context(), r, "v1")
				_, tagsErr := tagsOf(t, client, r)
				_, manifestErr := client.Manifest(t.Context(), r, pushed.Digest)
				_, blobErr := client.Blob(t.Context(), r, blobDescriptor([]byte("x")))
				for _, err := range []error{resolveErr, tagsErr, manifestErr, blobErr} {
					mustNotLeak(t, err)
					if err == nil {
						t.Errorf("%q, %d to %s: no error", auth, status, target)
					}
				}
			}
		}
	}
	if got := append(sink.Secrets(), plain.Secrets()...); len(got) != 0 {
		t.Errorf("the sinks got %v", got)
	}
	if len(sink.Requests()) == 0 || len(plain.Requests()) != 0 {
		t.Errorf("%d requests with TLS, %d without", len(sink.Requests()), len(plain.Requests()))
	}
}

func TestDescriptorsAreCheckedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	right := blobDescriptor([]byte("x"))
	for reason, test := range map[string]struct {
		change func(*ocispec.Descriptor)
		want   error
	}{
		"a negative size": {func(d *ocispec.Descriptor) { d.Size = -1 }, ErrManifest},
		"too large":       {func(d *ocispec.Descriptor) { d.Size = 1<<30 + 1 }, ErrTooLarge},
		"md5":             {func(d *ocispec.Descriptor) { d.Digest = "md5:d41d8cd98f00b204e9800998ecf8427e" }, ErrManifest},
		"a path":          {func(d *ocispec.Descriptor) { d.Digest = "sha256:../../x" }, ErrManifest},
	} {
		client, seen := newClient(t, nil)
		d := right
		test.change(&d)
		_, err := client.Blob(t.Context(), Repository{Host: "127.0.0.1:1", Name: name}, d)
		if !errors.Is(err, test.want) || seen.count("") != 0 {
			t.Errorf("%s: %v", reason, err)
		}
	}
}
