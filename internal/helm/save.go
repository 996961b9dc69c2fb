package helm

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/memory"
)

// File is a temporary file. It goes as soon as it is closed, however the process ends.
type File struct {
	*os.File

	// Digest is that of the content, and Size its length.
	Digest digest.Digest
	Size   int64
}

// TempFile makes an empty file in the folder, or in the system's without one.
func TempFile(dir string) (*File, error) {
	file, err := os.CreateTemp(dir, "helm-*")
	if err != nil {
		return nil, failure.OfDisk(err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(failure.OfDisk(err), file.Close())
	}
	return &File{File: file}, nil
}

// Save writes the body of an answer to a temporary file that is read from its beginning, and closes the body. What it takes is drawn from the context.
func Save(ctx context.Context, answer Answer, dir string) (*File, error) {
	defer func() { _ = answer.Body.Close() }() // It was only read.
	file, err := TempFile(dir)
	if err != nil {
		return nil, err
	}
	hash := digest.SHA256.Digester()
	if file.Size, err = io.Copy(&drawing{ctx: ctx, to: io.MultiWriter(file.File, hash.Hash())}, answer.Body); err != nil {
		return nil, errors.Join(failure.OfDisk(err), file.Close())
	}
	file.Digest = hash.Digest()
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(failure.OfDisk(err), file.Close())
	}
	return file, nil
}

// drawing draws what it writes.
type drawing struct {
	ctx context.Context //nolint:containedctx // It lives for one download.
	to  io.Writer
}

// Write implements io.Writer.
func (d *drawing) Write(p []byte) (int, error) {
	if err := memory.DrawFile(d.ctx, int64(len(p))); err != nil {
		return 0, err
	}
	return d.to.Write(p)
}
