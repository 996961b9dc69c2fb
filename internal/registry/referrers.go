package registry

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	// maxReferrerPages bounds the pages of one list of referrers.
	maxReferrerPages = 50
	// The two halves of a tag that stands for a digest are cut to these lengths.
	maxTagAlgorithm = 32
	maxTagEncoded   = 64
)

// notInTag are the characters that the tag schema replaces.
var notInTag = regexp.MustCompile(`[^a-zA-Z0-9._-]`)

// errNoReferrers says that the registry does not have the referrers API.
var errNoReferrers = errors.New("registry has no referrers api")

// Referrers lists the manifests that name the subject and have the artifact type; all of them when that is empty. A
// registry without the referrers API is asked for the index that the "Referrers Tag Schema" of the distribution
// specification puts under a tag. There being none is an empty list. ErrTooLarge when there are too many.
func (c *Client) Referrers(
	ctx context.Context, r Repository, subject digest.Digest, artifactType string,
) ([]ocispec.Descriptor, error) {
	return call(ctx, c, r, "list referrers of", "@"+subject.String(), func(e *exchange) ([]ocispec.Descriptor, error) {
		if err := checkDigest(subject); err != nil {
			return nil, manifestErrorf("%w", err)
		}
		all, err := e.listReferrers(ctx, subject, artifactType)
		if errors.Is(err, errNoReferrers) {
			return e.taggedReferrers(ctx, subject, artifactType)
		}
		return all, err
	})
}

func (e *exchange) listReferrers(
	ctx context.Context, subject digest.Digest, artifactType string,
) (found []ocispec.Descriptor, err error) {
	path := "/referrers/" + subject.String()
	query := ""
	if artifactType != "" {
		query = url.Values{"artifactType": {artifactType}}.Encode()
	}
	left := e.client.options.MaxManifestBytes
	for seen := map[string]bool{}; ; seen[query] = true {
		page, next, err := e.referrersPage(ctx, path, query, left)
		if err != nil {
			if len(seen) > 0 && errors.Is(err, errNoReferrers) {
				return nil, protocolErrorf("registry has only a part of the list")
			}
			return nil, err
		}
		if found, err = e.selectReferrers(found, page.Index.Manifests, artifactType); err != nil || next == "" {
			return found, err
		}
		if seen[next] || next == query || len(seen) >= maxReferrerPages {
			return nil, protocolErrorf("pages of referrers repeat, or are more than %d", maxReferrerPages)
		}
		left, query = left-int64(len(page.Raw)), next
	}
}

// referrersPage gets one page of the list and the query of the next. Any answer that is no index comes from a
// registry that takes the path for something else.
func (e *exchange) referrersPage(
	ctx context.Context, path, query string, left int64,
) (page Document, next string, err error) {
	response, err := e.ask(ctx, http.MethodGet, path, query, http.Header{"Accept": {ocispec.MediaTypeImageIndex}})
	if statusOf(err) == http.StatusNotFound || noHead(err) {
		return Document{}, "", errNoReferrers
	}
	if err != nil {
		return Document{}, "", err
	}
	defer done(response)
	if mediaType(response.Header) != ocispec.MediaTypeImageIndex {
		return Document{}, "", errNoReferrers
	}
	var raw bytes.Buffer
	if _, err := copyAll(ctx, &raw, response.Body, limit{"MaxManifestBytes for all pages", left}); err != nil {
		return Document{}, "", err
	}
	if page, err = parseDocument(ocispec.MediaTypeImageIndex, raw.Bytes(), e.bounds()); err != nil {
		return Document{}, "", err
	}
	page.Raw = raw.Bytes()
	next, err = e.nextPage(response.Header, path)
	return page, next, err
}

// taggedReferrers reads the index under the tag that stands for the subject.
func (e *exchange) taggedReferrers(
	ctx context.Context, subject digest.Digest, artifactType string,
) ([]ocispec.Descriptor, error) {
	document, err := e.document(ctx, referrersTag(subject), "")
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if document.Index == nil {
		return nil, manifestErrorf("tag %s holds no index", referrersTag(subject))
	}
	return e.selectReferrers(nil, document.Index.Manifests, artifactType)
}

// referrersTag is the subject's digest in the form of a tag.
func referrersTag(subject digest.Digest) string {
	algorithm, encoded := subject.Algorithm().String(), subject.Encoded()
	algorithm, encoded = algorithm[:min(len(algorithm), maxTagAlgorithm)], encoded[:min(len(encoded), maxTagEncoded)]
	return notInTag.ReplaceAllString(algorithm, "-") + "-" + notInTag.ReplaceAllString(encoded, "-")
}

// selectReferrers appends those of the type. Registries need not filter, and no list is trusted to be filtered.
func (e *exchange) selectReferrers(
	found, page []ocispec.Descriptor, artifactType string,
) ([]ocispec.Descriptor, error) {
	for _, one := range page {
		if artifactType != "" && one.ArtifactType != artifactType {
			continue
		}
		if len(found) == e.client.options.MaxReferrers {
			return nil, limitErrorf("more than %d referrers (MaxReferrers)", e.client.options.MaxReferrers)
		}
		found = append(found, one)
	}
	return found, nil
}
