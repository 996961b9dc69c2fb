package registry_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote/auth"

	"sluice.dev/sluice/tests/upstream"
	"sluice.dev/sluice/tests/upstream/registry"
)

func TestTagListIsPaged(t *testing.T) {
	t.Parallel()
	r := registry.ForTest(t, registry.Options{})
	repository := r.Repository("app")
	pushed := repository.PushFlux("", map[string]string{"a": "1"}, nil)
	var want []string
	for i := range 5 {
		want = append(want, fmt.Sprintf("v%d", i))
		repository.Tag(want[i], pushed)
	}
	list := func() (tags []string) {
		err := client(t, r, "app", auth.EmptyCredential).Tags(t.Context(), "", func(page []string) error {
			tags = append(tags, page...)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return tags
	}
	r.SetPageSize(2)
	if diff := cmp.Diff(want, list()); diff != "" {
		t.Errorf("tags, -want, +got:\n%s", diff)
	}
	if got := r.Count(registry.Tags); got != 3 {
		t.Errorf("pages: got %d, want 3", got)
	}
	r.Always(registry.NoLink())
	if diff := cmp.Diff(want[:2], list()); diff != "" {
		t.Errorf("tags without links, -want, +got:\n%s", diff)
	}
}

func TestTagListHasAnETagWhenAskedTo(t *testing.T) {
	t.Parallel()
	r := registry.ForTest(t, registry.Options{})
	repository := r.Repository("app")
	pushed := repository.PushFlux("v1", map[string]string{"a": "1"}, nil)
	ask := func(etag string) (int, string) {
		status, header, _, err := get(t, httpClient(t, r), http.MethodGet, r.BaseURL()+"/v2/app/tags/list", "If-None-Match", etag)
		if err != nil {
			t.Fatal(err)
		}
		return status, header.Get("ETag")
	}
	if status, etag := ask(""); status != http.StatusOK || etag != "" {
		t.Errorf("Distribution as it is: got %d and %q", status, etag)
	}
	r.SetTagETags(true)
	_, etag := ask("")
	if status, again := ask(etag); status != http.StatusNotModified || again != etag {
		t.Errorf("the same list: got %d and %q, want 304 and %q", status, again, etag)
	}
	repository.Tag("v2", pushed)
	if status, changed := ask(etag); status != http.StatusOK || changed == etag {
		t.Errorf("another list: got %d and %q", status, changed)
	}
}

func TestAlternateMovesATagBetweenRequests(t *testing.T) {
	t.Parallel()
	r := registry.ForTest(t, registry.Options{})
	repository := r.Repository("app")
	a := repository.PushFlux("v1", map[string]string{"a": "1"}, nil)
	b := repository.PushFlux("", map[string]string{"a": "2"}, nil)
	r.Alternate("app", "v1", a.Digest, b.Digest)
	from := client(t, r, "app", auth.EmptyCredential)
	var got []digest.Digest
	for i := range 4 {
		if i == 3 {
			r.Alternate("app", "v1")
		}
		d, err := from.Resolve(t.Context(), "v1")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, d.Digest)
	}
	if diff := cmp.Diff([]digest.Digest{a.Digest, b.Digest, a.Digest, a.Digest}, got); diff != "" {
		t.Errorf("digests, -want, +got:\n%s", diff)
	}
}

func TestBeforeRunsBetweenRequests(t *testing.T) {
	t.Parallel()
	r := registry.ForTest(t, registry.Options{})
	repository := r.Repository("app")
	a := repository.PushFlux("v1", map[string]string{"a": "1"}, nil)
	b := repository.PushFlux("v2", map[string]string{"a": "2"}, nil)
	r.Before(registry.ManifestGET, func() { repository.Tag("v1", b) })
	from := client(t, r, "app", auth.EmptyCredential)
	if d, err := from.Resolve(t.Context(), "v1"); err != nil || d.Digest != a.Digest {
		t.Errorf("HEAD: got %v, %v; want the first", d.Digest, err)
	}
	d, body, err := from.FetchReference(t.Context(), "v1")
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if d.Digest != b.Digest {
		t.Errorf("GET: got %v, want the second", d.Digest)
	}
}

func TestServeAnswersWithWhatDistributionRefuses(t *testing.T) {
	t.Parallel()
	r := registry.ForTest(t, registry.Options{})
	raw := []byte(`{"schemaVersion":2,"mediaType":"application/x.mine","layers":[{"size":-1}]}`)
	if _, err := r.Repository("app").Repository.PutManifest(t.Context(), "v1", "application/x.mine", raw); err == nil {
		t.Error("Distribution stored it: Serve is not needed")
	}
	want := r.Serve("app", "v1", "application/x.mine", raw)
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		status, header, body, err := get(t, httpClient(t, r), method, r.BaseURL()+"/v2/app/manifests/v1")
		if err != nil || status != http.StatusOK || header.Get("Content-Type") != want.MediaType ||
			header.Get("Docker-Content-Digest") != want.Digest.String() || header.Get("Content-Length") != fmt.Sprint(want.Size) {
			t.Errorf("%s: got %d %v, %v", method, status, header, err)
		}
		if method == http.MethodGet && body != string(raw) {
			t.Errorf("GET: got %q", body)
		}
	}
	r.Serve("app", "v1", "", nil)
	if status, _, _, err := get(t, httpClient(t, r), http.MethodGet, r.BaseURL()+"/v2/app/manifests/v1"); err != nil || status != http.StatusNotFound {
		t.Errorf("taken away: got %d, %v", status, err)
	}
}

