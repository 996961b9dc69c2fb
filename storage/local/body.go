package local

import (
	"context"
	"errors"
	"os"
	"syscall"

	"sluice.dev/sluice/storage"
)

// body is an open artifact. It shows its file descriptor, so that io.Copy to a connection becomes sendfile.
type body struct {
	file     *os.File
	artifact storage.Artifact
}

var (
	_ storage.Body = (*body)(nil)
	_ syscall.Conn = (*body)(nil)
)

func (b *body) Read(p []byte) (int, error)                   { return b.file.Read(p) }
func (b *body) Seek(offset int64, whence int) (int64, error) { return b.file.Seek(offset, whence) }
func (b *body) Close() error                                 { return b.file.Close() }
func (b *body) Stat() storage.Artifact                       { return b.artifact }

// SyscallConn gives access to the file descriptor, whose offset is the body's.
func (b *body) SyscallConn() (syscall.RawConn, error) { return b.file.SyscallConn() }

// Open implements storage.Reader. It serves what the object's record names, and takes the lock of nobody. A body that
// stays open stays readable when the artifact is removed.
func (s *Store) Open(ctx context.Context, name string) (storage.Body, error) {
	file, artifact, err := s.open(ctx, name)
	if err != nil {
		return nil, storage.PathError(name, err)
	}
	return &body{file: file, artifact: artifact}, nil
}

func (s *Store) open(ctx context.Context, name string) (*os.File, storage.Artifact, error) {
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
		if artifact.Path != name && (i > 0 || base != storage.LatestFile) {
			continue
		}
		file, err := s.openIntact(artifact)
		if errors.Is(err, storage.ErrDamaged) {
			return nil, storage.Artifact{}, s.reportDamage(object, file, artifact)
		}
		return file, artifact, err
	}
	return nil, storage.Artifact{}, storage.ErrNotFound
}
