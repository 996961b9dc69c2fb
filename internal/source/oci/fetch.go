package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/transport"
)

// The platform that is taken from an index: Flux's default, whatever the node is.
const (
	defaultOS           = "linux"
	defaultArchitecture = "amd64"
)

// Fetch brings the selected layer. The manifest comes first, and when it names the layer that is stored already, the
// layer is left where it is.
func (s *session) Fetch(ctx context.Context, selection source.Selection, have string) (source.Content, error) {
	remote, err := s.remote(ctx)
	if err != nil {
		return source.Content{}, err
	}
	layer, annotations, err := s.chosen(ctx, selection)
	if err != nil {
		return source.Content{}, err
	}
	content := source.Content{Metadata: annotations, Key: layer.Digest.String() + " " + s.shape}
	if content.Key == have {
		return content, nil
	}
	pull, copied := s.opener.Client.Blob, s.object.GetLayerOperation() == sourcev1.OCILayerCopy
	if copied {
		pull = s.opener.Client.Unverified // It is stored as it is, and hashed there.
	}
	blob, err := pull(ctx, remote, layer)
	if err != nil {
		return source.Content{}, explain(sourcev1.OCILayerOperationFailedReason, fmt.Errorf("pull layer %s: %w", layer.Digest, err))
	}
	if copied {
		content.Blob, content.Digest, content.Close = pulled{blob, layer}, layer.Digest, blob.Close
		return content, nil
	}
	tree, err := s.extract(ctx, blob, layer)
	if err != nil {
		return source.Content{}, err
	}
	content.Tree, content.Ignore, content.Close = tree, s.object.Spec.Ignore, tree.Close
	if tree.Links > 0 {
		content.SkippedLinks = fmt.Sprintf("links left out of the artifact: %d, the first is %s of layer %s; push files in their place if they are missed",
			tree.Links, transport.PrintableQuoted(tree.FirstLink), layer.Digest)
	}
	return content, nil
}

// chosen is the selected layer, and the annotations of its manifest. Of that itself nothing is held while the layer is
// pulled.
func (s *session) chosen(
	ctx context.Context, selection source.Selection,
) (layer ocispec.Descriptor, annotations map[string]string, err error) {
	defer s.forget(ctx)
	manifest, err := s.image(ctx, selection)
	if err != nil {
		return layer, nil, explain(sourcev1.OCIPullFailedReason, err)
	}
	if layer, err = s.layer(manifest); err != nil {
		return layer, nil, failure.Retry(sourcev1.OCILayerOperationFailedReason, err)
	}
	return layer, manifest.Annotations, nil
}

// image is the selected manifest, or what it names for the default platform when it is an index.
func (s *session) image(ctx context.Context, selection source.Selection) (*ocispec.Manifest, error) {
	document, err := s.manifest(ctx, selected(selection))
	if err != nil {
		return nil, err
	}
	if document.Manifest != nil {
		return document.Manifest, nil
	}
	chosen, err := forPlatform(document.Index)
	if err != nil {
		return nil, err
	}
	s.forget(ctx)
	if document, err = s.manifest(ctx, chosen.Digest); err != nil {
		return nil, err
	}
	if document.Manifest == nil {
		return nil, fmt.Errorf("index names another index, %s, for %s/%s: push an index of manifests", chosen.Digest, defaultOS, defaultArchitecture)
	}
	return document.Manifest, nil
}

// forPlatform chooses from an index. An entry that names no platform fits, as in Flux.
func forPlatform(index *ocispec.Index) (ocispec.Descriptor, error) {
	offered := make([]string, 0, len(index.Manifests))
	for _, entry := range index.Manifests {
		if entry.Platform == nil || entry.Platform.OS == defaultOS && entry.Platform.Architecture == defaultArchitecture {
			return entry, nil
		}
		offered = append(offered, entry.Platform.OS+"/"+entry.Platform.Architecture)
	}
	slices.Sort(offered)
	return ocispec.Descriptor{}, fmt.Errorf("index has nothing for %s/%s, only %q: push a manifest for that platform, or select one by its digest",
		defaultOS, defaultArchitecture, strings.Join(slices.Compact(offered), ", "))
}

// layer chooses from a manifest.
func (s *session) layer(manifest *ocispec.Manifest) (ocispec.Descriptor, error) {
	if len(manifest.Layers) == 0 {
		return ocispec.Descriptor{}, errors.New("manifest has no layers: push an artifact with at least one")
	}
	want := s.object.GetLayerMediaType()
	if want == "" {
		return manifest.Layers[0], nil
	}
	offered := make([]string, 0, len(manifest.Layers))
	for _, layer := range manifest.Layers {
		if layer.MediaType == want {
			return layer, nil
		}
		offered = append(offered, layer.MediaType)
	}
	slices.Sort(offered)
	return ocispec.Descriptor{}, fmt.Errorf("manifest has no layer of spec.layerSelector.mediaType %q, only %.256q", want, slices.Compact(offered))
}

// extract unpacks a layer, and reads it to its end: only there is it known whether it has the digest it should have.
func (s *session) extract(ctx context.Context, blob io.ReadCloser, layer ocispec.Descriptor) (*archive.Tree, error) {
	defer func() { _ = blob.Close() }()
	tree, err := archive.OpenLayer(ctx, blob, s.opener.TempDir, s.opener.Limits)
	if err == nil {
		if _, err = io.Copy(io.Discard, blob); err != nil {
			err = errors.Join(err, tree.Close())
		}
	}
	if err != nil {
		return nil, explain(sourcev1.OCILayerOperationFailedReason, fmt.Errorf("extract layer %s: %w", layer.Digest, err))
	}
	return tree, nil
}

// pulled is a layer that is read while it is stored. Its errors are those of the fetch all the same.
type pulled struct {
	blob  io.Reader
	layer ocispec.Descriptor
}

func (p pulled) Read(buffer []byte) (int, error) {
	n, err := p.blob.Read(buffer)
	if err != nil && !errors.Is(err, io.EOF) {
		err = failure.At(source.StageFetch,
			explain(sourcev1.OCILayerOperationFailedReason, fmt.Errorf("pull layer %s: %w", p.layer.Digest, err)))
	}
	return n, err
}
