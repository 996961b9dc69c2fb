package generator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	extensionsv1 "sluice.dev/sluice/api/extensions/v1beta1"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/engine/fetch"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/tree"
	"sluice.dev/sluice/storage"
)

// Artifacts finds what there is of other objects. Errors are source.ErrNoObject without one, and source.ErrNoArtifact where it
// has no artifact.
type Artifacts interface {
	// Stored is the current artifact of an object of the kind.
	Stored(ctx context.Context, kind, namespace, name string) (storage.Artifact, error)
	// Body opens an artifact that Stored returned.
	Body(ctx context.Context, artifact storage.Artifact) (io.ReadCloser, error)
	// Foreign is the artifact of an ExternalArtifact that somebody else has made, and serves.
	Foreign(ctx context.Context, namespace, name string) (Foreign, error)
}

// Foreign is an artifact that somebody else serves, and what he says of where it came from.
type Foreign struct {
	fetch.Artifact

	Origin string
}

// Downloads has artifacts that others serve.
type Downloads interface {
	Acquire(ctx context.Context, artifact fetch.Artifact) (*fetch.Lease, error)
}

// input is what a source has now.
type input struct {
	alias            string
	stored           storage.Artifact
	foreign          fetch.Artifact // zero where it is stored here
	namespace        string
	revision, origin string
	digest           digest.Digest
}

// look finds what every source has.
func (m *Maker) look(ctx context.Context, obj *extensionsv1.ArtifactGenerator) ([]input, error) {
	inputs := make([]input, 0, len(obj.Spec.Sources))
	for _, ref := range obj.Spec.Sources {
		found, err := m.find(ctx, ref, ref.GetNamespace(obj.Namespace))
		switch {
		case errors.Is(err, source.ErrNoArtifact):
			err = failure.Wait(extensionsv1.SourceFetchFailedReason, 0, fmt.Errorf("get sources failed: source '%s/%s/%s' is not ready", ref.Kind, found.namespace, ref.Name))
		case errors.Is(err, source.ErrNoObject):
			err = failure.Wait(extensionsv1.SourceFetchFailedReason, 0, fmt.Errorf("get sources failed: %w", err))
		case err != nil:
			err = failure.Retry(extensionsv1.SourceFetchFailedReason, fmt.Errorf("get sources failed: %w", err))
		}
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, found)
	}
	return inputs, nil
}

func (m *Maker) find(ctx context.Context, ref extensionsv1.SourceReference, namespace string) (input, error) {
	found := input{alias: ref.Alias, namespace: namespace}
	var err error
	found.stored, err = m.Artifacts.Stored(ctx, ref.Kind, namespace, ref.Name)
	found.revision, found.digest, found.origin = found.stored.Revision, found.stored.Digest, found.stored.Metadata[ocispec.AnnotationRevision]
	if ref.Kind != externalArtifact || !errors.Is(err, source.ErrNoArtifact) {
		return found, err
	}
	foreign, err := m.Artifacts.Foreign(ctx, namespace, ref.Name)
	found.foreign, found.revision, found.origin, found.digest = foreign.Artifact, foreign.Revision, foreign.Origin, digest.Digest(foreign.Digest)
	return found, err
}

// isStored tells whether it is stored here.
func (i input) isStored() bool { return i.foreign.URL == "" }

// opened are sources that can be read.
type opened struct {
	trees map[string]*tree.Tree
	// left is what they leave of the limits for others.
	left   archive.Limits
	leases []*fetch.Lease
	files  []*archive.Tree
}

// Close gives them up.
func (o *opened) Close() error {
	for _, lease := range o.leases {
		lease.Release()
	}
	errs := make([]error, 0, len(o.files))
	for _, t := range o.files {
		errs = append(errs, t.Close())
	}
	return errors.Join(errs...)
}

