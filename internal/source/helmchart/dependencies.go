package helmchart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"
	"sync"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/helm"
	"sluice.dev/sluice/internal/helm/chart"
	"sluice.dev/sluice/internal/helm/index"
	"sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/storage"
)

// dependencies brings what charts of a namespace need from repositories, with the credentials that objects of the namespace have
// for these. A repository that no object is for is asked anonymously.
type dependencies struct {
	opener    *Opener
	namespace string

	mu      sync.Mutex
	indexes map[string]*helm.Index
}

var _ chart.Resolver = (*dependencies)(nil)

// Dependency implements chart.Resolver.
func (d *dependencies) Dependency(ctx context.Context, wanted chart.Dependency) (io.ReadCloser, error) {
	repository, err := d.repository(ctx, wanted.Repository)
	if err != nil {
		return nil, err
	}
	var body io.ReadCloser
	if strings.HasPrefix(wanted.Repository, "oci://") {
		body, err = d.fromRegistry(ctx, repository, wanted)
	} else {
		body, err = d.fromIndex(ctx, repository, wanted)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to get chart '%s' version '%s' from '%s': %w", wanted.Name, wanted.Version, credential.CleanURL(repository.Spec.URL), err)
	}
	return body, nil
}

// repository is the object for a URL, the first by name where there are several, or one that knows nothing but the URL.
func (d *dependencies) repository(ctx context.Context, address string) (*sourcev1.HelmRepository, error) {
	all, err := d.opener.Artifacts.HelmRepositories(ctx, d.namespace)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Undecodable == "" && normal(all[i].Spec.URL) == normal(address) {
			return &all[i], nil
		}
	}
	anonymous := &sourcev1.HelmRepository{}
	anonymous.Namespace, anonymous.Spec.URL = d.namespace, address
	return anonymous, nil
}

// normal is a URL in the form in which two of one repository are equal.
func normal(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return address
	}
	parsed.User, parsed.Host = nil, strings.ToLower(parsed.Host)
	parsed.Path, parsed.RawPath = path.Join("/", parsed.Path), ""
	return parsed.String()
}

func (d *dependencies) fromRegistry(ctx context.Context, repository *sourcev1.HelmRepository, wanted chart.Dependency) (io.ReadCloser, error) {
	host, name, err := registry.Parse(strings.TrimRight(wanted.Repository, "/") + "/" + wanted.Name)
	if err != nil {
		return nil, fmt.Errorf("the URL %w", err)
	}
	remote, err := d.opener.remote(ctx, repository, host, name)
	if err != nil {
		return nil, err
	}
	version, err := d.opener.tagged(ctx, remote, wanted.Version)
	if err != nil {
		return nil, err
	}
	described, err := d.opener.Registry.Resolve(ctx, remote, tagOf(version))
	if err != nil {
		return nil, fmt.Errorf("look up tag '%s': %w", tagOf(version), err)
	}
	return d.opener.layer(ctx, remote, described.Digest)
}

func (d *dependencies) fromIndex(ctx context.Context, repository *sourcev1.HelmRepository, wanted chart.Dependency) (io.ReadCloser, error) {
	login, clean, err := d.opener.login(ctx, repository)
	if err != nil {
		return nil, err
	}
	x := &indexed{opener: d.opener, login: login, url: clean, isGenerous: repository.Spec.PassCredentials}
	versions, err := d.versions(ctx, x, repository, wanted.Name)
	if err != nil {
		return nil, err
	}
	chosen, err := helm.Choose(versions, wanted.Version)
	if err != nil {
		return nil, err
	}
	f, err := x.packaged(chosen)
	if err != nil {
		return nil, err
	}
	return d.opener.pull(ctx, f, x.loginFor(f.URL))
}

// versions are those in the index that is stored for the object, or else in one that is downloaded for this build.
func (d *dependencies) versions(ctx context.Context, x *indexed, repository *sourcev1.HelmRepository, name string) ([]index.Version, error) {
	if repository.Name != "" {
		stored, err := d.opener.Artifacts.Stored(ctx, sourcev1.HelmRepositoryKind, d.namespace, repository.Name)
		if err == nil {
			versions, _, err := d.opener.versions(ctx, stored, name)
			return versions, err
		}
		if !errors.Is(err, source.ErrNoArtifact) && !errors.Is(err, source.ErrNoObject) && !errors.Is(err, storage.ErrNotFound) {
			return nil, err
		}
	}
	downloaded, err := d.index(ctx, x)
	if err != nil {
		return nil, err
	}
	return downloaded.Versions(ctx, name)
}

// index downloads an index once for all charts in it that are needed.
func (d *dependencies) index(ctx context.Context, x *indexed) (*helm.Index, error) {
	key := x.login.Identity() + " " + x.url
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.indexes[key]; ok {
		return known, nil
	}
	answer, err := d.opener.Files.Get(ctx, helm.Request{URL: helm.IndexURL(x.url), Login: x.login, Limit: d.opener.MaxIndexBytes})
	if err != nil {
		return nil, fmt.Errorf("failed to fetch %s : %w", credential.CleanURL(helm.IndexURL(x.url)), err)
	}
	downloaded, err := helm.ReadIndex(ctx, answer, d.opener.Limits.TempDir)
	if err == nil {
		d.indexes[key] = downloaded
	}
	return downloaded, err
}

// Close lets go of what was downloaded.
func (d *dependencies) Close() (err error) {
	for _, downloaded := range d.indexes {
		err = errors.Join(err, downloaded.Close())
	}
	return err
}
