package helmchart

import (
	"context"
	"errors"
	"io"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/helm/index"
)

// maxSeen is of how many charts it is remembered what their index had of them.
const maxSeen = 1 << 14

// seen is what an index had of a chart.
type seen struct {
	repository, chart string
	entries           index.Hash
}

func nameOf(obj *sourcev1.HelmChart) string { return obj.Namespace + "/" + obj.Name }

// saw notes what the index has of an object's chart.
func (o *Opener) saw(obj *sourcev1.HelmChart, entries index.Hash) {
	o.looked.Add(nameOf(obj), seen{obj.Spec.SourceRef.Name, obj.Spec.Chart, entries})
}

// Moved tells, for charts of one HelmRepository, whether its index has something else of them than when they were looked at last.
// Where nobody knows, it has.
func (o *Opener) Moved(ctx context.Context, charts []sourcev1.HelmChart) func(obj *sourcev1.HelmChart) bool {
	always := func(*sourcev1.HelmChart) bool { return true }
	if len(charts) == 0 {
		return always
	}
	repository := charts[0].Spec.SourceRef.Name
	stored, err := o.Artifacts.Stored(ctx, sourcev1.HelmRepositoryKind, charts[0].Namespace, repository)
	if err != nil {
		return always
	}
	now := map[string]index.Hash{}
	if err := o.table(ctx, stored, func(table io.ReaderAt) error {
		for i := range charts {
			name := charts[i].Spec.Chart
			entries, err := index.EntriesHash(table, name)
			if err != nil && !errors.Is(err, index.ErrNoChart) {
				return err
			}
			now[name] = entries
		}
		return nil
	}); err != nil {
		return always
	}
	return func(obj *sourcev1.HelmChart) bool {
		last, ok := o.looked.Peek(nameOf(obj))
		return !ok || last != seen{repository, obj.Spec.Chart, now[obj.Spec.Chart]}
	}
}
