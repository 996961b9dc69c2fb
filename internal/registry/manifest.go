package registry

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
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
// when there are too many, ErrManifest when they are not an unambiguous document of a known type. What it holds is drawn from
// the context's account, see memory.Draw.
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
	var raw bytes.Buffer
	found, err := e.read(ctx, reference, wanted, &raw)
	if err != nil {
		return Document{}, err
	}
	document, err := parseDocument(found.MediaType, raw.Bytes(), e.bounds())
	document.Digest, document.Size, document.Raw = found.Digest, found.Size, raw.Bytes()
	return document, err
}

// read copies what stands under the reference, and says what that is.
func (e *exchange) read(ctx context.Context, reference string, wanted digest.Digest, into io.Writer) (found ocispec.Descriptor, err error) {
	response, err := e.ask(ctx, http.MethodGet, "/manifests/"+reference, "", manifestHeader())
	if err != nil {
		return found, err
	}
	defer done(response)
	if err := checkEncoding(response); err != nil {
		return found, err
	}
	wanted = cmp.Or(wanted, digest.Digest(response.Header.Get(digestHeader)))
	digester := digest.SHA256.Digester()
	if wanted != "" {
		if err := checkResolved(wanted, ""); err != nil {
			return found, err
		}
		digester = wanted.Algorithm().Digester()
	}
	if found.Size, err = copyAll(ctx, io.MultiWriter(digester.Hash(), into), response.Body, e.bounds().manifest); err != nil {
		return found, err
	}
	found.Digest, found.MediaType = digester.Digest(), mediaType(response.Header)
	contentType := response.Header.Get("Content-Type")
	switch wrong := wanted != "" && wanted != found.Digest; {
	case wrong && found.MediaType == "text/html":
		return found, wrongType(ErrDigest, response, "a manifest")
	case wrong:
		return found, fmt.Errorf("%w: registry sends %d bytes with digest %s", ErrDigest, found.Size, found.Digest)
	case !known(found.MediaType) && contentType != "" && !isSchema1(found.MediaType):
		return found, wrongType(ErrManifest, response, "a manifest or index")
	}
	return found, nil
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
