package chart

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"
)

// fixedTime is that of all entries of a package: equal charts are to have equal packages, whenever they are made.
var fixedTime = time.Unix(0, 0).UTC() //nolint:gochecknoglobals // A constant.

// settle gives a chart and its sub-charts the one form that is written. Helm reads sub-charts in no order.
func settle(loaded *chart.Chart) {
	loaded.ModTime, loaded.SchemaModTime = fixedTime, fixedTime
	if loaded.Lock != nil && loaded.Lock.Generated.IsZero() {
		loaded.Lock.Generated = fixedTime
	}
	for _, f := range slices.Concat(loaded.Raw, loaded.Templates, loaded.Files) {
		f.ModTime = fixedTime
	}
	below := loaded.Dependencies()
	slices.SortStableFunc(below, func(a, b *chart.Chart) int {
		return cmp.Or(cmp.Compare(a.Name(), b.Name()), cmp.Compare(a.Metadata.Version, b.Metadata.Version), slices.CompareFunc(a.Raw, b.Raw, compareFiles))
	})
	loaded.SetDependencies(below...)
	for _, sub := range below {
		settle(sub)
	}
}

func compareFiles(a, b *common.File) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), bytes.Compare(a.Data, b.Data))
}

// save writes the package of a chart, as Helm's own "package" does. Helm's function for it is not called, since it knows files alone,
// and brings a compiler of JSON schemas into every start of the program.
func save(loaded *chart.Chart, to io.Writer) error {
	settle(loaded)
	if err := loaded.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrPackage, err)
	}
	zipped := gzip.NewWriter(to)
	zipped.Comment, zipped.Extra = "Helm", []byte(helmExtra)
	packed := tar.NewWriter(zipped)
	return errors.Join(pack(packed, loaded, ""), packed.Close(), zipped.Close())
}

// helmExtra is in the gzip header of all packages that Helm has made, "extra" of RFC 1952.
const helmExtra = "+aHR0cHM6Ly95b3V0dS5iZS96OVV6MWljandyTQo="

// pack writes the files of a chart, and those of its sub-charts below it, in Helm's order.
func pack(to *tar.Writer, loaded *chart.Chart, above string) error {
	if name := loaded.Name(); path.Base(name) != name || strings.Contains(name, `\`) {
		return fmt.Errorf("%w: %q is no name of a chart", ErrPackage, name)
	}
	if loaded.Schema != nil && !json.Valid(loaded.Schema) {
		return fmt.Errorf("%w: %s is no JSON", ErrPackage, schemaName)
	}
	files, err := described(loaded)
	if err != nil {
		return err
	}
	values := slices.DeleteFunc(slices.Clone(loaded.Raw), func(f *common.File) bool { return f.Name != valuesName })
	files = append(files, values...)
	if loaded.Schema != nil {
		files = append(files, &common.File{Name: schemaName, ModTime: loaded.SchemaModTime, Data: loaded.Schema})
	}
	base := path.Join(above, loaded.Name())
	for _, f := range slices.Concat(files, loaded.Templates, loaded.Files) {
		header := tar.Header{Typeflag: tar.TypeReg, Name: path.Join(base, f.Name), Mode: 0o644, Size: int64(len(f.Data)), ModTime: f.ModTime}
		if _, err := entryName(&header); err != nil {
			return fmt.Errorf("%w: %w", ErrPackage, err)
		}
		if err := to.WriteHeader(&header); err != nil {
			return fmt.Errorf("%s: %w", header.Name, err)
		}
		if _, err := to.Write(f.Data); err != nil {
			return fmt.Errorf("%s: %w", header.Name, err)
		}
	}
	for _, sub := range loaded.Dependencies() {
		if err := pack(to, sub, path.Join(base, "charts")); err != nil {
			return err
		}
	}
	return nil
}

// described are the files that say what a chart is. Charts of v1 had their dependencies in a file of its own, which is among the others.
func described(loaded *chart.Chart) ([]*common.File, error) {
	metadata := *loaded.Metadata
	if metadata.APIVersion == chart.APIVersionV1 {
		metadata.Dependencies = nil
	}
	written, err := yaml.Marshal(metadata)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrPackage, chartName, err)
	}
	files := []*common.File{{Name: chartName, ModTime: loaded.ModTime, Data: written}}
	if loaded.Lock == nil || metadata.APIVersion != chart.APIVersionV2 {
		return files, nil
	}
	if written, err = yaml.Marshal(loaded.Lock); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrPackage, lockName, err)
	}
	return append(files, &common.File{Name: lockName, ModTime: loaded.Lock.Generated, Data: written}), nil
}
