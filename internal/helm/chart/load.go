package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/ignore"

	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/yamlweight"
)

// held is how many bytes of memory a byte of a chart's file takes at most: as a file, and in what is made of it.
const held = 2

// ruleCost is how many bytes of memory a rule of a .helmignore takes.
const ruleCost = 256

// builder loads charts within the limits.
type builder struct {
	files    fs.FS // nil where there is nothing but a package
	resolver Resolver
	limits   Limits
	// left is what of the limits is left for all that is loaded.
	left Limits
}

func newBuilder(files fs.FS, limits Limits, resolver Resolver) *builder {
	limits = limits.orDefault()
	return &builder{files: files, resolver: resolver, limits: limits, left: limits}
}

// take takes a file from what is left.
func (b *builder) take(name string, size int64) error {
	if size > b.limits.MaxFile {
		return fmt.Errorf("file %q has %d bytes, and a file of a chart may have %d (--helm-chart-file-max-size)", name, size, b.limits.MaxFile)
	}
	if b.left.MaxUnpacked -= size; b.left.MaxUnpacked < 0 {
		return fmt.Errorf("the chart has more than %d bytes of files", b.limits.MaxUnpacked)
	}
	if b.left.MaxFiles--; b.left.MaxFiles < 0 {
		return fmt.Errorf("the chart has more than %d files", b.limits.MaxFiles)
	}
	return nil
}

// inside is a path within the tree, whatever it climbs.
func inside(place string) (string, error) {
	clean := path.Join("/", place)[1:]
	if clean == "" {
		clean = "."
	}
	if !fs.ValidPath(clean) {
		return "", fmt.Errorf("'%s' is no path", place)
	}
	return clean, nil
}

// read reads one file of the tree.
func (b *builder) read(ctx context.Context, name string) ([]byte, error) {
	info, err := fs.Stat(b.files, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is no regular file", name)
	}
	if err := b.take(name, info.Size()); err != nil {
		return nil, err
	}
	if err := memory.Draw(ctx, held*info.Size()); err != nil {
		return nil, err
	}
	return fs.ReadFile(b.files, name)
}

// folder loads the chart in a folder of the tree, with its dependencies. Within lists the folders of the charts that need it.
func (b *builder) folder(ctx context.Context, at string, within []string, built *Built) (*chart.Chart, error) {
	if err := b.nested(at, within); err != nil {
		return nil, err
	}
	files, err := b.walk(ctx, at)
	if err != nil {
		return nil, err
	}
	loaded, err := b.load(ctx, files)
	if err != nil {
		return nil, wrap(ErrReference, fmt.Errorf("failed to load chart '%s': %w", at, err))
	}
	return loaded, b.resolve(ctx, loaded, at, append(slices.Clone(within), at), built)
}

// nested refuses a chart that needs itself, or that is needed by too many others in turn.
func (b *builder) nested(at string, within []string) error {
	if slices.Contains(within, at) {
		return fmt.Errorf("chart '%s' needs itself: %s", at, strings.Join(append(within, at), " → "))
	}
	if len(within) >= b.limits.MaxDepth {
		return fmt.Errorf("more than %d charts need each other in turn, '%s' is the last", b.limits.MaxDepth, at)
	}
	return nil
}