// download brings what others serve, before anything is held that is waited for.
func (m *Maker) download(ctx context.Context, spec extensionsv1.ArtifactGeneratorSpec, inputs []input) (*opened, error) {
	there := &opened{trees: map[string]*tree.Tree{}, left: m.Limits}
	for _, i := range inputs {
		if i.isStored() || wanted(spec, i.alias) == nil {
			continue
		}
		lease, err := m.Downloads.Acquire(ctx, i.foreign)
		if err != nil {
			f := *failure.Of(err)
			f.Reason, f.Err = extensionsv1.SourceFetchFailedReason, fmt.Errorf("fetch sources failed: source '%s': %w", i.alias, err)
			return nil, errors.Join(&f, there.Close())
		}
		there.leases = append(there.leases, lease)
		unpacked, ok := lease.FS.(*archive.Tree)
		if !ok {
			continue // Nobody can copy from it.
		}
		if there.left, err = there.left.Beside(unpacked); err != nil {
			return nil, errors.Join(tooMuch(err), there.Close())
		}
		there.trees[i.alias] = &tree.Tree{Root: unpacked.Root}
	}
	return there, nil
}

// tooMuch says that what all sources hold together is more than there may be.
func tooMuch(err error) error {
	return failure.Retry(extensionsv1.SourceFetchFailedReason, fmt.Errorf("fetch sources failed: %w", err))
}

// open reads of the stored artifacts what any output may copy. What all hold together has the limits of one.
func (m *Maker) open(ctx context.Context, spec extensionsv1.ArtifactGeneratorSpec, inputs []input, downloaded *opened) (_ *opened, err error) {
	there := &opened{trees: map[string]*tree.Tree{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, there.Close())
		}
	}()
	limits := downloaded.left
	for _, i := range inputs {
		if !i.isStored() {
			there.trees[i.alias] = downloaded.trees[i.alias]
			continue
		}
		for _, other := range there.files[max(0, len(there.files)-1):] {
			if limits, err = limits.Beside(other); err != nil {
				return there, tooMuch(err)
			}
		}
		isWanted := wanted(spec, i.alias)
		if isWanted == nil {
			continue // It only lends its revision.
		}
		opened, err := m.openOne(ctx, i, limits, isWanted)
		if err != nil {
			return there, err
		}
		there.files = append(there.files, opened)
		there.trees[i.alias] = opened.Tree
	}
	return there, nil
}

func (m *Maker) openOne(ctx context.Context, i input, limits archive.Limits, isWanted func(string) bool) (*archive.Tree, error) {
	body, err := m.Artifacts.Body(ctx, i.stored)
	if errors.Is(err, storage.ErrNotFound) {
		// It was superseded meanwhile; the next attempt sees what took its place.
		return nil, failure.Retry(extensionsv1.SourceFetchFailedReason, fmt.Errorf("fetch sources failed: source '%s': %w", i.alias, err))
	}
	if err != nil {
		return nil, fmt.Errorf("open the artifact of source '%s': %w", i.alias, err)
	}
	opened, err := archive.OpenNamed(ctx, body, m.TempDir, limits, isWanted)
	_ = body.Close() // It was only read.
	for _, verdict := range []error{archive.ErrCorrupt, archive.ErrLimit, archive.ErrUnsafe} {
		if errors.Is(err, verdict) {
			return nil, failure.Retry(extensionsv1.SourceFetchFailedReason, fmt.Errorf("fetch sources failed: source '%s' has no archive of files: %w", i.alias, err))
		}
	}
	return opened, err
}

// wanted tells what of a source may be copied: what is below the parts of paths that stand for themselves. It is nil for nothing.
func wanted(spec extensionsv1.ArtifactGeneratorSpec, alias string) func(name string) bool {
	below := map[string]bool{}
	add := func(reference string) {
		if of, place, _ := strings.Cut(strings.TrimPrefix(reference, "@"), "/"); of == alias {
			below[literal(place)] = true
		}
	}
	add(spec.PathPattern)
	for _, made := range spec.OutputArtifacts {
		for _, operation := range made.Copy {
			add(operation.From)
		}
	}
	if len(below) == 0 {
		return nil
	}
	return func(name string) bool {
		for !below[name] {
			if name == tree.Root {
				return false
			}
			name = path.Dir(name)
		}
		return true
	}
}

// literal is the beginning of a path that has no wildcard and captures nothing.
func literal(place string) string {
	var parts []string
	for part := range strings.SplitSeq(path.Clean(place), "/") {
		if strings.ContainsAny(part, `*?[]{}\`) {
			break
		}
		parts = append(parts, part)
	}
	return path.Join(append([]string{tree.Root}, parts...)...)
}
