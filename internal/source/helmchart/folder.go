package helmchart

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/helm/chart"
	"sluice.dev/sluice/storage"
)

// folder is a chart that lies in the artifact of another object.
type folder struct {
	opener *Opener
	object *sourcev1.HelmChart
	source storage.Artifact
	shape  string
}

// look implements origin: what was found in an artifact before is in it still.
func (f *folder) look(context.Context) (found, bool, error) {
	known, ok := f.opener.known.Get(f.key())
	return known, ok, nil
}

func (f *folder) key() string {
	return strings.Join([]string{f.source.Digest.String(), f.shape}, "\n")
}

// find implements origin: it reads what the chart calls itself.
func (f *folder) find(ctx context.Context) (there found, err error) {
	err = f.open(ctx, func(tree *archive.Tree) error {
		there.Source = f.source.Digest
		there.Identity, err = chart.Identify(ctx, tree, f.object.Spec.Chart, f.opener.Limits)
		if err == nil && f.opener.RevisionByContent && f.object.Spec.GetReconcileStrategy() == sourcev1.ReconcileStrategyRevision {
			there.Inputs, err = f.inputs(ctx, tree)
		}
		return explain(err)
	})
	if err == nil {
		f.opener.known.Add(f.key(), there)
	}
	return there, err
}

// build implements origin.
func (f *folder) build(ctx context.Context, _ found, metadata string) (built *chart.Built, err error) {
	err = f.open(ctx, func(tree *archive.Tree) error {
		built, err = f.from(ctx, tree, metadata)
		return explain(err)
	})
	return built, err
}

func (f *folder) from(ctx context.Context, tree *archive.Tree, metadata string) (*chart.Built, error) {
	spec := f.object.Spec
	return chart.Build(ctx, chart.Folder{
		Files: tree, Path: spec.Chart, ValuesFiles: spec.GetValuesFiles(), IgnoreMissing: spec.IgnoreMissingValuesFiles, Metadata: metadata,
		Dependencies: &dependencies{opener: f.opener, namespace: f.object.Namespace}, Limits: f.opener.Limits,
	})
}

// inputs is the digest of the package as it is without the source's revision in its version: equal charts give equal bytes.
func (f *folder) inputs(ctx context.Context, tree *archive.Tree) (digest.Digest, error) {
	built, err := f.from(ctx, tree, "")
	if err != nil {
		return "", err
	}
	digester := digest.SHA256.Digester()
	err = built.Write(ctx, digester.Hash())
	return digester.Digest(), err
}

// open unpacks the artifact for as long as it is used.
func (f *folder) open(ctx context.Context, use func(tree *archive.Tree) error) error {
	body, err := f.opener.Artifacts.Body(ctx, f.source)
	if errors.Is(err, storage.ErrNotFound) {
		// It was superseded meanwhile; the next attempt sees what took its place.
		return failure.Retry(sourcev1.NoSourceArtifactReason, fmt.Errorf("open the artifact of the source: %w", err))
	}
	if err != nil {
		return fmt.Errorf("open the artifact of the source: %w", err)
	}
	tree, err := archive.Open(ctx, body, f.opener.Limits.TempDir, f.opener.Archive)
	_ = body.Close() // It was only read.
	if err != nil {
		return fmt.Errorf("read the artifact of the source: %w", err)
	}
	return errors.Join(use(tree), tree.Close())
}

// share implements origin: what was built belongs to the object.
func (*folder) share(found) string { return "" }
