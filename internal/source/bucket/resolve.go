package bucket

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/bucket"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/source"
)

// Resolve lists the bucket, and nothing else: the listing says whether it is there, what is in it, and whether the rules of the
// bucket's root are the ones that are known. Outside of the prefix these cost a listing of one object.
func (s *session) Resolve(ctx context.Context) (source.Selection, error) {
	s.selected, s.rules = nil, nil // Work that begins anew has nothing yet.
	found, err := s.list(ctx)
	if err != nil {
		return source.Selection{}, err
	}
	text, err := s.ignoreFile(ctx, found)
	if err != nil {
		return source.Selection{}, explain(err, "failed to get Etag for '%s' object", sourceignore.IgnoreFile)
	}
	if s.selected, err = s.choose(ctx, found, text); err != nil {
		return source.Selection{}, failure.Retry(sourcev1.SourceIgnoreErrorReason, err)
	}
	revision := revisionOf(s.selected)
	return source.Selection{Revision: revision, Name: nameOf(revision), Extension: ".tar.gz", ConfigChecksum: s.checksum}, nil
}

// list gives all objects below the prefix that are files.
func (s *session) list(ctx context.Context) ([]bucket.Object, error) {
	isFile := func(_ context.Context, object bucket.Object) (bool, error) {
		return !strings.HasSuffix(object.Key, "/"), nil
	}
	first, name := false, s.spec.BucketName
	key := fmt.Sprintf("%q", []string{s.identity, s.spec.Prefix})
	found, shared, err := s.opener.together.list(ctx, key, func(ctx context.Context) (found []bucket.Object, err error) {
		found, first, err = bucket.Gather(ctx, s.bucket, s.spec.Prefix, s.opener.MaxObjects, isFile)
		return found, err
	})
	if shared {
		return found, memory.Draw(ctx, costOf(found))
	}
	switch {
	case err == nil:
		return found, nil
	case errors.Is(err, bucket.ErrNoBucket):
		return nil, explain(err, "bucket '%s' not found", name)
	case first:
		return nil, explain(err, "failed to confirm existence of '%s' bucket", name)
	}
	return nil, explain(err, "indexation of objects from bucket '%s' failed: listing objects from bucket '%s' failed", name, name)
}

// costOf is what a listing takes in memory. Who made it has drawn it, and gives it back in the end; others hold it then.
func costOf(found []bucket.Object) int64 {
	cost := objectCost / 2 * int64(len(found))
	for _, o := range found {
		cost += int64(len(o.Key) + len(o.ETag) + len(o.Generation))
	}
	return cost
}

// ignoreFile finds the file with rules in the root, and gives its text; empty without one.
func (s *session) ignoreFile(ctx context.Context, found []bucket.Object) (string, error) {
	inside := strings.HasPrefix(sourceignore.IgnoreFile, s.spec.Prefix)
	if at, ok := slices.BinarySearchFunc(found, sourceignore.IgnoreFile, func(o bucket.Object, key string) int {
		return strings.Compare(o.Key, key)
	}); ok {
		s.rules = &found[at]
	} else if !inside {
		now, err := bucket.Find(ctx, s.bucket, sourceignore.IgnoreFile)
		if err != nil && !errors.Is(err, bucket.ErrNoObject) {
			return "", err
		} else if err == nil {
			s.rules = &now
		}
	}
	if s.rules == nil {
		return "", nil
	}
	if text, ok := s.opener.rules.Get(s.rulesName()); ok {
		return text, nil
	}
	return s.readRules(ctx)
}

// readRules reads the file with rules as it is by now, which may be gone.
func (s *session) readRules(ctx context.Context) (string, error) {
	var text []byte
	now, err := bucket.Read(ctx, s.bucket, *s.rules, s.opener.Limits.MaxBytes, func(_ bucket.Object, body io.Reader) (err error) {
		text, err = io.ReadAll(io.LimitReader(body, archive.MaxRuleBytes+1))
		return err
	})
	if errors.Is(err, bucket.ErrNoObject) {
		s.rules = nil
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if s.rules = &now; len(text) <= maxKeptRules {
		s.opener.rules.Add(s.rulesName(), string(text))
	}
	return string(text), nil
}

// rulesName names what the file with rules holds.
func (s *session) rulesName() string { return s.identity + " " + s.rules.Content() }

// choose leaves out what the rules do, those of the spec after those of the bucket, and the file with the rules itself.
func (s *session) choose(ctx context.Context, found []bucket.Object, text string) ([]bucket.Object, error) {
	spec := ""
	if s.spec.Ignore != nil {
		spec = *s.spec.Ignore
	}
	filter, err := archive.NewFilter(ctx, s.opener.Limits, strings.NewReader(text), strings.NewReader(spec))
	if err != nil {
		return nil, err
	}
	chosen := make([]bucket.Object, 0, len(found))
	for _, object := range found {
		if object.Key == sourceignore.IgnoreFile {
			continue
		}
		excluded, err := filter.Excludes(ctx, object.Key)
		if err != nil {
			return nil, err
		}
		if !excluded {
			chosen = append(chosen, object)
		}
	}
	return chosen, nil
}

// revisionOf is Flux's formula: a line for each object, in the order of the keys' bytes.
func revisionOf(objects []bucket.Object) string {
	hash := sha256.New()
	for _, o := range objects {
		fmt.Fprintf(hash, "%s %s\n", o.Key, o.ETag)
	}
	return fmt.Sprintf("sha256:%x", hash.Sum(nil))
}

// nameOf is what the artifact's file is called.
func nameOf(revision string) string { return strings.TrimPrefix(revision, "sha256:") }

// Share implements source.Sharer. Who has just been shown the listing may have what was made of it for others who see the same.
func (s *session) Share(_ context.Context, selected source.Selection) string {
	return s.key(selected.Revision)
}

// key names what is archived: where it comes from, the objects, and the file with the rules, which is one of them.
func (s *session) key(revision string) string {
	rules := ""
	if s.rules != nil {
		rules = s.rules.Content()
	}
	return fmt.Sprintf("%x %s %s", sha256.Sum256(fmt.Appendf(nil, "%q", []string{s.identity, rules})), revision, archive.FormatVersion)
}
