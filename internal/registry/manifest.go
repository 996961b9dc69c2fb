package registry

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/internal/transport"
)

// Document is a manifest or an index, checked against its digest.
type Document struct {
	// Descriptor has the media type that the document is read as, and digest and size of Raw.
	ocispec.Descriptor

	// Raw is what the digest is of.
	Raw []byte
	// Manifest and Index are what Raw says; exactly one of them is set. An artifact manifest is a Manifest whose
	// layers are its blobs and whose Config is empty.
	Manifest *ocispec.Manifest
	Index    *ocispec.Index
}

// Manifest returns the manifest or index with the digest. ErrDigest when the registry sends other bytes, ErrTooLarge
// when there are too many, ErrManifest when they are not an unambiguous document of a known type.
func (c *Client) Manifest(ctx context.Context, r Repository, d digest.Digest) (Document, error) {
	return call(ctx, c, r, "get manifest", "@"+d.String(), func(e *exchange) (Document, error) {
		if err := checkDigest(d); err != nil {
			return Document{}, manifestErrorf("%w", err)
		}
		return e.document(ctx, d.String(), d)
	})
}

// document gets what stands under the reference. Its digest has to be the wanted one, or the one that the registry
// names when none is wanted.
func (e *exchange) document(ctx context.Context, reference string, wanted digest.Digest) (Document, error) {
	response, err := e.ask(ctx, http.MethodGet, "/manifests/"+reference, "", manifestHeader())
	if err != nil {
		return Document{}, err
	}
	defer done(response)
	if err := checkEncoding(response); err != nil {
		return Document{}, err
	}
	raw, err := e.readAll(ctx, response.Body, e.bounds().manifest)
	if err != nil {
		return Document{}, err
	}
	if wanted = cmp.Or(wanted, digest.Digest(response.Header.Get(digestHeader))); wanted == "" {
		wanted = digest.FromBytes(raw)
	}
	if err := checkResolved(wanted, ""); err != nil {
		return Document{}, err
	}
	if got := wanted.Algorithm().FromBytes(raw); got != wanted {
		if mediaType(response.Header) == "text/html" {
			return Document{}, wrongType(ErrDigest, response, "a manifest")
		}
		return Document{}, fmt.Errorf("%w: registry sends %d bytes with digest %s", ErrDigest, len(raw), got)
	}
	contentType := response.Header.Get("Content-Type")
	if !known(mediaType(response.Header)) && contentType != "" && !isSchema1(mediaType(response.Header)) {
		return Document{}, wrongType(ErrManifest, response, "a manifest or index")
	}
	document, err := parseDocument(mediaType(response.Header), raw, e.bounds())
	document.Digest, document.Size, document.Raw = wanted, int64(len(raw)), raw
	return document, err
}

// checkEncoding refuses bytes that would have to be decoded before their digest is theirs.
func checkEncoding(response *http.Response) error {
	if encoding := response.Header.Get("Content-Encoding"); encoding != "" && encoding != identity {
		return protocolErrorf("registry answers with content encoding %s, which was not asked for",
			transport.PrintableQuoted(encoding))
	}
	return nil
}

func (e *exchange) bounds() bounds { return e.client.options.bounds() }

func (o Options) bounds() bounds {
	return bounds{manifest: limit{"MaxManifestBytes", o.MaxManifestBytes}, blob: limit{"MaxBlobBytes", o.MaxBlobBytes}}
}
