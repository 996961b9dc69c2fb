package registry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"sigs.k8s.io/yaml"
)

// Media types of the artifacts that people push.
const (
	FluxConfig          = "application/vnd.cncf.flux.config.v1+json"
	FluxContent         = "application/vnd.cncf.flux.content.v1.tar+gzip"
	HelmConfig          = "application/vnd.cncf.helm.config.v1+json"
	HelmContent         = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	DockerManifestType  = "application/vnd.docker.distribution.manifest.v2+json"
	DockerListType      = "application/vnd.docker.distribution.manifest.list.v2+json"
	DockerConfigType    = "application/vnd.docker.container.image.v1+json"
	DockerLayerType     = "application/vnd.docker.image.rootfs.diff.tar.gzip"
	CosignSimpleSigning = "application/vnd.dev.cosign.simplesigning.v1+json"
)

// Layer is a blob of a manifest. The manifest says of it what stands here.
type Layer struct {
	MediaType   string
	Content     []byte
	Annotations map[string]string
}

// Descriptor describes the layer.
func (l Layer) Descriptor() ocispec.Descriptor {
	return ocispec.Descriptor{
		MediaType: l.MediaType, Digest: digest.FromBytes(l.Content), Size: int64(len(l.Content)), Annotations: l.Annotations,
	}
}

// Manifest is what a manifest is made of. The same Manifest gives the same bytes.
type Manifest struct {
	// MediaType is that of an OCI image manifest when empty.
	MediaType    string
	ArtifactType string
	// Config is the empty config of OCI when nil.
	Config      *Layer
	Layers      []Layer
	Subject     *ocispec.Descriptor
	Annotations map[string]string
}

// Index is what an index is made of.
type Index struct {
	// MediaType is that of an OCI image index when empty.
	MediaType    string
	ArtifactType string
	Manifests    []ocispec.Descriptor
	Subject      *ocispec.Descriptor
	Annotations  map[string]string
}

// Encode is the manifest's bytes and what describes them.
func (m Manifest) Encode() ([]byte, ocispec.Descriptor, error) {
	manifest := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: m.mediaType(), ArtifactType: m.ArtifactType,
		Config: m.config().Descriptor(), Layers: make([]ocispec.Descriptor, 0, len(m.Layers)),
		Subject: m.Subject, Annotations: m.Annotations,
	}
	for _, layer := range m.Layers {
		manifest.Layers = append(manifest.Layers, layer.Descriptor())
	}
	raw, described, err := encode(manifest, manifest.MediaType)
	described.ArtifactType = m.ArtifactType
	return raw, described, err
}

// Encode is the index's bytes and what describes them.
func (i Index) Encode() ([]byte, ocispec.Descriptor, error) {
	index := ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: i.MediaType, ArtifactType: i.ArtifactType,
		Manifests: i.Manifests, Subject: i.Subject, Annotations: i.Annotations,
	}
	if index.MediaType == "" {
		index.MediaType = ocispec.MediaTypeImageIndex
	}
	if index.Manifests == nil {
		index.Manifests = []ocispec.Descriptor{}
	}
	return encode(index, index.MediaType)
}

func (m Manifest) mediaType() string {
	if m.MediaType == "" {
		return ocispec.MediaTypeImageManifest
	}
	return m.MediaType
}

func (m Manifest) config() Layer {
	if m.Config == nil {
		return Layer{MediaType: ocispec.MediaTypeEmptyJSON, Content: []byte("{}")}
	}
	return *m.Config
}

func encode(value any, mediaType string) ([]byte, ocispec.Descriptor, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, ocispec.Descriptor{}, err
	}
	return raw, ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(raw), Size: int64(len(raw))}, nil
}

// Flux is an artifact as flux push makes it. The annotations are put on top of those that it always has.
func Flux(files map[string]string, annotations map[string]string) (Manifest, error) {
	content, err := Tar(Files(files)...)
	if err != nil {
		return Manifest{}, err
	}
	layer, err := Gzip(content)
	if err != nil {
		return Manifest{}, err
	}
	all := map[string]string{
		ocispec.AnnotationCreated:  "2020-01-01T00:00:00Z",
		ocispec.AnnotationSource:   "https://git.example.org/module.git",
		ocispec.AnnotationRevision: "main@sha1:0123456789abcdef0123456789abcdef01234567",
	}
	maps.Copy(all, annotations)
	config, err := json.Marshal(ocispec.Image{RootFS: ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(content)}}})
	if err != nil {
		return Manifest{}, err
	}
	return Manifest{
		Config: &Layer{MediaType: FluxConfig, Content: config},
		Layers: []Layer{{MediaType: FluxContent, Content: layer}}, Annotations: all,
	}, nil
}

// Helm is a chart as helm push makes it; its config is the chart's Chart.yaml.
func Helm(chart []byte) (Manifest, error) {
	metadata, err := chartMetadata(chart)
	if err != nil {
		return Manifest{}, fmt.Errorf("read chart: %w", err)
	}
	var named struct{ Name, Version string }
	if err := json.Unmarshal(metadata, &named); err != nil {
		return Manifest{}, fmt.Errorf("read chart: %w", err)
	}
	return Manifest{
		Config: &Layer{MediaType: HelmConfig, Content: metadata},
		Layers: []Layer{{MediaType: HelmContent, Content: chart}},
		Annotations: map[string]string{
			ocispec.AnnotationTitle: named.Name, ocispec.AnnotationVersion: named.Version,
			ocispec.AnnotationCreated: "2020-01-01T00:00:00Z",
		},
	}, nil
}

// Chart packs a chart of that name and version with these files beside its Chart.yaml.
func Chart(name, version string, files map[string]string) ([]byte, error) {
	entries := []Entry{File(name+"/Chart.yaml", fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %q\ntype: application\n", name, version))}
	for _, entry := range Files(files) {
		entry.Header.Name = path.Join(name, entry.Header.Name)
		entries = append(entries, entry)
	}
	return TarGzip(entries...)
}

func chartMetadata(chart []byte) ([]byte, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(chart))
	if err != nil {
		return nil, err
	}
	for entries := tar.NewReader(unzipped); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("no Chart.yaml")
		}
		if err != nil {
			return nil, err
		}
		if path.Base(header.Name) == "Chart.yaml" {
			text, err := io.ReadAll(entries)
			if err != nil {
				return nil, err
			}
			return yaml.YAMLToJSON(text)
		}
	}
}

// Docker is an image as docker push makes it; a layer without a media type is a gzipped tar file.
func Docker(layers ...Layer) (Manifest, error) {
	config, err := json.Marshal(ocispec.Image{
		Platform: ocispec.Platform{Architecture: "amd64", OS: "linux"}, RootFS: ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{}},
	})
	if err != nil {
		return Manifest{}, err
	}
	manifest := Manifest{MediaType: DockerManifestType, Config: &Layer{MediaType: DockerConfigType, Content: config}}
	for _, layer := range layers {
		if layer.MediaType == "" {
			layer.MediaType = DockerLayerType
		}
		manifest.Layers = append(manifest.Layers, layer)
	}
	return manifest, nil
}
