package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/engine/fetch"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/generator"
	"sluice.dev/sluice/storage"
)

// Artifacts finds what is stored of other objects. What the store knows of an object counts, not what its status says.
type Artifacts struct {
	Reader client.Reader
	Store  storage.Store
}

// Of reads the object of the name, and returns its current artifact. The error is source.ErrNoObject without the object, and
// source.ErrNoArtifact where nothing is stored of it, or of a namesake that has gone alone.
func (a Artifacts) Of(ctx context.Context, into Object, dir, namespace, name string) (storage.Artifact, error) {
	if err := a.get(ctx, into, namespace, name); err != nil {
		return storage.Artifact{}, err
	}
	record, err := a.Store.Record(ctx, storage.Object{Kind: dir, Namespace: namespace, Name: name})
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrDamaged) || err == nil && record.UID != string(into.GetUID()) {
		return storage.Artifact{}, source.ErrNoArtifact
	}
	return record.Current, err
}

func (a Artifacts) get(ctx context.Context, into client.Object, namespace, name string) error {
	err := a.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", source.ErrNoObject, err)
	}
	return err
}

// Stored is Of for an object that is named by its kind.
func (a Artifacts) Stored(ctx context.Context, kind, namespace, name string) (storage.Artifact, error) {
	for _, known := range append(Kinds(), Generated()) {
		if known.Group == sourcev1.GroupVersion && known.Name == kind {
			return a.Of(ctx, known.New(), known.Dir, namespace, name)
		}
	}
	return storage.Artifact{}, fmt.Errorf("%w: %s is no kind of source", source.ErrNoObject, kind)
}

// Body opens an artifact that was found before. An object that was made anew since may have other bytes under its path.
func (a Artifacts) Body(ctx context.Context, artifact storage.Artifact) (io.ReadCloser, error) {
	body, err := a.Store.Open(ctx, artifact.Path)
	if err != nil {
		return nil, err
	}
	if body.Stat().Digest != artifact.Digest {
		return nil, errors.Join(storage.PathError(artifact.Path, storage.ErrNotFound), body.Close())
	}
	return body, nil
}

// Foreign is the artifact of an ExternalArtifact that somebody else has made and serves, as that one says.
func (a Artifacts) Foreign(ctx context.Context, namespace, name string) (generator.Foreign, error) {
	var there sourcev1.ExternalArtifact
	if err := a.get(ctx, &there, namespace, name); err != nil {
		return generator.Foreign{}, err
	}
	artifact := there.Status.Artifact
	if artifact == nil || artifact.URL == "" {
		return generator.Foreign{}, source.ErrNoArtifact
	}
	var size int64
	if artifact.Size != nil {
		size = *artifact.Size
	}
	return generator.Foreign{Origin: artifact.Metadata[ocispec.AnnotationRevision], Artifact: fetch.Artifact{
		URL: artifact.URL, Digest: artifact.Digest, Size: size, Namespace: namespace, Revision: artifact.Revision, Stored: artifact.LastUpdateTime.UTC(),
	}}, nil
}

// HelmRepository is the object of the name, whatever is stored of it.
func (a Artifacts) HelmRepository(ctx context.Context, namespace, name string) (*sourcev1.HelmRepository, error) {
	var repository sourcev1.HelmRepository
	return &repository, a.get(ctx, &repository, namespace, name)
}

// HelmRepositories are all of a namespace, by their names.
func (a Artifacts) HelmRepositories(ctx context.Context, namespace string) ([]sourcev1.HelmRepository, error) {
	var list sourcev1.HelmRepositoryList
	if err := a.Reader.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list HelmRepositories: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b sourcev1.HelmRepository) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items, nil
}
