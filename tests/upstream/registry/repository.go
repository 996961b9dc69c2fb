package registry

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	orasregistry "oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
)

// Repository is a repository to push to, past all faults and access checks, through oras-go.
type Repository struct {
	registry *Registry
	name     string
	remote   *remote.Repository
	// indexing pushes as to a registry without the referrers API.
	indexing *remote.Repository
}

// Repository is the repository of that name, which need not exist.
func (r *Registry) Repository(name string) *Repository {
	repository := &Repository{registry: r, name: name, remote: r.remote(name), indexing: r.remote(name)}
	repository.remote.SetReferrersCapability(true)    //nolint:errcheck // It is the first to say so.
	repository.indexing.SetReferrersCapability(false) //nolint:errcheck // As above.
	return repository
}

func (r *Registry) remote(name string) *remote.Repository {
	host := strings.TrimPrefix(r.inner.url, "http://")
	return &remote.Repository{
		Reference: orasregistry.Reference{Registry: host, Repository: name}, PlainHTTP: true, Client: r.client,
	}
}

// Name is the repository's name.
func (r *Repository) Name() string { return r.name }

// URL is oci://host:port/name.
func (r *Repository) URL() string { return r.registry.URL(r.name) }

// Push pushes the blobs of a manifest, then the manifest, and tags it unless tag is empty.
func (r *Repository) Push(ctx context.Context, tag string, manifest Manifest) (ocispec.Descriptor, error) {
	return r.push(ctx, r.remote, tag, manifest)
}

func (r *Repository) push(ctx context.Context, to *remote.Repository, tag string, manifest Manifest) (ocispec.Descriptor, error) {
	for _, layer := range append([]Layer{manifest.config()}, manifest.Layers...) {
		if _, err := r.PushBlob(ctx, layer.MediaType, layer.Content); err != nil {
			return ocispec.Descriptor{}, err
		}
	}
	raw, described, err := manifest.Encode()
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return described, put(ctx, to, tag, raw, described)
}

// PushBlob pushes a blob that may belong to no manifest.
func (r *Repository) PushBlob(ctx context.Context, mediaType string, content []byte) (ocispec.Descriptor, error) {
	described := Layer{MediaType: mediaType, Content: content}.Descriptor()
	exists, err := r.remote.Blobs().Exists(ctx, described)
	if err != nil {
		return described, fmt.Errorf("push blob %q: %w", described.Digest, err)
	}
	if exists {
		return described, nil
	}
	if err := r.remote.Blobs().Push(ctx, described, bytes.NewReader(content)); err != nil {
		return described, fmt.Errorf("push blob %q: %w", described.Digest, err)
	}
	return described, nil
}

// PushList pushes an index; what it names need not exist.
func (r *Repository) PushList(ctx context.Context, tag string, index Index) (ocispec.Descriptor, error) {
	raw, described, err := index.Encode()
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return described, put(ctx, r.remote, tag, raw, described)
}

// PutManifest pushes these bytes. Distribution refuses what it does not take for a manifest of the media type;
// Registry.Serve does not.
func (r *Repository) PutManifest(ctx context.Context, tag, mediaType string, raw []byte) (ocispec.Descriptor, error) {
	described := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
	return described, put(ctx, r.remote, tag, raw, described)
}

func put(ctx context.Context, to *remote.Repository, tag string, raw []byte, described ocispec.Descriptor) error {
	reference := tag
	if reference == "" {
		reference = described.Digest.String()
	}
	if err := to.Manifests().PushReference(ctx, described, bytes.NewReader(raw), reference); err != nil {
		return fmt.Errorf("push manifest %q: %w", reference, err)
	}
	return nil
}

// Tag makes the tag name the manifest, and moves it if there is one.
func (r *Repository) Tag(ctx context.Context, tag string, described ocispec.Descriptor) error {
	return r.remote.Tag(ctx, described, tag)
}

// Untag takes the tag away; the manifest stays.
func (r *Repository) Untag(ctx context.Context, tag string) error {
	url := r.registry.inner.url + "/v2/" + r.name + "/manifests/" + tag
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("untag %q: %w", tag, err)
	}
	response, err := r.registry.client.Do(request)
	if err != nil {
		return fmt.Errorf("untag %q: %w", tag, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusAccepted {
		return fmt.Errorf("untag %q: %s", tag, response.Status)
	}
	return nil
}

// Delete deletes a manifest and the tags that name it.
func (r *Repository) Delete(ctx context.Context, manifest ocispec.Descriptor) error {
	return r.remote.Manifests().Delete(ctx, manifest)
}

// DeleteBlob deletes a blob that manifests may still name.
func (r *Repository) DeleteBlob(ctx context.Context, blob ocispec.Descriptor) error {
	return r.remote.Blobs().Delete(ctx, blob)
}

// Resolve is the manifest that the tag names.
func (r *Repository) Resolve(ctx context.Context, tag string) (ocispec.Descriptor, error) {
	return r.remote.Resolve(ctx, tag)
}
