package chart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/util"

	"sluice.dev/sluice/internal/memory"
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
		return cmp.Or(cmp.Compare(a.Name(), b.Name()), cmp.Compare(a.Metadata.Version, b.Metadata.Version))
	})
	loaded.SetDependencies(below...)
	for _, sub := range below {
		settle(sub)
	}
}

// save writes the package of a chart.
func (b *builder) save(ctx context.Context, loaded *chart.Chart, to io.Writer) (err error) {
	settle(loaded)
	dir, err := os.MkdirTemp(b.limits.TempDir, "chart-*")
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// A package is no larger than its files, but for what compression adds to what cannot be compressed.
	if err := memory.DrawFile(ctx, b.limits.MaxUnpacked-b.left.MaxUnpacked); err != nil {
		return err
	}
	name, err := util.Save(loaded, dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPackage, err)
	}
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("open the package: %w", err)
	}
	_, err = io.Copy(to, file)
	return errors.Join(err, file.Close())
}
