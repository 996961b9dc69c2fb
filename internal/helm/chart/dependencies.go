package chart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/yamlweight"
)

// fileScheme begins the repository of a dependency that lies in the same tree.
const fileScheme = "file://"

// maxAtOnce is how many dependencies are asked for at the same time.
const maxAtOnce = 4

// resolve adds to a chart in a folder the dependencies that its charts folder does not have.
func (b *builder) resolve(ctx context.Context, loaded *chart.Chart, at string, within []string, built *Built) error {
	missing, err := missing(loaded)
	if err != nil {
		return err
	}
	built.StaleLock = built.StaleLock || isStale(loaded)
	brought := make([]*chart.Chart, len(missing))
	for i, wanted := range missing {
		if strings.HasPrefix(wanted.Repository, fileScheme) || wanted.Repository == "" {
			if brought[i], err = b.local(ctx, wanted, at, within, built); err != nil {
				return wrap(ErrDependency, fmt.Errorf("failed to add local dependency '%s': %w", wanted.Name, err))
			}
		}
	}
	if err := b.remote(ctx, missing, brought); err != nil {
		return err
	}
	for i, sub := range brought {
		if alias := missing[i].Alias; alias != "" {
			sub.Metadata.Name = alias // Two of one name would be one folder.
		}
	}
	loaded.AddDependency(brought...)
	built.Resolved += len(brought)
	return nil
}

// How many folders a chart may refer to, and how long the path of one may be in bytes.
const (
	maxPlaces = 1000
	maxPath   = 4096
)

// Places are the folders of a tree that the package of the chart at a path may be made of: its own, and those that it, and what
// lies there, refers to by file://. Of the tree, only the files that IsDescription tells are read. Where the path has a package,
// that is all.
func Places(ctx context.Context, files fs.FS, at string, limits Limits) ([]string, error) {
	b := newBuilder(files, limits, nil)
	start, err := inside(at)
	if err != nil {
		return nil, wrap(ErrReference, err)
	}
	places, seen := []string{start}, map[string]bool{start: true}
	for i := 0; i < len(places); i++ {
		for _, name := range descriptions {
			found, err := b.references(ctx, path.Join(places[i], name))
			if err != nil {
				return nil, err
			}
			for _, place := range found {
				if seen[place] {
					continue
				}
				if len(places) == maxPlaces || len(place) > maxPath {
					return nil, fmt.Errorf("%w: '%s' refers to more than %d folders, or to one with a longer path than %d bytes", ErrDependency, at, maxPlaces, maxPath)
				}
				seen[place], places = true, append(places, place)
			}
		}
	}
	return places, nil
}

// descriptions are the files of a chart that may name its dependencies.
var descriptions = []string{chartName, lockName, "requirements.yaml", "requirements.lock"} //nolint:gochecknoglobals // A constant list.

// IsDescription tells whether a file of a chart may name its dependencies.
func IsDescription(file string) bool { return slices.Contains(descriptions, path.Base(file)) }

// references are the folders that a description refers to. What is wrong with one, building says; the error is memory.ErrShortage.
func (b *builder) references(ctx context.Context, name string) (places []string, err error) {
	text, err := b.read(ctx, name)
	if err == nil {
		err = yamlweight.Draw(ctx, text)
	}
	if errors.Is(err, memory.ErrShortage) {
		return nil, err
	}
	var described struct {
		Dependencies []struct {
			Name       string `json:"name"`
			Repository string `json:"repository"`
		} `json:"dependencies"`
	}
	if err == nil {
		err = yaml.Unmarshal(text, &described)
	}
	if err != nil {
		return nil, nil //nolint:nilerr // It is said later.
	}
	for _, d := range described.Dependencies {
		if place, err := placeOf(path.Dir(name), d.Name, d.Repository); err == nil && place != "" {
			places = append(places, place)
		}
	}
	return places, nil
}

// placeOf is where in the tree a dependency of the chart at a path lies: where its file URL says, from the chart or from the root,
// or in the charts folder, where it has none. It is empty for one that lies elsewhere.
func placeOf(at, name, repository string) (string, error) {
	reference, isFile := strings.CutPrefix(repository, fileScheme)
	switch {
	case repository == "":
		return inside(path.Join(at, "charts", name))
	case !isFile:
		return "", nil
	case strings.HasPrefix(reference, "/"):
		return inside(reference)
	}
	return inside(path.Join(at, reference))
}

// missing are the dependencies that are not in the charts folder: by the name that they go by, and a version that fits.
func missing(loaded *chart.Chart) (missing []Dependency, err error) {
	needed := loaded.Metadata.Dependencies
	if loaded.Lock != nil {
		needed = loaded.Lock.Dependencies
	}
	for i, d := range needed {
		if d == nil {
			return nil, fmt.Errorf("%w: entry %d is empty", ErrDependency, i+1)
		}
		wanted := Dependency{Name: d.Name, Version: d.Version, Repository: d.Repository, Alias: d.Alias}
		if own := loaded.Metadata.Dependencies; wanted.Alias == "" && i < len(own) && own[i] != nil && own[i].Name == d.Name {
			wanted.Alias = own[i].Alias // A lock has none.
		}
		if !isThere(loaded, wanted) {
			missing = append(missing, wanted)
		}
	}
	return missing, nil
}

