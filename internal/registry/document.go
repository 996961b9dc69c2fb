package registry

import (
	"encoding/json"
	"errors"
	"math"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/internal/strictjson"
	"sluice.dev/sluice/internal/transport"
)

// Media types that the image specification's package does not name.
const (
	dockerManifest    = "application/vnd.docker.distribution.manifest.v2+json"
	dockerList        = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerSchema1     = "application/vnd.docker.distribution.manifest.v1+json"
	dockerSchema1JWS  = "application/vnd.docker.distribution.manifest.v1+prettyjws"
	ociArtifact       = "application/vnd.oci.artifact.manifest.v1+json"
	supportedSchema   = 2
	manifestsKeyError = "has both layers and manifests: readers may disagree whether it is a manifest or an index"
)

// acceptedTypes are the documents that are understood.
func acceptedTypes() []string {
	return []string{
		ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageIndex, dockerManifest, dockerList, ociArtifact,
	}
}

func known(media string) bool { return isManifest(media) || isIndex(media) || media == ociArtifact }

func isManifest(media string) bool {
	return media == ocispec.MediaTypeImageManifest || media == dockerManifest
}

func isIndex(media string) bool { return media == ocispec.MediaTypeImageIndex || media == dockerList }

func isSchema1(media string) bool { return media == dockerSchema1 || media == dockerSchema1JWS }

// bounds are the sizes that a descriptor may state if what it describes is to be read.
type bounds struct{ manifest, blob limit }

// unread is for what a manifest only mentions: one may have a layer of any size beside the one that is wanted.
var unread = limit{bytes: math.MaxInt64} //nolint:gochecknoglobals // A constant.

// shape is what a document says about its own type.
type shape struct {
	SchemaVersion int             `json:"schemaVersion"`
	MediaType     string          `json:"mediaType"`
	Config        json.RawMessage `json:"config"`
	Layers        json.RawMessage `json:"layers"`
	Manifests     json.RawMessage `json:"manifests"`
	Blobs         json.RawMessage `json:"blobs"`
	FSLayers      json.RawMessage `json:"fsLayers"`
}

// parseDocument reads a manifest or an index. The content type is the registry's word for it, without parameters; it
// may be empty. ErrManifest when any reader could take the document for something else.
func parseDocument(contentType string, raw []byte, within bounds) (Document, error) {
	var seen shape
	err := documentRules().Unmarshal(raw, &seen)
	switch {
	case errors.Is(err, strictjson.ErrTooMany):
		return Document{}, limitErrorf("%w", err)
	case err != nil:
		return Document{}, manifestErrorf("%w", err)
	}
	media, err := seen.mediaType(contentType)
	if err != nil {
		return Document{}, err
	}
	document := Document{Descriptor: ocispec.Descriptor{MediaType: media}}
	switch {
	case isManifest(media):
		document.Manifest, err = parseManifest(raw, within)
	case isIndex(media):
		document.Index, err = parseIndex(raw, within)
	default:
		document.Manifest, err = parseArtifact(raw, within)
	}
	if err != nil {
		return Document{}, err
	}
	if document.Manifest != nil {
		document.ArtifactType = document.Manifest.ArtifactType
	} else {
		document.ArtifactType = document.Index.ArtifactType
	}
	return document, nil
}

// documentRules are for the names that any reader of manifests looks for. Nothing nests nearly as deep.
func documentRules() strictjson.Rules {
	return strictjson.Rules{Depth: 16, Values: maxEntries, Free: "annotations", Names: []string{
		"schemaVersion", "mediaType", "artifactType", "config", "layers", "manifests", "blobs", "fsLayers", "subject",
		"annotations", "digest", "size", "urls", "data", "platform",
	}}
}

// mediaType is the one type that the header, the document and its keys agree about.
func (s shape) mediaType(contentType string) (string, error) {
	media := s.MediaType
	switch {
	case isSchema1(contentType) || isSchema1(media) || s.SchemaVersion == 1 || s.FSLayers != nil:
		return "", manifestErrorf("this is Docker's image manifest schema 1, which nothing can be verified by: " +
			"push the image again with a current client")
	case media == "":
		media = contentType
	case contentType != "" && contentType != media:
		return "", manifestErrorf("registry says it is %s, the document itself %s",
			transport.PrintableQuoted(contentType), transport.PrintableQuoted(media))
	}
	switch {
	case media == "":
		return "", manifestErrorf("neither the registry nor the document says what it is")
	case !known(media):
		return "", manifestErrorf("media type %s is not known", transport.PrintableQuoted(media))
	case s.Layers != nil && s.Manifests != nil:
		return "", manifestErrorf("%s", manifestsKeyError)
	case isIndex(media) && (s.Layers != nil || s.Config != nil || s.Blobs != nil):
		return "", manifestErrorf("the index has keys of a manifest")
	case !isIndex(media) && s.Manifests != nil:
		return "", manifestErrorf("the manifest has keys of an index")
	case isManifest(media) && s.Blobs != nil, media == ociArtifact && (s.Layers != nil || s.Config != nil):
		return "", manifestErrorf("the document has keys of another type of manifest")
	case media != ociArtifact && s.SchemaVersion != supportedSchema:
		return "", manifestErrorf("schema version is %d, not %d", s.SchemaVersion, supportedSchema)
	}
	return media, nil
}

func parseManifest(raw []byte, within bounds) (*ocispec.Manifest, error) {
	manifest := &ocispec.Manifest{}
	if err := json.Unmarshal(raw, manifest); err != nil {
		return nil, manifestErrorf("%w", err)
	}
	if err := checkDescriptor("config", manifest.Config, unread); err != nil {
		return nil, err
	}
	return manifest, checkManifest(manifest, within)
}

// parseArtifact reads the manifest type that release candidates of the image specification 1.1 had.
func parseArtifact(raw []byte, within bounds) (*ocispec.Manifest, error) {
	var artifact struct {
		MediaType    string               `json:"mediaType"`
		ArtifactType string               `json:"artifactType"`
		Blobs        []ocispec.Descriptor `json:"blobs"`
		Subject      *ocispec.Descriptor  `json:"subject"`
		Annotations  map[string]string    `json:"annotations"`
	}
	if err := json.Unmarshal(raw, &artifact); err != nil {
		return nil, manifestErrorf("%w", err)
	}
	manifest := &ocispec.Manifest{
		MediaType: ociArtifact, ArtifactType: artifact.ArtifactType, Layers: artifact.Blobs,
		Subject: artifact.Subject, Annotations: artifact.Annotations,
	}
	return manifest, checkManifest(manifest, within)
}

func checkManifest(manifest *ocispec.Manifest, within bounds) error {
	if err := checkDescriptors("layer", manifest.Layers, unread); err != nil {
		return err
	}
	if manifest.Subject != nil {
		if err := checkDescriptor("subject", *manifest.Subject, within.manifest); err != nil {
			return err
		}
	}
	return checkAnnotations("manifest", manifest.Annotations)
}

func parseIndex(raw []byte, within bounds) (*ocispec.Index, error) {
	index := &ocispec.Index{}
	if err := json.Unmarshal(raw, index); err != nil {
		return nil, manifestErrorf("%w", err)
	}
	if err := checkDescriptors("manifest", index.Manifests, within.manifest); err != nil {
		return nil, err
	}
	if index.Subject != nil {
		if err := checkDescriptor("subject", *index.Subject, within.manifest); err != nil {
			return nil, err
		}
	}
	return index, checkAnnotations("index", index.Annotations)
}
