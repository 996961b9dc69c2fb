package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

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

// What an SSH key and the keys of hosts are called, in a job's folder and in a Secret.
const (
	sshKey   = "identity"
	sshHosts = "known_hosts"
)

// opener opens sessions for the object that a job is about: a GitRepository that follows the branch main, or an
// OCIRepository that follows a tag.
func opener(j job, object metav1.ObjectMeta) (func(context.Context) (source.Session, error), error) {
	connections := transport.New(transport.Options{AllowLoopback: true})
	if j.what == jobGit || j.what == jobModules {
		client, err := git.New(git.Options{
			Transport: connections, TempDir: j.dir, CacheDir: filepath.Join(j.dir, "cache"), MaxCacheBytes: 4 << 30,
		})
		if err != nil {
			return nil, err
		}
		opener := gitsource.NewOpener(gitsource.Options{Client: client, Credentials: login{dir: j.dir}, Artifacts: alone{}})
		followed := &sourcev1.GitRepository{ObjectMeta: object, Spec: sourcev1.GitRepositorySpec{
			URL: j.url, Reference: &sourcev1.GitRepositoryRef{Branch: "main"}, RecurseSubmodules: j.what == jobModules,
		}}
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

// login has the SSH key in the folder, and without one no credentials.
type login struct {
	anonymous
	dir string
}

func (l login) Git(context.Context, auth.GitRequest) (credential.Git, error) {
	key, err := os.ReadFile(filepath.Join(l.dir, sshKey))
	if errors.Is(err, os.ErrNotExist) {
		return credential.Git{}, nil
	}
	known, knownErr := os.ReadFile(filepath.Join(l.dir, sshHosts))
	return credential.Git{SSH: &credential.SSH{PrivateKey: credential.NewSecret(string(key)), KnownHosts: known}}, errors.Join(err, knownErr)
}

// anonymous needs no credentials.
type anonymous struct{}

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
