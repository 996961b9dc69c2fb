package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/bucket"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/tree"
)

// objectCost is what an object takes in memory beside its texts, while its place in the tree is made.
const objectCost = 512

// Fetch brings the bodies that are new, and finds the others where they are.
func (s *session) Fetch(ctx context.Context, selected source.Selection, have string) (source.Content, error) {
	key := s.key(selected.Revision)
	if key == have {
		return source.Content{Key: key, Title: strconv.Itoa(len(s.selected))}, nil
	}
	content, err := s.fetch(ctx, selected)
	if err != nil {
		return source.Content{}, explain(err, "fetch from bucket '%s' failed", s.spec.BucketName)
	}
	return content, nil
}

func (s *session) fetch(ctx context.Context, selected source.Selection) (source.Content, error) {
	objects := slices.Clone(s.selected)
	if s.rules != nil {
		objects = append(objects, *s.rules)
	}
	if err := s.check(ctx, objects); err != nil {
		return source.Content{}, err
	}
	known, err := s.known(ctx)
	if err != nil {
		return source.Content{}, err
	}
	loan := s.opener.Cache.Borrow(ctx, s.identity)
	closeAll := func() error { return errors.Join(known.close(), loan.Close()) }
	files, err := s.bring(ctx, loan, known, objects)
	if err != nil {
		return source.Content{}, errors.Join(err, closeAll())
	}
	root, err := plant(files)
	if err != nil {
		return source.Content{}, errors.Join(err, closeAll())
	}
	now := make([]bucket.Object, 0, len(s.selected))
	for _, f := range files {
		if s.rules == nil || f.object.Key != s.rules.Key {
			now = append(now, f.object)
		}
	}
	content := source.Content{
		Tree: &tree.Tree{Root: root}, Whole: true, Title: strconv.Itoa(len(now)), Close: closeAll,
		Parts: parts{dir: s.opener.IndexDir, max: s.opener.MaxIndexBytes, identity: s.identity, files: files},
	}
	revision := revisionOf(now)
	content.Key = s.key(revision)
	if revision != selected.Revision {
		content.Revision, content.Name = revision, nameOf(revision)
	}
	return content, nil
}

// check refuses what is too much, before anything of it is fetched.
func (s *session) check(ctx context.Context, objects []bucket.Object) error {
	if len(objects) > s.opener.Limits.MaxFiles {
		return fmt.Errorf("%w: %d objects are selected, more than %d", archive.ErrLimit, len(objects), s.opener.Limits.MaxFiles)
	}
	var bytes, cost int64
	for _, o := range objects {
		if o.Size > s.opener.Limits.MaxBytes-bytes {
			return fmt.Errorf("%w: the selected objects hold more than %d bytes", archive.ErrLimit, s.opener.Limits.MaxBytes)
		}
		if err := s.opener.Limits.CheckPath(o.Key); err != nil {
			return err
		}
		bytes += o.Size
		cost += objectCost + 2*int64(len(o.Key)+len(o.ETag))
	}
	if err := memory.Draw(ctx, cost); err != nil {
		return err
	}
	return checkKeys(objects)
}

// file is an object that is going to be archived.
type file struct {
	object bucket.Object
	digest digest.Digest
	source tree.Source
}

// bring finds or fetches every object. One that is gone meanwhile is left out, and one that has changed is taken as it is now.
func (s *session) bring(ctx context.Context, loan *bucket.Loan, known *stored, objects []bucket.Object) ([]file, error) {
	files := make([]file, len(objects))
	group, fetching := errgroup.WithContext(ctx)
	group.SetLimit(maxFetches)
	for i, object := range objects {
		files[i] = file{object: object}
		if body, ok := loan.Find(object); ok {
			files[i].digest, files[i].source = body.Digest, fetched{body}
			continue
		}
		if sum, ok := known.digest(object); ok {
			files[i].digest, files[i].source = sum, known
			continue
		}
		if fetching.Err() != nil {
			break
		}
		group.Go(func() error {
			var body bucket.Body
			now, err := bucket.Read(fetching, s.bucket, object, s.opener.Limits.MaxBytes, func(object bucket.Object, sent io.Reader) (err error) {
				body, err = loan.Put(object, sent)
				return err
			})
			if err != nil && !errors.Is(err, bucket.ErrNoObject) {
				return fmt.Errorf("failed to get '%s' object: %w", printable(object.Key), err)
			}
			files[i] = file{object: now, digest: body.Digest, source: fetched{body}}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(files, func(f file) bool { return f.digest == "" }), ctx.Err()
}
