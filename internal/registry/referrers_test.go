package registry

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	fixture "sluice.dev/sluice/tests/upstream/registry"
)

const (
	bundleType    = "application/vnd.dev.sigstore.bundle.v0.3+json"
	signatureType = "application/vnd.cncf.notary.signature"
)

func TestReferrers(t *testing.T) {
	t.Parallel()
	for _, api := range []bool{true, false} {
		site, r := distribution(t, fixture.Basic)
		site.SetReferrersAPI(api)
		repository := site.Repository(name)
		subject := repository.PushORAS("v1", layer("x"))
		lonely := repository.PushORAS("v2", layer("y"))
		attach := repository.Attach
		if !api {
			attach = repository.AttachReferrersTag
		}
		var bundles []digest.Digest
		for i := range 5 {
			kind := bundleType
			if i%2 == 1 {
				kind = signatureType
			}
			pushed := attach(subject, fixture.Attachment{ArtifactType: kind, MediaType: kind, Content: []byte(fmt.Sprint(i))})
			if kind == bundleType {
				bundles = append(bundles, pushed.Digest)
			}
		}
		for _, page := range []int{0, 2} {
			site.SetReferrersPage(page)
			client, _ := newClient(t, func(o *Options) { o.MaxReferrers = 3 })
			found, err := client.Referrers(t.Context(), r, subject.Digest, bundleType)
			got := map[digest.Digest]bool{}
			for _, one := range found {
				got[one.Digest] = one.ArtifactType == bundleType
			}
			if err != nil || len(found) != 3 || !got[bundles[0]] || !got[bundles[1]] || !got[bundles[2]] {
				t.Errorf("api %t, pages of %d: %v, %v", api, page, found, err)
			}
			found, err = client.Referrers(t.Context(), r, lonely.Digest, bundleType)
			if err != nil || len(found) != 0 {
				t.Errorf("api %t, no referrers: %v, %v", api, found, err)
			}
			if _, err = client.Referrers(t.Context(), r, subject.Digest, ""); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "MaxReferrers") {
				t.Errorf("api %t, too many: %v", api, err)
			}
		}
	}
}

func TestReferrersAnswers(t *testing.T) {
	t.Parallel()
	subject := digest.FromString("subject")
	path := "/v2/" + name + "/referrers/" + subject.String()
	one := `{"mediaType":"` + ociImage + `","size":2,"digest":"sha256:` + hex64 + `","artifactType":"` + bundleType + `"}`
	index := `{"schemaVersion":2,"manifests":[` + one + `]}`
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	says := func(contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { respond(w, 200, contentType, body) }
	}
	linked := func(link string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", link)
			respond(w, 200, ociIndex, index)
		}
	}
	for reason, test := range map[string]struct {
		api, tag http.HandlerFunc
		count    int
		asked    bool // for the tag
		is       error
		fails    bool
	}{
		"the api":                   {says(ociIndex, index), nil, 1, false, nil, false},
		"not filtered":              {says(ociIndex, strings.Replace(index, "[", "["+descriptor+",", 1)), nil, 1, false, nil, false},
		"404, then the tag":         {status(404), says(ociIndex, index), 1, true, nil, false},
		"404, no tag":               {status(404), status(404), 0, true, nil, false},
		"405":                       {status(405), status(404), 0, true, nil, false},
		"400":                       {status(400), status(404), 0, true, nil, false},
		"a web page":                {says("text/html", "<html>"), status(404), 0, true, nil, false},
		"JSON that is no index":     {says("application/json", "{}"), status(404), 0, true, nil, false},
		"the tag is a manifest":     {status(404), says(ociImage, emptyManifest), 0, true, ErrManifest, true},
		"the tag is busy":           {status(404), status(503), 0, true, nil, true},
		"403":                       {status(403), nil, 0, false, ErrAuthentication, true},
		"429":                       {status(429), nil, 0, false, nil, true},
		"500":                       {status(500), nil, 0, false, nil, true},
		"a broken index":            {says(ociIndex, index[:50]), nil, 0, false, ErrManifest, true},
		"an index with layers":      {says(ociIndex, `{"schemaVersion":2,"manifests":[],"layers":[]}`), nil, 0, false, ErrManifest, true},
		"too large":                 {says(ociIndex, index+strings.Repeat(" ", 4<<20)), nil, 0, false, ErrTooLarge, true},
		"ten thousand":              {says(ociIndex, `{"schemaVersion":2,"manifests":[`+strings.Repeat(one+",", 9999)+one+`]}`), nil, 0, false, ErrTooLarge, true},
		"fifty-one":                 {says(ociIndex, `{"schemaVersion":2,"manifests":[`+strings.Repeat(one+",", 50)+one+`]}`), nil, 0, false, ErrTooLarge, true},
		"the next page elsewhere":   {linked(`<https://evil.example` + path + `?n=1>; rel="next"`), nil, 0, false, ErrProtocol, true},
		"the next page is the same": {linked(`<` + path + `?n=1>; rel="next"`), nil, 0, false, ErrProtocol, true},
	} {
		asked := false
		r := serve(t, func(w http.ResponseWriter, request *http.Request) {
			switch request.URL.Path {
			case path:
				test.api(w, request)
			case "/v2/" + name + "/manifests/sha256-" + subject.Encoded():
				asked = true
				test.tag(w, request)
			default:
				t.Errorf("%s: request for %s", reason, request.URL)
			}
		})
		client, _ := newClient(t, nil)
		found, err := client.Referrers(t.Context(), r, subject, bundleType)
		if len(found) != test.count || (err != nil) != test.fails || asked != test.asked || test.is != nil && !errors.Is(err, test.is) {
			t.Errorf("%s: %d, %v, tag asked for: %t", reason, len(found), err, asked)
		}
	}
}

func TestReferrersTag(t *testing.T) {
	t.Parallel()
	for d, want := range map[digest.Digest]string{
		"sha256:" + hex64:                              "sha256-" + hex64,
		digest.Digest("sha512:" + hex64 + hex64):       "sha512-" + hex64,
		digest.Digest("a+b.c:" + hex64 + hex64 + "=="): "a-b.c-" + hex64,
	} {
		if got := referrersTag(d); got != want || !IsTag(got) {
			t.Errorf("referrersTag(%q) = %q", d, got)
		}
	}
	var client *Client
	client, _ = newClient(t, nil)
	_, err := client.Referrers(t.Context(), Repository{Host: "127.0.0.1:1", Name: name}, "sha256:x", "")
	if !errors.Is(err, ErrManifest) {
		t.Errorf("a digest that is none: %v", err)
	}
}