func isThere(loaded *chart.Chart, wanted Dependency) bool {
	for _, sub := range loaded.Dependencies() {
		if (sub.Name() == wanted.Name || sub.Name() == wanted.Alias) && fits(sub.Metadata.Version, wanted.Version) {
			return true
		}
	}
	return false
}

// fits tells whether a version is in a range. An empty range has all.
func fits(version, wanted string) bool {
	if version == wanted || wanted == "" {
		return true
	}
	among, err := semver.NewConstraint(wanted)
	if err != nil {
		return false
	}
	parsed, err := semver.NewVersion(version)
	return err == nil && among.Check(parsed)
}

// local loads a dependency that lies in the tree.
func (b *builder) local(ctx context.Context, wanted Dependency, at string, within []string, built *Built) (*chart.Chart, error) {
	place, err := placeOf(at, wanted.Name, wanted.Repository)
	if err != nil {
		return nil, err
	}
	if info, err := fs.Stat(b.files, place); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("no chart found at '/%s' (reference '%s')", place, wanted.Repository)
	}
	found, err := b.folder(ctx, place, within, built)
	if err != nil {
		return nil, err
	}
	if !fits(found.Metadata.Version, wanted.Version) {
		return nil, fmt.Errorf("can't get a valid version for constraint '%s': the chart at '/%s' has '%s'", wanted.Version, place, found.Metadata.Version)
	}
	return found, nil
}

// remote asks for the dependencies that lie elsewhere, several at once.
func (b *builder) remote(ctx context.Context, missing []Dependency, brought []*chart.Chart) error {
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(maxAtOnce)
	packages := make([][]byte, len(missing))
	for i, wanted := range missing {
		if brought[i] != nil {
			continue
		}
		group.Go(func() (err error) {
			packages[i], err = b.ask(asking, wanted)
			return err
		})
	}
	err := group.Wait()
	for i, packed := range packages {
		if err == nil && packed != nil {
			brought[i], err = b.promised(ctx, packed, missing[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// promised loads the package of a dependency, if it is the chart that was asked for.
func (b *builder) promised(ctx context.Context, packed []byte, wanted Dependency) (*chart.Chart, error) {
	loaded, err := b.loadPackage(ctx, packed)
	if err == nil && (loaded.Name() != wanted.Name || !fits(loaded.Metadata.Version, wanted.Version)) {
		err = fmt.Errorf("the package is chart '%.128s' version '%.128s'", loaded.Name(), loaded.Metadata.Version)
	}
	if err != nil {
		return nil, wrap(ErrDependency, fmt.Errorf("failed to add remote dependency '%s': %w", wanted.Name, err))
	}
	return loaded, nil
}

// ask gets the package of a dependency.
func (b *builder) ask(ctx context.Context, wanted Dependency) (packed []byte, err error) {
	address, err := url.Parse(wanted.Repository)
	switch {
	case strings.HasPrefix(wanted.Repository, "@") || strings.HasPrefix(wanted.Repository, "alias:"):
		return nil, fmt.Errorf("%w: aliased repository dependency is not supported: %s", ErrDependency, wanted.Repository)
	case err != nil || address.Scheme != "http" && address.Scheme != "https" && address.Scheme != "oci":
		return nil, fmt.Errorf("%w: dependency '%s': repository URL is not one of http, https, oci or file", ErrDependency, wanted.Name)
	case b.resolver == nil:
		return nil, fmt.Errorf("%w: dependency '%s' lies elsewhere", ErrDependency, wanted.Name)
	}
	body, err := b.resolver.Dependency(ctx, wanted)
	if err == nil {
		packed, err = b.readPackage(ctx, body)
		err = errors.Join(err, body.Close())
	}
	if err != nil {
		return nil, wrap(ErrDependency, fmt.Errorf("failed to add remote dependency '%s': %w", wanted.Name, err))
	}
	return packed, nil
}

// isStale tells whether a lock was made for other dependencies than the chart has, as Helm finds that out.
func isStale(loaded *chart.Chart) bool {
	if loaded.Lock == nil || loaded.Lock.Digest == "" {
		return false
	}
	needed, locked := loaded.Metadata.Dependencies, loaded.Lock.Dependencies
	if len(needed) == 0 {
		return len(locked) > 0
	}
	text, err := json.Marshal([2][]*chart.Dependency{needed, locked})
	return err == nil && loaded.Lock.Digest != digest.FromBytes(text).String()
}
