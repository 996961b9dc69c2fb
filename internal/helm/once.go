package helm

import (
	"bytes"
	"context"
	"errors"
	"io"

	"sluice.dev/sluice/internal/helm/index"
)

// Versions returns those of a chart, newest first, in an index that was asked for and that nobody keeps. Errors are those of
// index.Convert and index.Lookup, and of reading the answer.
func Versions(ctx context.Context, answer Answer, dir, chart string) (versions []index.Version, err error) {
	document, err := Save(ctx, answer, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, document.Close()) }()
	scratch, err := TempFile(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, scratch.Close()) }()
	artifact, err := TempFile(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, artifact.Close()) }()
	to := &drawing{ctx: ctx, to: artifact.File}
	table, err := index.Convert(ctx, io.NewSectionReader(document, 0, document.Size), nil, scratch.File, to)
	if err != nil {
		return nil, err
	}
	return index.Lookup(ctx, artifact, bytes.NewReader(table), chart)
}
