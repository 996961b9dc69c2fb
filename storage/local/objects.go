package local

import (
	"context"
	"path"
	"slices"
	"strings"

	"sluice.dev/sluice/storage"
)

// Objects implements storage.Store.
func (s *Store) Objects(ctx context.Context) (objects []storage.Object, err error) {
	defer during(&err, "list objects")
	folders, err := s.folders(ctx)
	if err != nil {
		return nil, err
	}
	for _, object := range folders {
		for _, dir := range []string{path.Dir(recordPath(object)), object.Dir()} {
			entries, err := s.disk.list(dir)
			if err != nil {
				return nil, err
			}
			if len(entries) > 0 {
				objects = append(objects, object)
				break
			}
		}
	}
	return objects, nil
}

// folders lists the objects that have a folder of records, be it empty. Each object gets that before its first file,
// so that files which the storage did not write, below a path chosen by mistake, are nobody's and are left alone.
func (s *Store) folders(ctx context.Context) ([]storage.Object, error) {
	var objects []storage.Object
	err := s.walk(ctx, recordsDir, nil, func(segments []string) {
		object := storage.Object{Kind: segments[0], Namespace: segments[1], Name: segments[2]}
		if object.Validate() == nil {
			objects = append(objects, object)
		}
	})
	slices.SortFunc(objects, func(a, b storage.Object) int { return strings.Compare(a.Dir(), b.Dir()) })
	return objects, err
}

// walk visits the folders three levels below dir, also when others cannot be listed.
func (s *Store) walk(ctx context.Context, dir string, above []string, visit func(segments []string)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(above) == 3 {
		visit(above)
		return nil
	}
	entries, err := s.disk.list(dir)
	if err != nil {
		return err
	}
	var failed failures
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		failed.add(s.walk(ctx, path.Join(dir, entry.Name()), append(slices.Clone(above), entry.Name()), visit))
	}
	return failed.join()
}
