package extension

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/kpt/wasm"
	"sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/registry/signatures"
	"sluice.dev/sluice/internal/verify"
)

// moduleTypes are the media types of layers that hold a module.
func moduleTypes() []string {
	return []string{"application/wasm", "application/vnd.wasm.content.layer.v1+wasm", "application/vnd.module.wasm.content.layer.v1+wasm"}
}

// key is under which name a module is kept: that of what it is, and of who was proved to have signed it.
func key(of artifact, by *rule) string {
	sum := sha256.Sum256([]byte(of.repository() + " " + of.digest.String() + " " + by.verifier.Fingerprint()))
	return hex.EncodeToString(sum[:])
}

// module is what is kept of the artifact, which is fetched and verified if it is not. Of many who want it one fetches.
func (f *Functions) module(ctx context.Context, of artifact, by *rule) (kept, error) {
	name := key(of, by)
	done, err := f.store.begin(ctx, name)
	if err != nil {
		return kept{}, err
	}
	defer done()
	if found, err := f.store.find(name); err == nil {
		return found, nil
	}
	// What registries answer is held in memory of its own: whoever began to render may have gone.
	var found kept
	err = f.options.Memory.Do(ctx, fair.Wish{}, nil, func(ctx context.Context) error {
		found, err = f.fetch(ctx, name, of, by)
		return err
	})
	return found, err
}

// fetch brings a module whose signature is good. Nothing else of what the registry has is looked at before that.
func (f *Functions) fetch(ctx context.Context, name string, of artifact, by *rule) (kept, error) {
	remote, err := f.remote(ctx, of, by)
	if err != nil {
		return kept{}, fmt.Errorf("%w: log in to the registry: %w", function.ErrUnavailable, err)
	}
	document, err := f.options.Client.Manifest(ctx, remote, of.digest)
	if err != nil {
		return kept{}, fmt.Errorf("%w: %w", function.ErrUnavailable, err)
	}
	defer registry.Release(ctx, document.Raw)
	search := signatures.Search{
		Client: f.options.Client, Remote: remote, Verifier: by.verifier, Most: f.options.MaxSignatures,
		Artifact: verify.Artifact{Repository: of.repository(), Descriptor: document.Descriptor},
	}
	signer, err := search.Run(ctx)
	switch {
	case errors.Is(err, signatures.ErrNone):
		return kept{}, fmt.Errorf("%w: verify the signature of %s: %w; %s says who has to sign", function.ErrUntrusted, of.digest, err, f.options.Where)
	case err != nil:
		return kept{}, fmt.Errorf("%w: verify the signature: %w", function.ErrUnavailable, err)
	}
	layer, err := f.layer(document)
	if err != nil {
		return kept{}, err
	}
	blob, err := f.options.Client.Blob(ctx, remote, layer)
	if err != nil {
		return kept{}, fmt.Errorf("%w: %w", function.ErrUnavailable, err)
	}
	defer func() { _ = blob.Close() }() // Reading told whether it was good.
	found := kept{Module: layer.Digest.String(), Size: layer.Size, Image: of.repository() + "@" + of.digest.String(), Signer: signer}
	if err := f.store.put(name, found, blob); err != nil {
		return kept{}, fmt.Errorf("%w: keep the module: %w", function.ErrUnavailable, err)
	}
	return found, nil
}

func (f *Functions) remote(ctx context.Context, of artifact, by *rule) (registry.Repository, error) {
	request := auth.RegistryRequest{Namespace: f.options.Namespace, Host: of.host, Repository: of.name, Insecure: by.Insecure}
	if by.SecretRef != nil {
		request.SecretName = by.SecretRef.Name
	}
	if by.CertSecretRef != nil {
		request.CertSecretName = by.CertSecretRef.Name
	}
	found, err := f.options.Credentials.Registry(ctx, request)
	return registry.Repository{Host: of.host, Name: of.name, Insecure: by.Insecure, Credential: found}, err
}

// layer is the one that holds the module.
func (f *Functions) layer(document registry.Document) (ocispec.Descriptor, error) {
	if document.Manifest == nil {
		return ocispec.Descriptor{}, fmt.Errorf("%w: it is an index; name the digest of a manifest in it", wasm.ErrModule)
	}
	found := slices.DeleteFunc(slices.Clone(document.Manifest.Layers), func(l ocispec.Descriptor) bool {
		return !slices.Contains(moduleTypes(), l.MediaType)
	})
	if len(found) != 1 {
		return ocispec.Descriptor{}, fmt.Errorf("%w: its manifest has %d layers of WebAssembly among %d, and has to have one, of type %s",
			wasm.ErrModule, len(found), len(document.Manifest.Layers), moduleTypes()[0])
	}
	if found[0].Size > f.options.MaxModule {
		return ocispec.Descriptor{}, fmt.Errorf("%w: it has %d bytes, and %d are allowed", wasm.ErrModule, found[0].Size, f.options.MaxModule)
	}
	return found[0], nil
}
