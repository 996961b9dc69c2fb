package registry

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	digestHeader = "Docker-Content-Digest"
	identity     = "identity"
)

// Resolve returns what the tag or digest stands for, by one HEAD request; by one GET where the registry answers no
// HEAD. Media type and size are the registry's word, the digest is what everything later is asked for and checked by.
//
// ErrURL when reference is neither tag nor digest, ErrManifest when the registry names an unusable digest.
func (c *Client) Resolve(ctx context.Context, r Repository, reference string) (ocispec.Descriptor, error) {
	wanted, shown, invalid := parseReference(reference)
	return call(ctx, c, r, "resolve", shown, func(e *exchange) (ocispec.Descriptor, error) {
		if invalid != nil {
			return ocispec.Descriptor{}, invalid
		}
		return e.resolve(ctx, reference, wanted)
	})
}

// parseReference tells a digest from a tag, and says how errors append it to the repository.
func parseReference(reference string) (wanted digest.Digest, shown string, err error) {
	if strings.Contains(reference, ":") {
		wanted = digest.Digest(reference)
		if err := checkDigest(wanted); err != nil {
			return "", "", fmt.Errorf("%w: %w", ErrURL, err)
		}
		return wanted, "@" + reference, nil
	}
	if !IsTag(reference) {
		return "", "", fmt.Errorf("%w: tag is not up to 128 letters, digits, '_', '.' and '-'", ErrURL)
	}
	return "", ":" + reference, nil
}

func (e *exchange) resolve(ctx context.Context, reference string, wanted digest.Digest) (ocispec.Descriptor, error) {
	response, err := e.ask(ctx, http.MethodHead, "/manifests/"+reference, "", manifestHeader())
	if err != nil && !noHead(err) {
		return ocispec.Descriptor{}, err
	}
	if err == nil {
		defer done(response)
		if named := digest.Digest(response.Header.Get(digestHeader)); named != "" {
			size := max(response.ContentLength, 0)
			return ocispec.Descriptor{MediaType: mediaType(response.Header), Digest: named, Size: size}, checkResolved(named, wanted)
		}
	}
	return e.read(ctx, reference, wanted, io.Discard)
}

func checkResolved(found, wanted digest.Digest) error {
	if err := checkDigest(found); err != nil {
		return manifestErrorf("registry names a digest that is none: %w", err)
	}
	if wanted != "" && found != wanted {
		return fmt.Errorf("%w: registry answers with %s", ErrDigest, found)
	}
	return nil
}

// noHead are the answers of registries that do not know HEAD, or not for manifests.
func noHead(err error) bool {
	switch statusOf(err) {
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
		http.StatusUnsupportedMediaType, http.StatusNotImplemented:
		return true
	}
	return false
}

// manifestHeader asks for every type of manifest that is understood, and for the bytes as they were pushed.
func manifestHeader() http.Header {
	return http.Header{"Accept": {strings.Join(acceptedTypes(), ", ")}, "Accept-Encoding": {identity}}
}
