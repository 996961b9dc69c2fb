package local

import (
	"context"
	"errors"
	"io"
	"sync"

	"sluice.dev/sluice/storage"
)

// body is an open artifact. Its section knows how long it is, so that asking for that is no call of the kernel.
type body struct {
	*io.SectionReader
	file     *shared
	artifact storage.Artifact
	closing  sync.Once
}

// Close leaves the file to others who read it, however often it is called.
func (b *body) Close() (err error) {
	b.closing.Do(func() { err = b.file.Close() })
	return err
}

func (b *body) Stat() storage.Artifact { return b.artifact }

// Fd lets a server have the kernel send the file, from where Seek says that the body is.
func (b *body) Fd() uintptr { return b.file.Fd() }

// Open implements storage.Reader. It serves what the object's record names, and takes the lock of no object. A body that
// stays open stays readable when the artifact is removed.
func (s *Store) Open(ctx context.Context, name string) (storage.Body, error) {
	file, artifact, err := s.open(ctx, name)
	if err != nil {
		return nil, storage.PathError(name, err)
	}
	return &body{SectionReader: io.NewSectionReader(file, 0, artifact.Size), file: file, artifact: artifact}, nil
}

func (s *Store) open(ctx context.Context, name string) (*shared, storage.Artifact, error) {
	object, base, err := storage.ParsePath(name)
	if err != nil {
		return nil, storage.Artifact{}, errors.Join(storage.ErrNotFound, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, storage.Artifact{}, err
	}
	all, err := s.meaning(object)
	if err != nil {
		return nil, storage.Artifact{}, err
	}
	for i, artifact := range all {
		if artifact.Path != name && (i > 0 || !storage.IsLatest(base)) {
			continue
		}
		file, err := s.share(ctx, artifact)
		if errors.Is(err, storage.ErrDamaged) {
			return nil, storage.Artifact{}, s.reportDamage(object, file.File, artifact)
		}
		return file, artifact, err
	}
	return nil, storage.Artifact{}, storage.ErrNotFound
}
