package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/opencontainers/go-digest"
)

// body downloads an artifact as a consumer does: by URL, checked against the digest in status.
func (d *demo) body(ctx context.Context, artifact *meta.Artifact) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, artifact.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("ask for the artifact: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("get the artifact: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get %s: %s, %w", artifact.URL, response.Status, err)
	}
	if got := digest.FromBytes(body); got.String() != artifact.Digest {
		return nil, fmt.Errorf("%s has digest %s, status says %s", artifact.URL, got, artifact.Digest)
	}
	return body, nil
}

func (d *demo) fetch(ctx context.Context, artifact *meta.Artifact) error {
	body, err := d.body(ctx, artifact)
	if err != nil {
		return err
	}
	d.say("GET %s", artifact.URL)
	d.say("%d bytes, %s: matches status.artifact.digest", len(body), artifact.Digest)
	return d.list(ctx, artifact)
}

// list shows what an artifact holds.
func (d *demo) list(ctx context.Context, artifact *meta.Artifact) error {
	body, err := d.body(ctx, artifact)
	if err != nil {
		return err
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("unzip the artifact: %w", err)
	}
	d.say("tar tzf:")
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the artifact: %w", err)
		}
		d.say("  %s", header.Name)
	}
}
