package registry

import (
	"context"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Attachment is what a manifest with a subject carries.
type Attachment struct {
	// ArtifactType is what the referrers API filters by.
	ArtifactType string
	// MediaType and Content are those of its only layer.
	MediaType string
	Content   []byte
	// Annotations are the manifest's.
	Annotations map[string]string
}

// Attach pushes an attachment for the referrers API.
func (r *Repository) Attach(ctx context.Context, subject ocispec.Descriptor, a Attachment) (ocispec.Descriptor, error) {
	return r.push(ctx, r.remote, "", a.manifest(subject))
}

// AttachReferrersTag pushes an attachment as to a registry without the referrers API: the index that the tag
// ReferrersTag names gets it too (OCI distribution specification 1.1, "Referrers Tag Schema").
func (r *Repository) AttachReferrersTag(ctx context.Context, subject ocispec.Descriptor, a Attachment) (ocispec.Descriptor, error) {
	return r.push(ctx, r.indexing, "", a.manifest(subject))
}

// AttachCosignTag pushes the layers under CosignTag, as cosign does with signatures that are no bundles. A layer
// without a media type is a simple signing payload; its signature belongs in its annotations.
func (r *Repository) AttachCosignTag(ctx context.Context, subject ocispec.Descriptor, layers ...Layer) (ocispec.Descriptor, error) {
	manifest := Manifest{Config: &Layer{
		MediaType: ocispec.MediaTypeImageConfig,
		Content:   []byte(`{"architecture":"","os":"","config":{},"rootfs":{"type":"layers","diff_ids":[]}}`),
	}}
	for _, layer := range layers {
		if layer.MediaType == "" {
			layer.MediaType = CosignSimpleSigning
		}
		manifest.Layers = append(manifest.Layers, layer)
	}
	return r.Push(ctx, CosignTag(subject.Digest), manifest)
}

// CosignTag is the tag of a digest's signatures.
func CosignTag(subject digest.Digest) string { return ReferrersTag(subject) + ".sig" }

// ReferrersTag is the tag of the index of a digest's referrers.
func ReferrersTag(subject digest.Digest) string {
	return strings.Replace(subject.String(), ":", "-", 1)
}

func (a Attachment) manifest(subject ocispec.Descriptor) Manifest {
	return Manifest{
		ArtifactType: a.ArtifactType, Subject: bare(subject), Annotations: a.Annotations,
		Layers: []Layer{{MediaType: a.MediaType, Content: a.Content}},
	}
}

// bare is what a subject says: neither annotations nor a platform.
func bare(d ocispec.Descriptor) *ocispec.Descriptor {
	return &ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
}
