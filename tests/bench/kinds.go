package main

import (
	"context"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/source"
	gitsource "sluice.dev/sluice/internal/source/git"
	ocisource "sluice.dev/sluice/internal/source/oci"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/storage"
)

// opener opens sessions for the object that a job is about: a GitRepository that follows the branch main, or an
// OCIRepository that follows a tag.
func opener(j job, object metav1.ObjectMeta) (func(context.Context) (source.Session, error), error) {
	connections := transport.New(transport.Options{AllowLoopback: true})
	if j.what == jobGit {
		client, err := git.New(git.Options{Transport: connections, TempDir: j.dir})
		if err != nil {
			return nil, err
		}
		opener := gitsource.NewOpener(gitsource.Options{Client: client, Credentials: anonymous{}, Artifacts: alone{}})
		followed := &sourcev1.GitRepository{
			ObjectMeta: object,
			Spec:       sourcev1.GitRepositorySpec{URL: j.url, Reference: &sourcev1.GitRepositoryRef{Branch: "main"}},
		}
		return func(ctx context.Context) (source.Session, error) { return opener.Open(ctx, followed) }, nil
	}
	client, err := registry.New(registry.Options{Transport: connections})
	if err != nil {
		return nil, err
	}
	opener := ocisource.NewOpener(ocisource.Options{Client: client, Credentials: anonymous{}, TempDir: j.dir})
	followed := &sourcev1.OCIRepository{
		ObjectMeta: object,
		Spec:       sourcev1.OCIRepositorySpec{URL: j.url, Insecure: true, Reference: &sourcev1.OCIRepositoryRef{Tag: releaseTag}},
	}
	if j.what == jobCopy {
		followed.Spec.LayerSelector = &sourcev1.OCILayerSelector{Operation: sourcev1.OCILayerCopy}
	}
	return func(ctx context.Context) (source.Session, error) { return opener.Open(ctx, followed) }, nil
}

// anonymous needs no credentials.
type anonymous struct{}

func (anonymous) Git(context.Context, auth.GitRequest) (credential.Git, error) {
	return credential.Git{}, nil
}

func (anonymous) Registry(context.Context, auth.RegistryRequest) (credential.Registry, error) {
	return credential.Registry{}, nil
}

func (anonymous) Data(context.Context, string, string, string) (map[string][]byte, error) {
	return nil, storage.ErrNotFound
}

// alone is a cluster without other objects.
type alone struct{}

func (alone) Included(context.Context, *sourcev1.GitRepository, string) (storage.Artifact, error) {
	return storage.Artifact{}, storage.ErrNotFound
}

func (alone) Body(context.Context, storage.Artifact) (io.ReadCloser, error) {
	return nil, storage.ErrNotFound
}
