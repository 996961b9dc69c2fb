package local

import (
	"context"
	"errors"
	"io/fs"
	"path"
)

// Usage tells how many bytes of bodies are stored, in how many files. A body with many names counts once.
func (s *Store) Usage(ctx context.Context) (bytes int64, files int, err error) {
	defer during(&err, "measure storage")
	algorithms, err := s.disk.list(blobsDir)
	if err != nil {
		return 0, 0, err
	}
	for _, algorithm := range algorithms {
		dir := path.Join(blobsDir, algorithm.Name())
		blobs, err := s.disk.list(dir)
		if err := errors.Join(err, ctx.Err()); err != nil {
			return 0, 0, err
		}
		for _, blob := range blobs {
			id, err := s.disk.identify(path.Join(dir, blob.Name()))
			if errors.Is(err, fs.ErrNotExist) {
				continue // It is no file, or has gone since it was listed.
			}
			if err != nil {
				return 0, 0, err
			}
			bytes += id.size
			files++
		}
	}
	return bytes, files, nil
}
