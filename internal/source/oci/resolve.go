package oci

import (
	"context"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/revision"
	"sluice.dev/sluice/internal/source"
)

// Resolve finds the digest that the spec selects. A digest is known without asking, a tag costs one HEAD, and a range
// the list of tags as well. Everything after it goes by the digest, so that a tag that moves meanwhile changes nothing.
func (s *session) Resolve(ctx context.Context) (source.Selection, error) {
	if s.want.digest != "" {
		return s.selection("", s.want.digest), nil
	}
	remote, err := s.remote(ctx)
	if err != nil {
		return source.Selection{}, err
	}
	tag := s.want.tag
	if s.want.bySemver {
		if tag, err = s.newestTag(ctx, remote); err != nil {
			return source.Selection{}, explain(sourcev1.ReadOperationFailedReason, err)
		}
	}
	found, err := s.opener.Client.Resolve(ctx, remote, tag)
	if err != nil {
		return source.Selection{}, explain(sourcev1.OCIPullFailedReason, fmt.Errorf("look up tag %q: %w", tag, err))
	}
	return s.selection(tag, found.Digest), nil
}

func (s *session) newestTag(ctx context.Context, remote registry.Repository) (string, error) {
	best := newest{among: s.want}
	if err := s.opener.Client.Tags(ctx, remote, best.see); err != nil {
		return "", fmt.Errorf("list tags: %w", err)
	}
	if best.tag == "" {
		return "", fmt.Errorf("no tag of %d is a version that matches spec.ref.semver %q: push one, or change the range or the filter",
			best.seen, s.object.Spec.Reference.SemVer)
	}
	return best.tag, nil
}

func (s *session) selection(tag string, d digest.Digest) source.Selection {
	return source.Selection{
		Revision:       revision.Format(tag, d.String()),
		Name:           d.String(),
		Extension:      ".tar.gz",
		ConfigChecksum: s.checksum,
	}
}

// selected is the digest of a selection.
func selected(selection source.Selection) digest.Digest { return digest.Digest(selection.Name) }

// manifest fetches a manifest or index, unless it is the one that is there already.
func (s *session) manifest(ctx context.Context, d digest.Digest) (registry.Document, error) {
	if s.document != nil && s.document.Digest == d {
		return *s.document, nil
	}
	remote, err := s.remote(ctx)
	if err != nil {
		return registry.Document{}, err
	}
	document, err := s.opener.Client.Manifest(ctx, remote, d)
	if err != nil {
		return registry.Document{}, fmt.Errorf("get manifest %s: %w", d, err)
	}
	s.document = &document
	return document, nil
}

// explain gives an error of the registry the reason under which Flux's users look for it. An error that has one keeps it.
func explain(reason string, err error) error {
	if _, known := errors.AsType[*failure.Error](err); known {
		return err
	}
	if status, ok := errors.AsType[*registry.StatusError](err); ok && status.RetryAfter > 0 {
		return failure.RetryAfter(reason, status.RetryAfter, err)
	}
	return failure.Retry(reason, err)
}
