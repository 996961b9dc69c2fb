// Package memory keeps artifacts in a map, by the same contract as files. Tests and examples use it.
// It does not know how to outlive its process.
package memory

import (
	"bytes"
	"context"
	_ "crypto/sha256" // The digest algorithm has to be linked.
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/retention"
)

var _ storage.Store = (*Store)(nil)

// Options tune a store. The zero value works.
type Options struct {
	// Retention says how long Collect keeps superseded artifacts.
	Retention retention.Policy
	// Now is the clock; nil means the system's.
	Now func() time.Time
}

// Store keeps everything in memory. Artifacts are named by sha256. All methods may be called by many goroutines.
type Store struct {
	options Options

	mu      sync.RWMutex
	staged  map[digest.Digest]stagedBody
	records map[storage.Object]storage.Record
	files   map[string][]byte
}

type stagedBody struct {
	bytes  []byte
	claims int
}

// New makes an empty store.
func New(options Options) *Store {
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Store{
		options: options,
		staged:  make(map[digest.Digest]stagedBody),
		records: make(map[storage.Object]storage.Record),
		files:   make(map[string][]byte),
	}
}

// Stage implements storage.Writer.
func (s *Store) Stage(ctx context.Context, limit int64, write func(io.Writer) error) (storage.Staged, error) {
	if limit < 0 {
		return storage.Staged{}, fmt.Errorf("stage: limit %d is negative", limit)
	}
	body := &limitedBuffer{ctx: ctx, limit: limit}
	err := write(body)
	if body.err != nil {
		err = body.err
	}
	if err := errors.Join(err, ctx.Err()); err != nil {
		return storage.Staged{}, fmt.Errorf("stage: %w", err)
	}
	content := body.buffer.Bytes()
	d := digest.FromBytes(content)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.staged[d] = stagedBody{bytes: content, claims: s.staged[d].claims + 1}
	return storage.Staged{Digest: d, Size: int64(len(content))}, nil
}

// Restage implements storage.Writer.
func (s *Store) Restage(ctx context.Context, object storage.Object) (storage.Staged, error) {
	record, err := s.Record(ctx, object)
	if err != nil {
		return storage.Staged{}, fmt.Errorf("restage: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := record.Current.Digest
	s.staged[d] = stagedBody{bytes: s.files[record.Current.Path], claims: s.staged[d].claims + 1}
	return storage.Staged{Digest: d, Size: record.Current.Size}, nil
}

// Publish implements storage.Writer.
func (s *Store) Publish(ctx context.Context, object storage.Object, staged storage.Staged, record storage.Record) (storage.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	published, err := s.publish(ctx, object, staged, record)
	if err != nil {
		return storage.Record{}, fmt.Errorf("publish %s for %s: %w", staged.Digest, object, err)
	}
	return published, nil
}

func (s *Store) publish(ctx context.Context, object storage.Object, staged storage.Staged, record storage.Record) (storage.Record, error) {
	record.Current.Digest, record.Current.Size = staged.Digest, staged.Size
	if err := errors.Join(object.CheckPath(record.Current.Path), staged.Digest.Validate(), ctx.Err()); err != nil {
		return storage.Record{}, err
	}
	record, err := retention.Supersede(s.records[object], record, s.options.Now())
	if err != nil {
		return storage.Record{}, err
	}
	if !s.isIntact(record.Current) {
		body, ok := s.staged[staged.Digest]
		if !ok {
			return storage.Record{}, fmt.Errorf("staged body: %w", storage.ErrNotFound)
		}
		s.files[record.Current.Path] = body.bytes
	}
	s.records[object] = clone(record)
	s.drop(staged.Digest)
	return record, nil
}

// Discard implements storage.Writer.
func (s *Store) Discard(_ context.Context, staged storage.Staged) error {
	if err := staged.Digest.Validate(); err != nil {
		return fmt.Errorf("discard %q: %w", staged.Digest, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(staged.Digest)
	return nil
}

func (s *Store) drop(d digest.Digest) {
	body := s.staged[d]
	if body.claims--; body.claims > 0 {
		s.staged[d] = body
		return
	}
	delete(s.staged, d)
}

// Record implements storage.Writer.
func (s *Store) Record(ctx context.Context, object storage.Object) (storage.Record, error) {
	if err := ctx.Err(); err != nil {
		return storage.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	record, ok := s.records[object]
	if !ok || !s.isIntact(record.Current) {
		delete(s.files, record.Current.Path)
		return storage.Record{}, fmt.Errorf("record of %s: %w", object, storage.ErrNotFound)
	}
	return clone(record), nil
}

// Collect implements storage.Writer.
func (s *Store) Collect(ctx context.Context, object storage.Object) ([]storage.Artifact, error) {
	if err := errors.Join(object.Validate(), ctx.Err()); err != nil {
		return nil, fmt.Errorf("collect %s: %w", object, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	record, ok := s.records[object]
	if !ok {
		return nil, nil
	}
	garbage := retention.Garbage(record, s.options.Retention, s.options.Now())
	s.records[object] = retention.Without(record, garbage)
	var removed []storage.Artifact
	for _, old := range garbage {
		delete(s.files, old.Path)
		removed = append(removed, old.Artifact)
	}
	return removed, nil
}

// Delete implements storage.Writer.
func (s *Store) Delete(ctx context.Context, object storage.Object) error {
	if err := errors.Join(object.Validate(), ctx.Err()); err != nil {
		return fmt.Errorf("delete %s: %w", object, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	record := s.records[object]
	delete(s.files, record.Current.Path)
	for _, old := range record.Superseded {
		delete(s.files, old.Path)
	}
	delete(s.records, object)
	return nil
}

// Objects implements storage.Writer.
func (s *Store) Objects(ctx context.Context) ([]storage.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var objects []storage.Object
	for object := range s.records {
		objects = append(objects, object)
	}
	slices.SortFunc(objects, func(a, b storage.Object) int { return strings.Compare(a.Dir(), b.Dir()) })
	return objects, nil
}

// Damage flips a bit of the body under the path, as a failing disk would. Tests use it.
// storage.ErrNotFound when there is no such body, or an empty one.
func (s *Store) Damage(p string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	body := bytes.Clone(s.files[p])
	if len(body) == 0 {
		return storage.PathError(p, storage.ErrNotFound)
	}
	body[len(body)/2] ^= 1
	s.files[p] = body
	return nil
}

func (s *Store) isIntact(artifact storage.Artifact) bool {
	body, ok := s.files[artifact.Path]
	return ok && digest.FromBytes(body) == artifact.Digest
}
