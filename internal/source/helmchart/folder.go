package helmchart

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/helm"
	"sluice.dev/sluice/internal/helm/chart"
	"sluice.dev/sluice/storage"
)

// maxRemembered is how many bytes of what a chart says of itself are remembered of it.
const maxRemembered = 4 << 10

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

// key has the namespace, because what a chart depends on is found with the HelmRepositories there.
func (f *folder) key() string {
	return strings.Join([]string{f.object.Namespace, f.source.Digest.String(), f.shape}, "\n")
}

// find implements origin: it reads what the chart calls itself, and where that lies which it is made of.
func (f *folder) find(ctx context.Context) (there found, err error) {
	at := rooted(f.object.Spec.Chart)
	isWanted := func(name string) bool { return name == at || chart.IsDescription(name) }
	err = f.open(ctx, isWanted, func(tree *archive.Tree) error {
		there.Source = f.source.Digest
		if there.Identity, err = chart.Identify(ctx, tree, f.object.Spec.Chart, f.opener.Limits); err == nil {
			there.Places, err = chart.Places(ctx, tree, f.object.Spec.Chart, f.opener.Limits)
		}
		return explain(err)
	})
	if err == nil && f.opener.RevisionByContent && f.object.Spec.GetReconcileStrategy() == sourcev1.ReconcileStrategyRevision {
		there.Inputs, err = f.inputs(ctx, there)
	}
	if err == nil && len(there.Name)+len(there.Version)+len(strings.Join(there.Places, "/")) <= maxRemembered {
		f.opener.known.Add(f.key(), there)
	}
	return there, err
}

// rooted is a path from the root of the source, whatever it climbs.
func rooted(place string) string {
	if clean := path.Join("/", place)[1:]; clean != "" {
		return clean
	}
	return "."
}

// build implements origin.
func (f *folder) build(ctx context.Context, there found, metadata string) (built *chart.Built, err error) {
	err = f.open(ctx, f.isPart(there), func(tree *archive.Tree) error {
		built, err = f.from(ctx, tree, metadata)
		return explain(err)
	})
	return built, err
}

// isPart tells whether a file of the source may become a part of the package: all may, where nobody has looked.
func (f *folder) isPart(there found) func(name string) bool {
	if len(there.Places) == 0 {
		return func(string) bool { return true }
	}
	parts := map[string]bool{}
	for _, place := range there.Places {
		parts[place] = true
	}
	for _, file := range f.object.Spec.GetValuesFiles() {
		parts[rooted(file)] = true
	}
	return func(name string) bool {
		for !parts[name] {
			if name == "." {
				return false
			}
			name = path.Dir(name)
		}
		return true
	}
}

func (f *folder) from(ctx context.Context, tree *archive.Tree, metadata string) (built *chart.Built, err error) {
	spec := f.object.Spec
	needed := &dependencies{opener: f.opener, namespace: f.object.Namespace, indexes: map[string]*helm.Index{}}
	defer func() { err = errors.Join(err, needed.Close()) }()
	return chart.Build(ctx, chart.Folder{
		Files: tree, Path: spec.Chart, ValuesFiles: spec.GetValuesFiles(), IgnoreMissing: spec.IgnoreMissingValuesFiles, Metadata: metadata,
		Dependencies: needed, Limits: f.opener.Limits,
	})
}

// inputs is the digest of the package as it is without the source's revision in its version: equal charts give equal bytes.
func (f *folder) inputs(ctx context.Context, there found) (digest.Digest, error) {
	built, err := f.build(ctx, there, "")
	if err != nil {
		return "", err
	}
	digester := digest.SHA256.Digester()
	err = explain(built.Write(ctx, digester.Hash()))
	return digester.Digest(), err
}

// open unpacks what is wanted of the artifact for as long as it is used.
func (f *folder) open(ctx context.Context, isWanted func(name string) bool, use func(tree *archive.Tree) error) error {
	body, err := f.opener.Artifacts.Body(ctx, f.source)
	if errors.Is(err, storage.ErrNotFound) {
		// It was superseded meanwhile; the next attempt sees what took its place.
		return failure.Retry(sourcev1.NoSourceArtifactReason, fmt.Errorf("open the artifact of the source: %w", err))
	}
	if err != nil {
		return fmt.Errorf("open the artifact of the source: %w", err)
	}
	tree, err := archive.OpenPart(ctx, body, f.opener.Limits.TempDir, f.opener.Archive, isWanted)
	_ = body.Close() // It was only read.
	if err != nil {
		return fmt.Errorf("read the artifact of the source: %w", err)
	}
	return errors.Join(use(tree), tree.Close())
}

// share implements origin: what was built belongs to the object.
func (*folder) share(found) string { return "" }
