package registry

import (
	"context"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// PushFlux pushes the files as flux push does.
func (r *Repository) PushFlux(ctx context.Context, tag string, files, annotations map[string]string) (ocispec.Descriptor, error) {
	return r.made(ctx, tag)(Flux(files, annotations))
}

// PushORAS pushes the layers as oras push does: with an empty config and a type of artifact.
func (r *Repository) PushORAS(ctx context.Context, tag string, layers ...Layer) (ocispec.Descriptor, error) {
	return r.Push(ctx, tag, Manifest{ArtifactType: "application/vnd.unknown.artifact.v1", Layers: layers})
}

// PushHelm pushes a packed chart as helm push does.
func (r *Repository) PushHelm(ctx context.Context, tag string, chart []byte) (ocispec.Descriptor, error) {
	return r.made(ctx, tag)(Helm(chart))
}

// PushDocker pushes an image as docker push does.
func (r *Repository) PushDocker(ctx context.Context, tag string, layers ...Layer) (ocispec.Descriptor, error) {
	return r.made(ctx, tag)(Docker(layers...))
}

// PushWithSubject pushes a manifest that refers to the subject.
func (r *Repository) PushWithSubject(ctx context.Context, tag string, subject ocispec.Descriptor, manifest Manifest) (ocispec.Descriptor, error) {
	manifest.Subject = bare(subject)
	return r.Push(ctx, tag, manifest)
}

// PushIndex pushes an OCI index of these manifests, in this order; OnPlatform says what each is for.
func (r *Repository) PushIndex(ctx context.Context, tag string, manifests ...ocispec.Descriptor) (ocispec.Descriptor, error) {
	return r.PushList(ctx, tag, Index{Manifests: manifests})
}

// PushDockerList pushes a manifest list of Docker's.
func (r *Repository) PushDockerList(ctx context.Context, tag string, manifests ...ocispec.Descriptor) (ocispec.Descriptor, error) {
	return r.PushList(ctx, tag, Index{MediaType: DockerListType, Manifests: manifests})
}

// OnPlatform marks a manifest for an index as being for os/architecture[/variant].
func OnPlatform(platform string, manifest ocispec.Descriptor) ocispec.Descriptor {
	system, rest, _ := strings.Cut(platform, "/")
	architecture, variant, _ := strings.Cut(rest, "/")
	manifest.Platform = &ocispec.Platform{OS: system, Architecture: architecture, Variant: variant}
	return manifest
}

func (r *Repository) made(ctx context.Context, tag string) func(Manifest, error) (ocispec.Descriptor, error) {
	return func(manifest Manifest, err error) (ocispec.Descriptor, error) {
		if err != nil {
			return ocispec.Descriptor{}, err
		}
		return r.Push(ctx, tag, manifest)
	}
}
