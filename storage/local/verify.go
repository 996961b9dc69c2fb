package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"sluice.dev/sluice/storage"
)

// openIntact opens the body of exactly the artifact's bytes. A file that has not changed since it was last hashed is not
// read; any other is hashed first. storage.ErrNotFound when there is no file or when it is known to be damaged;
// storage.ErrDamaged, together with the open file, when that has just been found out, and without a file when it cannot
// be read at all.
func (s *Store) openIntact(artifact storage.Artifact) (*os.File, error) {
	file, id, err := s.disk.open(blobPath(artifact.Digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, storage.ErrNotFound
	}
	if unreadable(err) {
		return nil, s.judgeUnread(artifact, err)
	}
	if err != nil {
		return nil, err
	}
	is, isNew, err := s.judge(file, id, artifact)
	switch {
	case err != nil:
		return nil, errors.Join(err, file.Close())
	case is == intact:
		return file, nil
	case isNew:
		return file, storage.ErrDamaged
	default:
		return nil, errors.Join(storage.ErrNotFound, file.Close())
	}
}

// holds tells whether the body of exactly the artifact's bytes is there.
func (s *Store) holds(artifact storage.Artifact) (bool, error) {
	file, err := s.openIntact(artifact)
	if file != nil {
		defer file.Close()
	}
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrDamaged) {
		return false, nil
	}
	return err == nil, err
}

// judgeUnread remembers the file that cannot be read as damaged: storage.ErrNotFound when that was known.
func (s *Store) judgeUnread(artifact storage.Artifact, reason error) error {
	id, _ := s.disk.identify(blobPath(artifact.Digest)) // One that cannot even be identified is that.
	if s.verdicts.of(id, artifact.Digest) == damaged {
		return storage.ErrNotFound
	}
	s.verdicts.remember(id, artifact.Digest, damaged)
	return fmt.Errorf("%w: %w", storage.ErrDamaged, reason)
}

// judge tells whether the file is intact, and whether that is news.
func (s *Store) judge(file *os.File, id identity, artifact storage.Artifact) (is verdict, isNew bool, err error) {
	if is := s.verdicts.of(id, artifact.Digest); is != unknown {
		return is, false, nil
	}
	defer s.hashing.lock(artifact.Digest)()
	return s.judgeAfresh(file, artifact, func(id identity) verdict { return s.verdicts.of(id, artifact.Digest) })
}

// judgeAfresh reads the file unless known has a verdict for it, and remembers what it finds.
func (s *Store) judgeAfresh(file *os.File, artifact storage.Artifact, known func(identity) verdict) (is verdict, isNew bool, err error) {
	before, err := identify(file)
	if err != nil {
		return unknown, false, err
	}
	if is := known(before); is != unknown {
		return is, false, nil
	}
	is = damaged
	if before.size == artifact.Size {
		if is, err = compare(file, artifact); err != nil {
			return unknown, false, err
		}
	}
	after, err := identify(file)
	if err != nil {
		return unknown, false, err
	}
	// A file that changed meanwhile is looked at again next time.
	if before == after {
		s.verdicts.remember(after, artifact.Digest, is)
	}
	return is, true, nil
}

// compare reads the file, and leaves it where it is.
func compare(file *os.File, artifact storage.Artifact) (verdict, error) {
	hash := artifact.Digest.Algorithm().Digester()
	_, err := io.Copy(hash.Hash(), io.NewSectionReader(file, 0, artifact.Size))
	switch {
	case unreadable(err):
		return damaged, nil
	case err != nil:
		return unknown, fmt.Errorf("hash %q: %w", file.Name(), err)
	case hash.Digest() != artifact.Digest:
		return damaged, nil
	default:
		return intact, nil
	}
}