func TestReferrers(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		api    bool
		attach func(*registry.Edited) func(ocispec.Descriptor, registry.Attachment) ocispec.Descriptor
		want   int
	}{
		"API": {"the API lists them", true, func(e *registry.Edited) func(ocispec.Descriptor, registry.Attachment) ocispec.Descriptor {
			return e.Attach
		}, 3},
		"TagSchema": {"the tag lists them where there is no API", false, func(e *registry.Edited) func(ocispec.Descriptor, registry.Attachment) ocispec.Descriptor {
			return e.AttachReferrersTag
		}, 3},
		"NeitherAPINorIndex": {"nothing lists them", false, func(e *registry.Edited) func(ocispec.Descriptor, registry.Attachment) ocispec.Descriptor {
			return e.Attach
		}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registry.ForTest(t, registry.Options{})
			r.SetReferrersAPI(tc.api)
			r.SetReferrersPage(2)
			repository := r.Repository("app")
			subject := repository.PushFlux("v1", map[string]string{"a": "1"}, nil)
			var want []ocispec.Descriptor
			for i := range 3 {
				want = append(want, tc.attach(repository)(subject, registry.Attachment{
					ArtifactType: "application/x.signature", MediaType: "text/plain", Content: fmt.Append(nil, i),
					Annotations: map[string]string{"n": fmt.Sprint(i)},
				}))
			}
			tc.attach(repository)(subject, registry.Attachment{ArtifactType: "application/x.sbom", MediaType: "text/plain", Content: []byte("sbom")})
			var got []ocispec.Descriptor
			err := client(t, r, "app", auth.EmptyCredential).Referrers(t.Context(), subject, "application/x.signature", func(page []ocispec.Descriptor) error {
				got = append(got, page...)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != tc.want {
				t.Fatalf("%s: got %d, want %d", tc.reason, len(got), tc.want)
			}
			for i, d := range got {
				if diff := same(want[i], d); diff != "" || d.ArtifactType != "application/x.signature" || d.Annotations["n"] != fmt.Sprint(i) {
					t.Errorf("%s: referrer %d is %+v: %s", tc.reason, i, d, diff)
				}
			}
		})
	}
}

