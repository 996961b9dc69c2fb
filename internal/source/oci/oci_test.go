package oci_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/credential"
	registryclient "sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/oci"
	"sluice.dev/sluice/internal/source/sourcetest"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/trust"
	"sluice.dev/sluice/internal/verify/verifytest"
	"sluice.dev/sluice/tests/upstream/registry"
)

// secrets is a namespace's Secrets; every registry is anonymous.
type secrets map[string]map[string][]byte

func (secrets) Registry(context.Context, auth.RegistryRequest) (credential.Registry, error) {
	return credential.Registry{}, nil
}

func (s secrets) Data(_ context.Context, _, name, _ string) (map[string][]byte, error) {
	return s[name], nil
}

// offline refuses every request: what these tests verify needs no network.
type offline struct{}

func (offline) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("verification asked %s", r.URL)
}

func newOpener(t *testing.T, credentials oci.Credentials) *oci.Opener {
	t.Helper()
	client, err := registryclient.New(registryclient.Options{Transport: transport.New(transport.Options{AllowLoopback: true})})
	if err != nil {
		t.Fatal(err)
	}
	return oci.NewOpener(oci.Options{
		Client: client, Credentials: credentials, TempDir: t.TempDir(),
		Trust: trust.Trust{Revocation: &http.Client{Transport: offline{}}},
	})
}

// repository is a real registry with one object that follows its latest tag.
type repository struct {
	t        *testing.T
	secrets  secrets
	opener   *oci.Opener
	registry *registry.Fixture
	edited   *registry.Edited
	key      *verifytest.Key
	obj      *sourcev1.OCIRepository
	version  int
	edition  int
	head     ocispec.Descriptor
	// signatures are the digests of the blobs that hold one.
	signatures map[string]bool
}

var (
	_ sourcetest.Republisher = (*repository)(nil)
	_ sourcetest.Prover      = (*repository)(nil)
)

func open(t *testing.T) sourcetest.Upstream {
	t.Helper()
	return newRepository(t)
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	r := &repository{
		t: t, secrets: secrets{}, registry: registry.ForTest(t, registry.Options{}), key: verifytest.NewKey(t), signatures: map[string]bool{},
	}
	r.edited = r.registry.Repository("team/app")
	r.opener = newOpener(t, r.secrets)
	r.obj = &sourcev1.OCIRepository{Spec: sourcev1.OCIRepositorySpec{URL: r.registry.URL("team/app"), Insecure: true}}
	r.Advance()
	return r
}

func (r *repository) Open(ctx context.Context) (source.Session, error) {
	return r.opener.Open(ctx, r.obj)
}

func (r *repository) push() {
	r.head = r.edited.PushFlux("latest", r.layer(), map[string]string{
		ocispec.AnnotationSource: "https://git.example.com/app", ocispec.AnnotationRevision: fmt.Sprint("main@sha1:", r.edition),
	})
}

// layer is what the pushed layer holds.
func (r *repository) layer() map[string]string {
	return map[string]string{
		"app.yaml": fmt.Sprint("version: ", r.version), "docs/readme.txt": "read me", "logo.png": "excluded by default",
	}
}

func (r *repository) Advance() {
	r.version++
	r.push()
}

func (r *repository) Republish() {
	r.edition++
	r.push()
}

func (r *repository) Reconfigure() { r.obj.Spec.Ignore = new("docs/") }

func (r *repository) Break() func() {
	r.registry.Always(registry.Status(http.StatusServiceUnavailable))
	return r.registry.Heal
}

// Fetches counts the layers that were asked for; signatures are no content.
func (r *repository) Fetches() int {
	count := 0
	for _, request := range r.registry.Requests() {
		if request.Kind == registry.Blob && !r.signatures[request.Reference] {
			count++
		}
	}
	return count
}

func (r *repository) Files() map[string]string {
	files := maps.Clone(r.layer())
	if r.obj.Spec.Ignore != nil {
		delete(files, "docs/readme.txt")
	} else {
		delete(files, "logo.png")
	}
	return files
}

func (r *repository) trust(keys ...*verifytest.Key) {
	entries := map[string][]byte{}
	for i, key := range keys {
		entries[fmt.Sprint(i, ".pub")] = key.PublicPEM(r.t)
	}
	r.secrets["keys"] = entries
}

func (r *repository) Demand() {
	r.obj.Spec.Verify = &sourcev1.OCIRepositoryVerification{Provider: "cosign", SecretRef: &meta.LocalObjectReference{Name: "keys"}}
	r.trust(r.key)
	bundle := r.key.Bundle(r.t, r.head)
	r.edited.Attach(r.head, registry.Attachment{
		ArtifactType: bundle.MediaType, MediaType: bundle.MediaType, Content: bundle.Content,
	})
	r.signatures[digest.FromBytes(bundle.Content).String()] = true
}

func (r *repository) Rotate() { r.trust(verifytest.NewKey(r.t), r.key) }

func (r *repository) Distrust() { r.trust(verifytest.NewKey(r.t)) }

func TestContract(t *testing.T) {
	t.Parallel()
	sourcetest.Run(t, open)
}
