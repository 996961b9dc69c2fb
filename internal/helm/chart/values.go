package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/internal/yamlweight"
)

// valuesName is the file of a chart's default values.
const valuesName = "values.yaml"

// finder finds a values file of a chart. The error is fs.ErrNotExist where there is none.
type finder func(ctx context.Context, loaded *chart.Chart, place string) ([]byte, error)

// ownValues finds values files in the chart itself.
func ownValues(_ context.Context, loaded *chart.Chart, place string) ([]byte, error) {
	for _, f := range loaded.Raw {
		if f.Name == place {
			return f.Data, nil
		}
	}
	return nil, fs.ErrNotExist
}

// fromRoot finds values files in the tree that the chart lies in.
func (b *builder) fromRoot(ctx context.Context, _ *chart.Chart, place string) ([]byte, error) {
	return b.read(ctx, place)
}

// merge makes the values files the chart's default values: maps are merged, and of everything else the last one counts.
func (b *builder) merge(ctx context.Context, built *Built, loaded *chart.Chart, files []string, ignoreMissing bool, find finder) error {
	if len(files) == 0 {
		return nil
	}
	merged := map[string]any{}
	for _, file := range files {
		text, err := find(ctx, loaded, path.Join("/", file)[1:])
		switch {
		case errors.Is(err, fs.ErrNotExist) && ignoreMissing:
			continue
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w: no values file found at path '%s'", ErrValues, file)
		case err != nil:
			return wrap(ErrValues, fmt.Errorf("failed to read values from '%s': %w", file, err))
		}
		var values map[string]any
		if err = yamlweight.Draw(ctx, text); err == nil {
			values, err = loader.LoadValues(bytes.NewReader(text))
		}
		if err != nil {
			return wrap(ErrValues, fmt.Errorf("unmarshaling values from '%s' failed: %w", file, err))
		}
		merged = loader.MergeMaps(merged, values)
		built.Values = append(built.Values, file)
	}
	text, err := yaml.Marshal(merged)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrValues, err)
	}
	loaded.Values = merged
	for _, f := range loaded.Raw {
		if f.Name == valuesName {
			f.Data = text
			return nil
		}
	}
	loaded.Raw = append(loaded.Raw, &common.File{Name: valuesName, Data: text})
	return nil
}

// setMetadata puts build metadata in the place of what the version had.
func setMetadata(loaded *chart.Chart, metadata string) (err error) {
	loaded.Metadata.Version, err = WithMetadata(loaded.Metadata.Version, metadata)
	return err
}

// WithMetadata is a version with build metadata in the place of its own; without any it stays as it is. The error is ErrMetadata.
func WithMetadata(version, metadata string) (string, error) {
	if metadata == "" {
		return version, nil
	}
	parsed, err := semver.NewVersion(version)
	if err != nil {
		return "", fmt.Errorf("%w: failed to parse version '%s' from chart metadata as SemVer: %w", ErrMetadata, version, err)
	}
	with, err := parsed.SetMetadata(metadata)
	if err != nil {
		return "", fmt.Errorf("%w: failed to set build metadata '%s': %w", ErrMetadata, metadata, err)
	}
	return with.String(), nil
}
