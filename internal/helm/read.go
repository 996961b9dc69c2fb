package helm

import (
	"bytes"
	"context"
	"errors"
	"io"

	"sluice.dev/sluice/internal/helm/index"
)

// Index is the index of a repository that nobody keeps for long.
type Index struct {
	artifact *File
	table    []byte
}

// ReadIndex reads the index that was asked for to a temporary file. Errors are those of index.Convert, and of reading the answer.
func ReadIndex(ctx context.Context, answer Answer, dir string) (i *Index, err error) {
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
	to := &drawing{ctx: ctx, to: artifact.File}
	table, err := index.Convert(ctx, io.NewSectionReader(document, 0, document.Size), nil, scratch.File, to)
	if err != nil {
		return nil, errors.Join(err, artifact.Close())
	}
	return &Index{artifact, table}, nil
}

// Versions are those of a chart, newest first. Errors are those of index.Lookup. It may be called by several goroutines.
func (i *Index) Versions(ctx context.Context, chart string) ([]index.Version, error) {
	return index.Lookup(ctx, i.artifact, bytes.NewReader(i.table), chart)
}

// Close lets go of the file.
func (i *Index) Close() error { return i.artifact.Close() }
