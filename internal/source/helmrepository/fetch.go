package helmrepository

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/helm"
	"sluice.dev/sluice/internal/helm/index"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/source"
)

// errMoved says that the index is not the one any more that was asked about. The next attempt sees what it is now.
var errMoved = errors.New("the index has changed while it was fetched")

// Fetch brings the index, which is there already if this session has confirmed what it is.
func (s *session) Fetch(ctx context.Context, selected source.Selection, _ string) (source.Content, error) {
	if s.file == nil {
		if err := s.download(ctx, helm.Validators{}); err != nil {
			return source.Content{}, err
		}
		s.opener.known.Add(s.upstream, s.now)
		if s.now.Revision != selected.Revision {
			return source.Content{}, failure.Retry(sourcev1.FailedReason, errMoved)
		}
	}
	memo, err := json.Marshal(s.now)
	if err != nil {
		return source.Content{}, fmt.Errorf("encode what is remembered of the index: %w", err)
	}
	return source.Content{Memo: string(memo), Make: s.convert}, nil
}

// convert writes what is stored of the index, with its table. What the current artifact has of it is copied from there.
func (s *session) convert(ctx context.Context, to io.Writer) (table []byte, err error) {
	scratch, err := helm.TempFile(s.opener.TempDir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, scratch.Close()) }()
	previous, release := s.previous(ctx)
	defer release()
	table, err = index.Convert(ctx, io.NewSectionReader(s.file, 0, s.file.Size), previous, scratch.File, to)
	if errors.Is(err, index.ErrIndex) || errors.Is(err, memory.ErrBudget) {
		err = failure.At(source.StageFetch, failure.Retry(sourcev1.IndexationFailedReason,
			fmt.Errorf("failed to load Helm repository from index YAML: %w", err)))
	}
	return table, failure.OfDisk(err)
}

// previous opens the current artifact and its table; nil where one of them is not there.
func (s *session) previous(ctx context.Context) (*index.Previous, func()) {
	nothing := func() {}
	current := s.record.Current
	if current.CompanionPath() == "" || s.record.ConfigChecksum != s.checksum {
		return nil, nothing
	}
	artifact, err := s.opener.Store.Open(ctx, current.Path)
	if err != nil {
		return nil, nothing // The index can be read without it.
	}
	table, err := s.opener.Store.Open(ctx, current.CompanionPath())
	if err != nil {
		_ = artifact.Close() // It was only read.
		return nil, nothing
	}
	release := func() {
		_ = artifact.Close() // It was only read.
		_ = table.Close()
	}
	from, isAt := artifact.(io.ReaderAt)
	tableAt, isTableAt := table.(io.ReaderAt)
	if !isAt || !isTableAt {
		return nil, release
	}
	return &index.Previous{Artifact: from, Table: tableAt}, release
}
