package registry

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	fixture "sluice.dev/sluice/tests/upstream/registry"
)

const emptyManifest = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{` +
	`"mediaType":"application/vnd.oci.empty.v1+json","size":2,` +
	`"digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"},"layers":[]}`

func TestResolveWithoutHEAD(t *testing.T) {
	t.Parallel()
	for reason, fault := range map[string]fixture.Fault{
		"HEAD is refused":                    fixture.NoHEAD(),
		"HEAD is not implemented":            fixture.Status(http.StatusNotImplemented).On(fixture.ManifestHEAD),
		"HEAD names no digest":               fixture.NoDigest().On(fixture.ManifestHEAD),
		"neither HEAD nor GET name a digest": fixture.NoDigest(),
	} {
		site, r := distribution(t, fixture.None)
		pushed := site.Repository(name).PushORAS("v1", layer("x"))
		client, _ := newClient(t, nil)
		site.Reset()
		site.Always(fault)
		found, err := client.Resolve(t.Context(), r, "v1")
		if err != nil || found.Digest != pushed.Digest || found.Size != pushed.Size || found.MediaType != pushed.MediaType {
			t.Errorf("%s: %+v, %v", reason, found, err)
		}
		if heads, gets := site.Count(fixture.ManifestHEAD), site.Count(fixture.ManifestGET); heads != 1 || gets != 1 {
			t.Errorf("%s: %d HEAD, %d GET", reason, heads, gets)
		}
	}
}

func TestResolveJudgesTheDigest(t *testing.T) {
	t.Parallel()
	body := digest.FromString(emptyManifest)
	other := digest.FromString("other")
	for _, test := range []struct {
		reason, reference, named string
		noHead                   bool
		want                     error
	}{
		{"a tag", "v1", body.String(), false, nil},
		{"the digest asked for", body.String(), body.String(), false, nil},
		{"another digest than asked for", body.String(), other.String(), false, ErrDigest},
		{"HEAD is believed for a tag, GET by digest tells", "v1", other.String(), false, nil},
		{"no digest", "v1", "sha256:abc", false, ErrManifest},
		{"md5", "v1", "md5:d41d8cd98f00b204e9800998ecf8427e", false, ErrManifest},
		{"a path", "v1", "../../etc/passwd", false, ErrManifest},
		{"capitals", "v1", strings.ToUpper(body.String()), false, ErrManifest},
		{"GET with another digest than its bytes", "v1", other.String(), true, ErrDigest},
		{"GET with no digest", "v1", "nonsense", true, ErrManifest},
		{"GET of a digest", body.String(), body.String(), true, nil},
		{"GET of another digest", other.String(), other.String(), true, ErrDigest},
		{"no tag", "a/b", "", false, ErrURL},
		{"an empty tag", "", "", false, ErrURL},
		{"a tag that begins with a dot", ".a", "", false, ErrURL},
		{"a tag too long", strings.Repeat("a", 129), "", false, ErrURL},
		{"a digest too short", "sha256:abc", "", false, ErrURL},
	} {
		r := serve(t, func(w http.ResponseWriter, request *http.Request) {
			if test.noHead && request.Method == http.MethodHead {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			w.Header().Set("Docker-Content-Digest", test.named)
			respond(w, http.StatusOK, ocispec.MediaTypeImageManifest, emptyManifest)
		})
		client, _ := newClient(t, nil)
		found, err := client.Resolve(t.Context(), r, test.reference)
		if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: %v", test.reason, err)
		}
		if err == nil && found.Digest.String() != test.named {
			t.Errorf("%s: %s", test.reason, found.Digest)
		}
	}
}

func TestHEADThatDisagreesWithGET(t *testing.T) {
	t.Parallel()
	site, r := distribution(t, fixture.None)
	pushed := site.Repository(name).PushORAS("v1", layer("x"))
	client, _ := newClient(t, nil)
	lie := pushed
	lie.Digest = digest.FromString("never pushed")
	site.Always(fixture.HeadSays(lie))
	found, err := client.Resolve(t.Context(), r, "v1")
	if err != nil || found.Digest != lie.Digest {
		t.Fatalf("Resolve: %+v, %v", found, err)
	}
	if _, err := client.Manifest(t.Context(), r, found.Digest); !errors.Is(err, ErrNotFound) {
		t.Errorf("Manifest: %v", err)
	}
	site.Heal()
	site.Serve(name, lie.Digest.String(), pushed.MediaType, []byte(emptyManifest))
	if _, err := client.Manifest(t.Context(), r, found.Digest); !errors.Is(err, ErrDigest) {
		t.Errorf("Manifest with other bytes: %v", err)
	}
}

func TestRefusedRepositories(t *testing.T) {
	t.Parallel()
	for reason, change := range map[string]func(*Repository){
		"no host":                         func(r *Repository) { r.Host = "" },
		"a path in the host":              func(r *Repository) { r.Host += "/x" },
		"no name":                         func(r *Repository) { r.Name = "" },
		"dots in the name":                func(r *Repository) { r.Name = "../x" },
		"unverified TLS without insecure": func(r *Repository) { r.Credential.TLS.SkipVerify = true },
		"a colon in the user name":        func(r *Repository) { r.Credential.Username = "a:b" },
	} {
		client, seen := newClient(t, nil)
		r := Repository{Host: "127.0.0.1:1", Name: name}
		change(&r)
		if _, err := client.Resolve(t.Context(), r, "v1"); !errors.Is(err, ErrURL) && !errors.Is(err, ErrAuthentication) {
			t.Errorf("%s: %v", reason, err)
		}
		if seen.count("") != 0 {
			t.Errorf("%s: something was sent", reason)
		}
	}
}
