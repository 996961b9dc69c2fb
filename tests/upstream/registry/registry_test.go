package registry_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	orasregistry "oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"sluice.dev/sluice/tests/upstream"
	"sluice.dev/sluice/tests/upstream/registry"
)

// client is a repository as oras-go sees it through the front, without retries, which would hide faults.
func client(t *testing.T, r *registry.Fixture, name string, credential auth.Credential) *remote.Repository {
	t.Helper()
	return &remote.Repository{
		Reference: orasregistry.Reference{Registry: r.Host(), Repository: name},
		PlainHTTP: strings.HasPrefix(r.BaseURL(), "http://"),
		Client: &auth.Client{
			Client: httpClient(t, r), Cache: auth.NewCache(),
			Credential: func(context.Context, string) (auth.Credential, error) { return credential, nil },
		},
	}
}

func httpClient(t *testing.T, r *registry.Fixture, identities ...upstream.Identity) *http.Client {
	t.Helper()
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		t.Fatal("the default transport is none of net/http's")
	}
	transport = transport.Clone()
	transport.TLSClientConfig = clientTLS(t, r.CAPEM(), identities)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// pull resolves the tag, and fetches the manifest and all it names.
func pull(ctx context.Context, from *remote.Repository, tag string) (ocispec.Descriptor, error) {
	d, err := from.Resolve(ctx, tag)
	if err != nil {
		return d, err
	}
	return d, fetch(ctx, from, d)
}

func fetch(ctx context.Context, from *remote.Repository, d ocispec.Descriptor) error {
	if _, err := content.FetchAll(ctx, from, d); err != nil {
		return err
	}
	next, err := content.Successors(ctx, from, d)
	if err != nil {
		return err
	}
	for _, d := range next {
		if err := fetch(ctx, from, d); err != nil {
			return err
		}
	}
	return nil
}

func same(a, b ocispec.Descriptor) string {
	return cmp.Diff([]any{a.MediaType, a.Digest, a.Size}, []any{b.MediaType, b.Digest, b.Size})
}

func TestEveryFormatCanBePushedAndPulled(t *testing.T) {
	t.Parallel()
	files := map[string]string{"deploy.yaml": "kind: Deployment\n", "rbac/role.yaml": "kind: Role\n"}
	cases := map[string]func(*registry.Edited) ocispec.Descriptor{
		"flux": func(e *registry.Edited) ocispec.Descriptor {
			return e.PushFlux("tag", files, map[string]string{ocispec.AnnotationRevision: "v1@sha1:0"})
		},
		"oras": func(e *registry.Edited) ocispec.Descriptor {
			return e.PushORAS("tag", registry.Layer{MediaType: "text/plain", Content: []byte("one")},
				registry.Layer{MediaType: "text/plain", Content: []byte("two"), Annotations: map[string]string{ocispec.AnnotationTitle: "two.txt"}})
		},
		"helm": func(e *registry.Edited) ocispec.Descriptor {
			chart, err := registry.Chart("web", "1.2.3", map[string]string{"templates/web.yaml": "kind: Service\n"})
			if err != nil {
				t.Fatal(err)
			}
			return e.PushHelm("tag", chart)
		},
		"docker": func(e *registry.Edited) ocispec.Descriptor {
			return e.PushDocker("tag", registry.Layer{Content: []byte("layer")})
		},
		"index": func(e *registry.Edited) ocispec.Descriptor {
			return e.PushIndex("tag", registry.OnPlatform("linux/amd64", e.PushFlux("", files, nil)),
				registry.OnPlatform("linux/arm64/v8", e.PushORAS("", registry.Layer{MediaType: "text/plain", Content: []byte("arm")})))
		},
		"docker list": func(e *registry.Edited) ocispec.Descriptor {
			return e.PushDockerList("tag", registry.OnPlatform("linux/amd64", e.PushDocker("", registry.Layer{Content: []byte("layer")})))
		},
		"subject": func(e *registry.Edited) ocispec.Descriptor {
			return e.PushWithSubject("tag", e.PushFlux("", files, nil), registry.Manifest{ArtifactType: "application/x.test"})
		},
	}
	for _, options := range []registry.Options{{}, {Dir: t.TempDir()}} {
		r := registry.ForTest(t, options)
		for name, push := range cases {
			pushed := push(r.Repository("formats/" + strings.ReplaceAll(name, " ", "-")))
			pulled, err := pull(t.Context(), client(t, r, "formats/"+strings.ReplaceAll(name, " ", "-"), auth.EmptyCredential), "tag")
			if err != nil {
				t.Errorf("pull %q from dir %q: %v", name, options.Dir, err)
			}
			if diff := same(pushed, pulled); diff != "" {
				t.Errorf("pull %q from dir %q: -pushed, +pulled:\n%s", name, options.Dir, diff)
			}
		}
	}
}

