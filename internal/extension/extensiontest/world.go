// Package extensiontest has functions in a real registry, for tests.
// It does not know what they do.
package extensiontest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/extension"
	"sluice.dev/sluice/internal/kpt/wasm"
	"sluice.dev/sluice/internal/memory"
	registryclient "sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/verify/verifytest"
	"sluice.dev/sluice/tests/upstream/registry"
)

// World is a registry, somebody who signs, and what runs what they have signed. At first nothing is allowed.
type World struct {
	*extension.Functions

	Registry *registry.Fixture
	Key      *verifytest.Key
	// Dir is where modules are kept.
	Dir     string
	options wasm.Options
}

// anybody reads registries without a credential.
type anybody struct{}

func (anybody) Registry(context.Context, auth.RegistryRequest) (credential.Registry, error) {
	return credential.Registry{}, nil
}

// New makes one.
func New(t testing.TB, options wasm.Options) *World {
	t.Helper()
	w := &World{Registry: registry.ForTest(t, registry.Options{}), Key: verifytest.NewKey(t), Dir: t.TempDir(), options: options}
	w.Restart(t)
	return w
}

// Restart begins anew with what is kept on disk.
func (w *World) Restart(t testing.TB) {
	t.Helper()
	connections := transport.New(transport.Options{AllowLoopback: true})
	t.Cleanup(connections.Close)
	client, err := registryclient.New(registryclient.Options{Transport: connections})
	if err != nil {
		t.Fatal(err)
	}
	w.options.Memory = memory.New(256<<20, "--functions")
	engine, err := wasm.New(w.options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	w.Functions = extension.New(extension.Options{
		Client: client, Credentials: anybody{}, Namespace: "sluice-system", Where: "the ConfigMap sluice-system/functions",
		Engine: engine, MaxModule: 16 << 20, Dir: w.Dir, Memory: w.options.Memory,
	})
}

// Publish pushes a module, and returns the image that names it.
func (w *World) Publish(name string, module []byte) string {
	return w.image(name, w.push(name, module))
}

// PublishSigned is Publish with a signature beside it.
func (w *World) PublishSigned(t testing.TB, name string, module []byte) string {
	t.Helper()
	pushed := w.push(name, module)
	w.Sign(t, name, pushed.Digest, w.Key)
	return w.image(name, pushed)
}

func (w *World) push(name string, module []byte) ocispec.Descriptor {
	return w.Registry.Repository(name).Push("", registry.Manifest{
		ArtifactType: "application/vnd.wasm.config.v0+json", Layers: []registry.Layer{{MediaType: "application/wasm", Content: module}},
	})
}

// Sign signs an artifact as cosign does.
func (w *World) Sign(t testing.TB, name string, of digest.Digest, key *verifytest.Key) {
	t.Helper()
	s := key.SimpleSigning(t, w.host()+"/"+name, of)
	w.Registry.Repository(name).AttachCosignTag(ocispec.Descriptor{Digest: of},
		registry.Layer{MediaType: s.MediaType, Content: s.Content, Annotations: s.Annotations})
}

func (w *World) host() string {
	host, _, _ := strings.Cut(strings.TrimPrefix(w.Registry.URL("x"), "oci://"), "/")
	return host
}

func (w *World) image(name string, pushed ocispec.Descriptor) string {
	return fmt.Sprintf("%s/%s@%s", w.host(), name, pushed.Digest)
}

// Policy allows what the key has signed in the repository, or beneath a path that ends in /*.
func (w *World) Policy(t testing.TB, repository string) string {
	t.Helper()
	key := strings.ReplaceAll(strings.TrimSpace(string(w.Key.PublicPEM(t))), "\n", "\n          ")
	return fmt.Sprintf("functions:\n  - repository: %s/%s\n    insecure: true\n    verify:\n      keys:\n        release: |\n          %s\n", w.host(), repository, key)
}
