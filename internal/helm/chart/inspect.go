package chart

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/yamlweight"
)

// These files of a chart have a meaning.
const (
	chartName  = "Chart.yaml"
	lockName   = "Chart.lock"
	schemaName = "values.schema.json"
)

// drive is how paths of some system begin that are absolute there.
var drive = regexp.MustCompile(`^[a-zA-Z]:/`)

// Inspect reads a package to its end and tells what it calls itself. The error wraps ErrPackage where Helm would not load it, or
// where it goes beyond the limits.
func Inspect(ctx context.Context, packed io.Reader, limits Limits) (Identity, error) {
	b := newBuilder(nil, limits, nil)
	var metadata *chart.Metadata
	err := b.entries(packed, func(name string, size int64, content io.Reader) error {
		if name != chartName {
			return nil
		}
		if err := memory.Draw(ctx, held*size); err != nil {
			return err
		}
		if metadata != nil {
			return fmt.Errorf("%s is there twice", chartName)
		}
		text, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		metadata, err = parseMetadata(ctx, text)
		return err
	})
	switch {
	case err != nil:
		return Identity{}, wrap(ErrPackage, err)
	case metadata == nil:
		return Identity{}, fmt.Errorf("%w: %s is missing", ErrPackage, chartName)
	}
	return Identity{metadata.Name, metadata.Version}, nil
}

// parseMetadata reads a Chart.yaml as Helm does.
func parseMetadata(ctx context.Context, text []byte) (*chart.Metadata, error) {
	if err := yamlweight.Draw(ctx, text); err != nil {
		return nil, fmt.Errorf("cannot load %s: %w", chartName, err)
	}
	var metadata chart.Metadata
	if err := yaml.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &metadata); err != nil {
		return nil, fmt.Errorf("cannot load %s: %w", chartName, err)
	}
	if metadata.APIVersion == "" {
		metadata.APIVersion = chart.APIVersionV1
	}
	return &metadata, metadata.Validate()
}

// unpack reads the files of a package into memory.
func (b *builder) unpack(ctx context.Context, packed io.Reader) (files []*archive.BufferedFile, err error) {
	err = b.entries(packed, func(name string, size int64, content io.Reader) error {
		if err := memory.Draw(ctx, held*size); err != nil {
			return err
		}
		text, err := io.ReadAll(content)
		files = append(files, &archive.BufferedFile{Name: name, ModTime: fixedTime, Data: bytes.TrimPrefix(text, []byte("\ufeff"))})
		return err
	})
	return files, err
}

// entries goes through the files of a package. Their names are relative to the chart's folder.
func (b *builder) entries(packed io.Reader, see func(name string, size int64, content io.Reader) error) error {
	plain, err := gzip.NewReader(packed)
	if err != nil {
		return fmt.Errorf("uncompress: %w", err)
	}
	// What headers and padding take counts as well: a package of nothing else is no smaller than one of files.
	bounded := &io.LimitedReader{R: plain, N: 2 * b.limits.MaxUnpacked}
	files := tar.NewReader(bounded)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) && bounded.N > 0 {
			return nil
		}
		if bounded.N <= 0 {
			return fmt.Errorf("the package has more than %d bytes, uncompressed", 2*b.limits.MaxUnpacked)
		}
		if err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		if header.Typeflag == tar.TypeDir || header.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		name, err := entryName(header)
		if err != nil {
			return err
		}
		if err := b.take(name, header.Size); err != nil {
			return err
		}
		if err := see(name, header.Size, files); err != nil {
			return err
		}
	}
}

// entryName is the name of a file of a package without the chart's folder. Helm's rules decide what is none; links are none
// either, as Helm takes them for empty files.
func entryName(header *tar.Header) (string, error) {
	if header.Typeflag != tar.TypeReg {
		return "", fmt.Errorf("%.256q is no regular file", header.Name)
	}
	_, name, ok := strings.Cut(strings.ReplaceAll(header.Name, `\`, "/"), "/")
	switch {
	case !ok:
		return "", fmt.Errorf("%.256q is not in the chart's folder", header.Name)
	case path.IsAbs(name), drive.MatchString(name):
		return "", fmt.Errorf("%.256q is an absolute path", header.Name)
	}
	if slices.Contains(strings.Split(name, "/"), "..") {
		return "", fmt.Errorf("%.256q leads out of the chart's folder", header.Name)
	}
	if name = path.Clean(name); name == "." || strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("%.256q is no path of a file", header.Name)
	}
	return name, nil
}
