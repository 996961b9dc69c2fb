// Package chart builds and checks packages of Helm charts, https://helm.sh/docs/topics/charts/. Loading, validating and saving
// a chart are Helm's own; the bounds, the repeatable form and the dependencies are ours.
// It does not know where charts come from, nor what becomes of packages.
package chart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"sluice.dev/sluice/internal/memory"
)

// The kinds of errors, in Flux's words. What is wrong stands behind them.
var (
	// ErrReference says that there is no usable chart where one should be.
	ErrReference = errors.New("invalid chart reference")
	// ErrMetadata says that a chart's version cannot carry build metadata.
	ErrMetadata = errors.New("chart metadata patch error")
	// ErrValues says that values files are missing, or cannot be merged.
	ErrValues = errors.New("values files merge error")
	// ErrDependency says that a dependency is not to be had.
	ErrDependency = errors.New("dependency build error")
	// ErrPackage says that a chart cannot be packaged, or that a package is not usable.
	ErrPackage = errors.New("chart package error")
)

// What Flux allows in bytes to a package, and to one file of a chart.
const (
	DefaultMaxPackage = 10 << 20
	DefaultMaxFile    = 5 << 20
)

// Limits bound what is read. Zero values are replaced by the defaults.
type Limits struct {
	// MaxPackage bounds a package in bytes. Default 10 MiB.
	MaxPackage int64
	// MaxFile bounds a single file of a chart, uncompressed. Default 5 MiB, and never more than that in packages.
	MaxFile int64
	// MaxUnpacked bounds all files of a chart and of its sub-charts, uncompressed. Default 100 MiB.
	MaxUnpacked int64
	// MaxFiles bounds their number. Default 20,000.
	MaxFiles int
	// MaxDepth bounds how deep sub-charts are nested. Default 32.
	MaxDepth int
	// MaxMatch bounds the work of matching names with a .helmignore, in bytes compared at worst. Default 4,000,000,000.
	MaxMatch int64
	// TempDir holds what is downloaded until it is read; empty means the system's.
	TempDir string
}

func (l Limits) orDefault() Limits {
	l.MaxPackage = cmp.Or(l.MaxPackage, DefaultMaxPackage)
	l.MaxFile = cmp.Or(l.MaxFile, DefaultMaxFile)
	l.MaxUnpacked = cmp.Or(l.MaxUnpacked, 100<<20)
	l.MaxMatch = cmp.Or(l.MaxMatch, 4_000_000_000)
	l.MaxFiles = cmp.Or(l.MaxFiles, 20_000)
	l.MaxDepth = cmp.Or(l.MaxDepth, 32)
	return l
}

// Identity is what a chart calls itself in its Chart.yaml.
type Identity struct{ Name, Version string }

// Dependency is another chart that a chart needs: the entry of its Chart.lock if there is one, else that of its Chart.yaml.
type Dependency struct {
	Name string
	// Version is a version, or a range of them.
	Version string
	// Repository is the http, https or oci URL of where it is.
	Repository string
	// Alias is the name that it goes by in the chart; empty for its own.
	Alias string
}

// Resolver brings packages of dependencies that lie elsewhere.
type Resolver interface {
	// Dependency gives the package of a dependency. It is called by several goroutines at once.
	Dependency(ctx context.Context, wanted Dependency) (io.ReadCloser, error)
}

// Folder is a chart in a tree, and what is to be made of it.
type Folder struct {
	// Files is the whole tree. Only the chart, the values files and what the chart refers to by file:// are read.
	Files fs.FS
	// Path is that of the chart's folder or package, from the root.
	Path string
	// ValuesFiles are paths from the root of files that are merged into values.yaml, in this order.
	ValuesFiles []string
	// IgnoreMissing leaves out those that are not there.
	IgnoreMissing bool
	// Metadata becomes the build metadata of the version; empty leaves the version as it is.
	Metadata string
	// Dependencies brings what charts need from elsewhere; nil refuses that.
	Dependencies Resolver
	Limits       Limits
}

// Package is a chart that somebody has packaged, and what is to be made of it.
type Package struct {
	Content io.Reader
	// ValuesFiles are paths in the chart of files that are merged into values.yaml, which counts only where it is listed.
	ValuesFiles   []string
	IgnoreMissing bool
	// Metadata is that of a Folder.
	Metadata string
	Limits   Limits
}