func TestBytesAreTheSameOnEveryRun(t *testing.T) {
	t.Parallel()
	want := registry.ForTest(t, registry.Options{}).Repository("a").PushFlux("v1", map[string]string{"a": "1", "b": "2"}, nil)
	got := registry.ForTest(t, registry.Options{}).Repository("a").PushFlux("v1", map[string]string{"b": "2", "a": "1"}, nil)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("two registries, -one, +other:\n%s", diff)
	}
}

func TestTagsMoveAndGo(t *testing.T) {
	t.Parallel()
	r := registry.ForTest(t, registry.Options{})
	repository := r.Repository("tags")
	one := repository.PushFlux("v1", map[string]string{"a": "1"}, nil)
	two := repository.PushFlux("v2", map[string]string{"a": "2"}, nil)
	from := client(t, r, "tags", auth.EmptyCredential)

	repository.Tag("v1", two)
	if got, err := from.Resolve(t.Context(), "v1"); err != nil || got.Digest != two.Digest {
		t.Errorf("moved tag: got %v, %v; want %v", got.Digest, err, two.Digest)
	}
	repository.Untag("v1")
	if _, err := from.Resolve(t.Context(), "v1"); err == nil {
		t.Error("the tag that was taken away still resolves")
	}
	if got, err := from.Resolve(t.Context(), one.Digest.String()); err != nil || got.Digest != one.Digest {
		t.Errorf("a manifest without a tag: got %v, %v", got.Digest, err)
	}
	repository.Delete(two)
	if _, err := from.Resolve(t.Context(), "v2"); err == nil {
		t.Error("the tag of the deleted manifest still resolves")
	}
	layer := registry.Layer{MediaType: "text/plain", Content: []byte("gone")}
	repository.PushORAS("v3", layer)
	repository.DeleteBlob(layer.Descriptor())
	if _, err := pull(t.Context(), from, "v3"); err == nil {
		t.Error("a manifest was pulled whose blob is deleted")
	}
}

func TestRequestsAreCountedByKind(t *testing.T) {
	t.Parallel()
	r := registry.ForTest(t, registry.Options{})
	r.Repository("team/app").PushORAS("v1", registry.Layer{MediaType: "text/plain", Content: []byte("12345")})
	from := client(t, r, "team/app", auth.EmptyCredential)
	if _, err := pull(t.Context(), from, "v1"); err != nil {
		t.Fatal(err)
	}
	if err := from.Tags(t.Context(), "", func([]string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := from.Push(t.Context(), registry.Layer{Content: []byte("up")}.Descriptor(), strings.NewReader("up")); err != nil {
		t.Fatal(err)
	}
	got := map[registry.Kind]int{}
	for _, request := range r.Requests() {
		got[request.Kind]++
		if request.Repository != "team/app" || request.Status == 0 || request.Host != r.Host() {
			t.Errorf("request %+v: want the repository, a status and the host", request)
		}
	}
	// oras-go asks for the manifest twice: once to check it and once for what it names.
	want := map[registry.Kind]int{registry.ManifestHEAD: 1, registry.ManifestGET: 2, registry.Blob: 2, registry.Tags: 1, registry.Push: 2}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests by kind, -want, +got:\n%s", diff)
	}
	if sent := r.Sent(registry.Blob); sent != int64(len("12345")+len("{}")) {
		t.Errorf("bytes of blobs: got %d, want 7", sent)
	}
	if r.Connections() == 0 || r.BytesOut() == 0 || r.BytesIn() == 0 {
		t.Errorf("wire: %d connections, %d bytes out, %d in; want some of each", r.Connections(), r.BytesOut(), r.BytesIn())
	}
	r.Reset()
	if r.Count() != 0 || r.BytesOut() != 0 {
		t.Errorf("after Reset: %d requests, %d bytes", r.Count(), r.BytesOut())
	}
}

// get sends a request of the method and gives the answer's status, header and body.
func get(t *testing.T, c *http.Client, method, url string, header ...string) (int, http.Header, string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", ocispec.MediaTypeImageManifest)
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := c.Do(request)
	if err != nil {
		return 0, nil, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header, string(body), err
}

func TestNewSaysWhatItCannotDoAndCloseLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	open := registry.ForTest(t, registry.Options{Auth: registry.Basic})
	for name, options := range map[string]registry.Options{
		"an unknown mode":      {Auth: "magic"},
		"a port that is taken": {Address: open.Host()},
	} {
		if r, err := registry.New(t.Context(), options); err == nil {
			t.Errorf("%s: it started at %s", name, r.Host())
		}
	}
	if err := open.Close(); err != nil {
		t.Error(err)
	}
	if _, _, _, err := get(t, httpClient(t, open), http.MethodGet, open.BaseURL()+"/v2/"); err == nil {
		t.Error("it answers after Close")
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