func TestADeletedReferrerIsListedNoMore(t *testing.T) {
	t.Parallel()
	r := registry.ForTest(t, registry.Options{})
	repository := r.Repository("app")
	subject := repository.PushFlux("v1", map[string]string{"a": "1"}, nil)
	attached := repository.Attach(subject, registry.Attachment{ArtifactType: "a/b", MediaType: "text/plain", Content: []byte("x")})
	count := func() (n int) {
		err := client(t, r, "app", auth.EmptyCredential).Referrers(t.Context(), subject, "", func(page []ocispec.Descriptor) error {
			n += len(page)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if got := count(); got != 1 {
		t.Fatalf("before: got %d, want 1", got)
	}
	repository.Delete(attached)
	if got := count(); got != 0 {
		t.Errorf("after: got %d, want 0", got)
	}
}

func TestPushesThroughTheFrontAreListedToo(t *testing.T) {
	t.Parallel()
	r := registry.ForTest(t, registry.Options{Auth: registry.TokenAuth, Users: map[string]string{"ada": "secret"}})
	subject := r.Repository("app").PushFlux("v1", map[string]string{"a": "1"}, nil)
	to := client(t, r, "app", auth.Credential{Username: "ada", Password: "secret"})
	config := registry.Layer{MediaType: ocispec.MediaTypeEmptyJSON, Content: []byte("{}")}
	raw, described, err := registry.Manifest{ArtifactType: "a/b", Subject: &subject, Config: &config}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	r.Repository("app").PushBlob(config.MediaType, config.Content)
	if err := push(t, to, described, raw); err != nil {
		t.Fatal(err)
	}
	found := 0
	if err := to.Referrers(t.Context(), subject, "", func(page []ocispec.Descriptor) error { found += len(page); return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := to.Resolve(t.Context(), registry.ReferrersTag(subject.Digest)); found != 1 || err == nil {
		t.Errorf("got %d referrers and the tag's index: %v; want one and no index, for the client was told of the API", found, err)
	}
}

func TestCosignTag(t *testing.T) {
	t.Parallel()
	r := registry.ForTest(t, registry.Options{})
	repository := r.Repository("app")
	subject := repository.PushFlux("v1", map[string]string{"a": "1"}, nil)
	signature := repository.AttachCosignTag(subject, registry.Layer{
		Content: []byte(`{"critical":{}}`), Annotations: map[string]string{"dev.cosignproject.cosign/signature": "MEUC"},
	})
	got, err := pull(t.Context(), client(t, r, "app", auth.EmptyCredential), "sha256-"+subject.Digest.Encoded()+".sig")
	if err != nil {
		t.Fatal(err)
	}
	if diff := same(signature, got); diff != "" {
		t.Errorf("-pushed, +pulled:\n%s", diff)
	}
}

func TestBlobStoreSeesNoCredentials(t *testing.T) {
	t.Parallel()
	ca, err := upstream.NewCA("test")
	if err != nil {
		t.Fatal(err)
	}
	r := registry.ForTest(t, registry.Options{CA: ca, Auth: registry.Basic, Users: map[string]string{"ada": "secret"}})
	store := r.BlobStore(ca)
	layer := registry.Layer{MediaType: "text/plain", Content: []byte("0123456789")}
	r.Repository("team/app").PushORAS("v1", layer)
	r.Always(registry.RedirectBlobs(store))
	if _, err := pull(t.Context(), client(t, r, "team/app", auth.Credential{Username: "ada", Password: "secret"}), "v1"); err != nil {
		t.Errorf("pull: %v", err)
	}
	if got := store.Count(registry.Blob); got != 2 {
		t.Errorf("blobs from the store: got %d, want 2", got)
	}
	if secrets := store.Secrets(); secrets != nil {
		t.Errorf("the store saw %d credentials", len(secrets))
	}
	if r.Sent(registry.Blob) != 0 || len(r.Secrets()) == 0 {
		t.Errorf("the registry sent %d bytes of blobs and saw %d credentials; want none and some", r.Sent(registry.Blob), len(r.Secrets()))
	}
	url := store.URL() + "/team/app/" + layer.Descriptor().Digest.String()
	for _, tc := range []struct {
		query, authorization string
		status               int
	}{
		{"", "", 403},
		{"?X-Signature=0f1e2d3c4b5a", "", 200},
		{"?X-Signature=0f1e2d3c4b5a", "Basic YWRhOnNlY3JldA==", 400},
	} {
		status, _, _, err := get(t, httpClient(t, r), http.MethodGet, url+tc.query, "Authorization", tc.authorization)
		if err != nil || status != tc.status {
			t.Errorf("%+v: got %d, %v", tc, status, err)
		}
	}
	store.FailNext(1, registry.Cut(3).On(registry.Blob))
	if _, _, body, err := get(t, httpClient(t, r), http.MethodGet, url+"?X-Signature=0f1e2d3c4b5a"); err == nil || body != "012" {
		t.Errorf("a store with a fault: got %q, %v", body, err)
	}
}
