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
	dirs, err := s.bodyDirs(ctx)
	if err != nil {
		return 0, 0, err
	}
	seen := make(map[inode]bool)
	for _, dir := range dirs {
		entries, err := s.disk.list(dir)
		if err := errors.Join(err, ctx.Err()); err != nil {
			return 0, 0, err
		}
		for _, entry := range entries {
			id, _, err := s.disk.identify(path.Join(dir, entry.Name()))
			if errors.Is(err, fs.ErrNotExist) {
				continue // It is no file, or has gone since it was listed.
			}
			if err != nil {
				return 0, 0, err
			}
			if key := (inode{id.dev, id.ino}); !seen[key] {
				seen[key] = true
				bytes += id.size
				files++
			}
		}
	}
	return bytes, files, nil
}

// bodyDirs lists the folders that hold bodies.
func (s *Store) bodyDirs(ctx context.Context) ([]string, error) {
	algorithms, err := s.disk.list(blobsDir)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, algorithm := range algorithms {
		dirs = append(dirs, path.Join(blobsDir, algorithm.Name()))
	}
	objects, err := s.folders(ctx)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		dirs = append(dirs, object.Dir())
	}
	return dirs, nil
}
