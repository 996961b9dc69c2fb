package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/bucket"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/tree"
	"sluice.dev/sluice/storage"
)

// stored is the artifact that is stored for the object now, with what is known of the objects in it. It is opened when a body
// is taken from it, and that is seldom: what has not changed is mostly copied in one piece with what is around it.
type stored struct {
	ctx     context.Context //nolint:containedctx // It is of the fetch whose content is read later.
	opener  *Opener
	path    string
	objects map[string]entry

	mu     sync.Mutex
	opened *archive.Tree
}

// known finds what is stored. Without an artifact, or an index of it, nothing is known.
func (s *session) known(ctx context.Context) (*stored, error) {
	record, err := s.opener.Stored.Record(ctx, s.object)
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrDamaged) {
		return &stored{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	kept := parts{dir: s.opener.IndexDir, identity: s.identity}
	if err := memory.Draw(ctx, indexCost*kept.size(record.Current.Digest)); err != nil {
		return nil, err
	}
	index := kept.read(record.Current.Digest)
	// The tree is archived when upstream may have used up its time.
	known := &stored{ctx: context.WithoutCancel(ctx), opener: s.opener, path: record.Current.Path, objects: map[string]entry{}}
	if err := memory.Draw(ctx, objectCost*int64(len(index.Objects))); err != nil {
		return nil, err
	}
	for _, e := range index.Objects {
		known.objects[e.Key] = e
	}
	return known, nil
}

// digest is that of an object's body, if it is in the artifact.
func (s *stored) digest(object bucket.Object) (digest.Digest, bool) {
	e, ok := s.objects[object.Key]
	if !ok || e.Content != object.Content() || e.Size != object.Size {
		return "", false
	}
	return digest.NewDigestFromBytes(digest.SHA256, e.Sum[:]), true
}

// Open implements tree.Source: it takes a body from the artifact.
func (s *stored) Open(n *tree.Node) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened == nil {
		body, err := s.opener.Stored.Open(s.ctx, s.path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = body.Close() }() // It was only read.
		if s.opened, err = archive.Open(s.ctx, body, s.opener.TempDir, s.opener.Limits); err != nil {
			return nil, fmt.Errorf("open the stored artifact: %w", failure.OfDisk(err))
		}
	}
	return s.opened.Open(n.Name)
}

func (s *stored) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened == nil {
		return nil
	}
	return s.opened.Close()
}