// Built is a chart that is ready to be written.
type Built struct {
	Identity

	// Original is what the chart called itself before.
	Original Identity
	// Values are the values files that were merged, in their order.
	Values []string
	// Resolved is how many dependencies were added.
	Resolved int
	// StaleLock says that the chart's Chart.lock was made for other dependencies than it has.
	StaleLock bool
	// IsAsItWas says that the package is written byte for byte as it was found.
	IsAsItWas bool

	write func(ctx context.Context, to io.Writer) error
}

// Write writes the package. Equal charts give equal bytes.
func (b *Built) Write(ctx context.Context, to io.Writer) error { return b.write(ctx, to) }

// Identify tells what the chart at a path of a tree calls itself. Errors wrap ErrReference.
func Identify(ctx context.Context, files fs.FS, at string, limits Limits) (Identity, error) {
	b := newBuilder(files, limits, nil)
	place, info, err := b.find(at)
	if err != nil {
		return Identity{}, err
	}
	if !info.IsDir() {
		built, err := b.packaged(ctx, Folder{Files: files, Path: at}, place)
		if err != nil {
			return Identity{}, err
		}
		return built.Identity, nil
	}
	text, err := b.read(ctx, path.Join(place, chartName))
	if err != nil {
		return Identity{}, wrap(ErrReference, fmt.Errorf("no chart found at path '%s': %w", at, err))
	}
	metadata, err := parseMetadata(ctx, text)
	if err != nil {
		return Identity{}, wrap(ErrReference, err)
	}
	return Identity{metadata.Name, metadata.Version}, nil
}

// find finds what is at a path of the tree.
func (b *builder) find(at string) (string, fs.FileInfo, error) {
	place, err := inside(at)
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrReference, err)
	}
	info, err := fs.Stat(b.files, place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil, fmt.Errorf("%w: no chart found at path '%s'", ErrReference, at)
	case err != nil:
		return "", nil, fmt.Errorf("%w: stat '%s': %w", ErrReference, at, err)
	}
	return place, info, nil
}

// Build loads a chart from a tree. Errors wrap the kinds above.
func Build(ctx context.Context, f Folder) (*Built, error) {
	b := newBuilder(f.Files, f.Limits, f.Dependencies)
	place, info, err := b.find(f.Path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return b.packaged(ctx, f, place)
	}
	built := &Built{}
	loaded, err := b.folder(ctx, place, nil, built)
	if err != nil {
		return nil, err
	}
	return built, b.finish(ctx, built, loaded, f.ValuesFiles, f.IgnoreMissing, f.Metadata, b.fromRoot)
}

// packaged takes a chart that lies in the tree as a package.
func (b *builder) packaged(ctx context.Context, f Folder, place string) (*Built, error) {
	file, err := f.Files.Open(place)
	if err != nil {
		return nil, fmt.Errorf("%w: open '%s': %w", ErrReference, f.Path, err)
	}
	defer func() { _ = file.Close() }() // It was only read.
	built, err := b.remade(ctx, file, f.ValuesFiles, f.IgnoreMissing, f.Metadata, b.fromRoot)
	if errors.Is(err, ErrPackage) {
		err = fmt.Errorf("%w: '%s': %w", ErrReference, f.Path, err)
	}
	return built, err
}

// Rebuild loads a package, for other values or another version. Errors wrap the kinds above.
func Rebuild(ctx context.Context, p Package) (*Built, error) {
	b := newBuilder(nil, p.Limits, nil)
	if len(p.ValuesFiles) == 1 && p.ValuesFiles[0] == valuesName {
		p.ValuesFiles = nil
	}
	return b.remade(ctx, p.Content, p.ValuesFiles, p.IgnoreMissing, p.Metadata, ownValues)
}

// finish merges values and sets the version of a chart that is loaded.
func (b *builder) finish(
	ctx context.Context, built *Built, loaded *chart.Chart, values []string, ignoreMissing bool, metadata string, find finder,
) error {
	if err := b.merge(ctx, built, loaded, values, ignoreMissing, find); err != nil {
		return err
	}
	built.Original = Identity{loaded.Name(), loaded.Metadata.Version}
	if err := setMetadata(loaded, metadata); err != nil {
		return err
	}
	built.Identity = Identity{loaded.Name(), loaded.Metadata.Version}
	built.write = func(_ context.Context, to io.Writer) error { return save(loaded, to) }
	return nil
}

// wrap gives an error its kind. Too little memory is no fault of a chart.
func wrap(kind, err error) error {
	if errors.Is(err, memory.ErrShortage) {
		return err
	}
	return fmt.Errorf("%w: %w", kind, err)
}
