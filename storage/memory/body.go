package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sluice.dev/sluice/storage"
)

// body is an open artifact.
type body struct {
	*bytes.Reader
	artifact storage.Artifact
}

// Stat implements storage.Body.
func (b body) Stat() storage.Artifact { return b.artifact }

// Close implements storage.Body.
func (body) Close() error { return nil }

// Open implements storage.Reader. It hashes the body each time.
func (s *Store) Open(ctx context.Context, p string) (storage.Body, error) {
	opened, err := s.open(ctx, p)
	if err != nil {
		return nil, storage.PathError(p, err)
	}
	return opened, nil
}

func (s *Store) open(ctx context.Context, p string) (storage.Body, error) {
	object, base, err := storage.ParsePath(p)
	if err != nil {
		return nil, errors.Join(storage.ErrNotFound, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if base == storage.LatestFile {
		p = s.records[object].Current.Path
	}
	artifact, ok := find(s.records[object], p)
	content, stored := s.files[p]
	if !ok || !stored {
		return nil, storage.ErrNotFound
	}
	if !s.isIntact(artifact) {
		delete(s.files, p)
		return nil, storage.ErrDamaged
	}
	return body{Reader: bytes.NewReader(content), artifact: artifact}, nil
}

func find(record storage.Record, p string) (storage.Artifact, bool) {
	if record.Current.Path == p {
		return record.Current, true
	}
	for _, old := range record.Superseded {
		if old.Path == p {
			return old.Artifact, true
		}
	}
	return storage.Artifact{}, false
}

// clone keeps the caller's maps and slices apart from the store's.
func clone(record storage.Record) storage.Record {
	record.Current.Metadata = maps.Clone(record.Current.Metadata)
	record.Superseded = slices.Clone(record.Superseded)
	for i := range record.Superseded {
		record.Superseded[i].Metadata = maps.Clone(record.Superseded[i].Metadata)
	}
	return record
}

// limitedBuffer refuses what goes beyond the limit or comes after the context's end, and stays at that.
type limitedBuffer struct {
	ctx    context.Context //nolint:containedctx // It lives for one call of Stage.
	limit  int64
	buffer bytes.Buffer
	err    error
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.err == nil {
		b.err = b.ctx.Err()
	}
	if b.err == nil && b.limit > 0 && int64(len(p)) > b.limit-int64(b.buffer.Len()) {
		b.err = fmt.Errorf("%w of %d bytes", storage.ErrTooLarge, b.limit)
	}
	if b.err != nil {
		return 0, b.err
	}
	return b.buffer.Write(p)
}
