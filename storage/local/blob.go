package local

import (
	"errors"
	"io/fs"
	"path"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/storage"
)

// stagedFor is how long a body may stay staged before a sweep takes it for forgotten.
const stagedFor = time.Hour

// stagedBodies counts the callers that have staged a digest and neither published nor discarded it.
type stagedBodies struct {
	mu    sync.Mutex
	since map[digest.Digest][]time.Time
}

func (b *stagedBodies) add(d digest.Digest, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.since == nil {
		b.since = make(map[digest.Digest][]time.Time)
	}
	b.since[d] = append(b.since[d], now)
}

// drop takes one claim back, the oldest; none is no error, since publishing may be repeated.
func (b *stagedBodies) drop(d digest.Digest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if claims := b.since[d]; len(claims) > 1 {
		b.since[d] = claims[1:]
	} else {
		delete(b.since, d)
	}
}

func (b *stagedBodies) has(d digest.Digest) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.since[d]) > 0
}

// expire drops the digests whose youngest claim is older than stagedFor.
func (b *stagedBodies) expire(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for d, claims := range b.since {
		if now.Sub(claims[len(claims)-1]) > stagedFor {
			delete(b.since, d)
		}
	}
}

// adopt makes the temporary file the blob of its digest, unless an intact one is there.
func (s *Store) adopt(tmp string, staged storage.Staged) error {
	defer s.digests.lock(staged.Digest)()
	blob := blobPath(staged.Digest)
	have, err := s.holds(storage.Artifact{Digest: staged.Digest, Size: staged.Size})
	if err != nil {
		return err
	}
	if have {
		// It may be there since a crash that came before the folder was durable.
		if err := s.disk.syncDir(path.Dir(blob)); err != nil {
			return err
		}
	} else {
		// The digest guard is held, so the new file gets its name before anyone can look at it.
		if err := s.disk.place(tmp, blob); err != nil {
			return errors.Join(err, s.removeBlob(staged.Digest)) // It may have its name already.
		}
		if err := s.trust(staged.Digest); err != nil {
			return errors.Join(err, s.removeBlob(staged.Digest))
		}
	}
	s.staged.add(staged.Digest, s.options.Now())
	return nil
}

// trust remembers a blob that was hashed while it was written.
func (s *Store) trust(d digest.Digest) error {
	id, err := s.disk.identify(blobPath(d))
	if err == nil {
		s.verdicts.remember(id, d, intact)
	}
	return err
}

// keep claims the artifact's blob as if it were staged once more. storage.ErrNotFound without an intact one;
// storage.ErrDamaged when it was found damaged just now, and removed.
func (s *Store) keep(artifact storage.Artifact) error {
	defer s.digests.lock(artifact.Digest)()
	file, err := s.openIntact(artifact)
	if file != nil {
		defer file.Close()
	}
	if errors.Is(err, storage.ErrDamaged) {
		return errors.Join(err, s.removeBlob(artifact.Digest))
	}
	if err == nil {
		s.staged.add(artifact.Digest, s.options.Now())
	}
	return err
}

// reap removes the digest's blob if no record names it and nobody has staged it.
func (s *Store) reap(d digest.Digest) error {
	defer s.digests.lock(d)()
	if s.staged.has(d) || s.names.has(d) {
		return nil
	}
	return s.removeBlob(d)
}

// sweepBlobs reaps every blob, and removes what is no blob at all.
func (s *Store) sweepBlobs() error {
	algorithms, err := s.disk.list(blobsDir)
	if err != nil {
		return err
	}
	var failed failures
	for _, algorithm := range algorithms {
		if !algorithm.IsDir() {
			failed.add(s.disk.removeTree(path.Join(blobsDir, algorithm.Name())))
			continue
		}
		blobs, err := s.disk.list(path.Join(blobsDir, algorithm.Name()))
		failed.add(err)
		for _, blob := range blobs {
			failed.add(s.sweepBlob(algorithm.Name(), blob))
		}
	}
	return failed.join()
}

func (s *Store) sweepBlob(algorithm string, blob fs.DirEntry) error {
	d := digest.NewDigestFromEncoded(digest.Algorithm(algorithm), blob.Name())
	if d.Validate() != nil || !blob.Type().IsRegular() {
		return s.disk.removeTree(path.Join(blobsDir, algorithm, blob.Name()))
	}
	return s.reap(d)
}