// walk reads the files of a chart that its .helmignore leaves.
func (b *builder) walk(ctx context.Context, at string) ([]*archive.BufferedFile, error) {
	rules, weight, err := b.rules(ctx, at)
	if err != nil {
		return nil, wrap(ErrPackage, err)
	}
	var files []*archive.BufferedFile
	err = fs.WalkDir(b.files, at, func(place string, entry fs.DirEntry, err error) error {
		if err != nil || place == at {
			return err
		}
		name := place
		if at != "." {
			name = strings.TrimPrefix(place, at+"/")
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if b.left.MaxMatch -= weight * int64(len(name)); b.left.MaxMatch < 0 {
			return fmt.Errorf("the rules of %s are too many for the files that there are", ignore.HelmIgnore)
		}
		if rules.Ignore(name, info) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if entry.IsDir() {
			return nil
		}
		text, err := b.read(ctx, place)
		files = append(files, &archive.BufferedFile{Name: name, ModTime: fixedTime, Data: bytes.TrimPrefix(text, []byte("\ufeff"))})
		return err
	})
	if err != nil {
		return nil, wrap(ErrPackage, err)
	}
	return files, nil
}

// rules are those of a .helmignore, and what a comparison with them all costs for each byte of a name.
func (b *builder) rules(ctx context.Context, at string) (rules *ignore.Rules, weight int64, err error) {
	rules = ignore.Empty()
	text, err := b.read(ctx, path.Join(at, ignore.HelmIgnore))
	if err == nil {
		err = memory.Draw(ctx, ruleCost*int64(bytes.Count(text, []byte{'\n'})))
	}
	if err == nil {
		rules, err = ignore.Parse(bytes.NewReader(text))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, fmt.Errorf("read %s: %w", ignore.HelmIgnore, err)
	}
	rules.AddDefaults()
	return rules, int64(len(text)) + 1, nil
}

// load makes a chart of its files. Packages among its sub-charts are unpacked first, so that they are bounded together.
func (b *builder) load(ctx context.Context, files []*archive.BufferedFile) (*chart.Chart, error) {
	flat, err := b.flatten(ctx, files, 0)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, f := range flat {
		if seen[f.Name] {
			return nil, fmt.Errorf("file %q is there twice", f.Name)
		}
		seen[f.Name] = true
	}
	for _, f := range flat {
		if isParsed(f.Name) {
			if err := yamlweight.Draw(ctx, f.Data); err != nil {
				return nil, fmt.Errorf("%.256q: %w", f.Name, err)
			}
		}
	}
	loaded, err := loader.LoadFiles(flat)
	if err == nil {
		settle(loaded)
	}
	return loaded, err
}

// isParsed tells whether Helm parses a file of a chart or of a sub-chart while it loads it.
func isParsed(name string) bool { return path.Base(name) == valuesName || IsDescription(name) }

// flatten puts the files of sub-charts that are packages in the place of these.
func (b *builder) flatten(ctx context.Context, files []*archive.BufferedFile, depth int) ([]*archive.BufferedFile, error) {
	flat := make([]*archive.BufferedFile, 0, len(files))
	for _, f := range files {
		nested := depth + strings.Count("/"+f.Name, "/charts/")
		if nested > b.limits.MaxDepth {
			return nil, fmt.Errorf("sub-charts are nested deeper than %d: %.256q", b.limits.MaxDepth, f.Name)
		}
		folder, name := path.Split(f.Name)
		isSub := strings.HasSuffix("/"+folder, "/charts/") && path.Ext(name) == ".tgz" && !strings.HasPrefix(name, "_") && !strings.HasPrefix(name, ".")
		if !isSub {
			flat = append(flat, f)
			continue
		}
		inner, err := b.unpack(ctx, bytes.NewReader(f.Data))
		if err != nil {
			return nil, fmt.Errorf("sub-chart %.256q: %w", f.Name, err)
		}
		if inner, err = b.flatten(ctx, inner, nested); err != nil {
			return nil, err
		}
		for _, g := range inner {
			g.Name = folder + name + ".d/" + g.Name // Helm reads the name in the chart, and not this one.
			flat = append(flat, g)
		}
	}
	return flat, nil
}

// remade loads a package, if it is to become another one.
func (b *builder) remade(ctx context.Context, content io.Reader, values []string, ignoreMissing bool, metadata string, find finder) (*Built, error) {
	packed, err := b.readPackage(ctx, content)
	if err != nil {
		return nil, wrap(ErrPackage, err)
	}
	if len(values) == 0 && metadata == "" {
		identity, err := Inspect(ctx, bytes.NewReader(packed), b.limits)
		write := func(_ context.Context, to io.Writer) error {
			_, err := to.Write(packed)
			return err
		}
		return &Built{Identity: identity, Original: identity, IsAsItWas: true, write: write}, err
	}
	loaded, err := b.loadPackage(ctx, packed)
	if err != nil {
		return nil, wrap(ErrPackage, err)
	}
	built := &Built{}
	return built, b.finish(ctx, built, loaded, values, ignoreMissing, metadata, find)
}

// readPackage reads a package into memory.
func (b *builder) readPackage(ctx context.Context, content io.Reader) ([]byte, error) {
	if err := memory.Draw(ctx, b.limits.MaxPackage); err != nil {
		return nil, err
	}
	packed, err := io.ReadAll(io.LimitReader(content, b.limits.MaxPackage+1))
	if err == nil && int64(len(packed)) > b.limits.MaxPackage {
		err = fmt.Errorf("the package has more than %d bytes (--helm-chart-max-size)", b.limits.MaxPackage)
	}
	return packed, err
}

// loadPackage makes a chart of a package.
func (b *builder) loadPackage(ctx context.Context, packed []byte) (*chart.Chart, error) {
	files, err := b.unpack(ctx, bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return b.load(ctx, files)
}
