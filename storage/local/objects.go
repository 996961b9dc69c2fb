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
		entries, err := s.disk.list(path.Dir(recordPath(object)))
		if err != nil {
			return nil, err
		}
		if len(entries) > 0 {
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// folders lists the objects that have a folder of records, be it empty.
func (s *Store) folders(ctx context.Context) ([]storage.Object, error) {
	var objects []storage.Object
	err := s.walk(ctx, recordsDir, nil, func(segments []string) {
		object := storage.Object{Kind: segments[0], Namespace: segments[1], Name: segments[2]}
		if object.Validate() == nil {
			objects = append(objects, object)
		}
	})
	return inOrder(objects), err
}

// inOrder sorts the objects, and drops those that are there twice.
func inOrder(objects []storage.Object) []storage.Object {
	slices.SortFunc(objects, func(a, b storage.Object) int { return strings.Compare(a.Dir(), b.Dir()) })
	return slices.Compact(objects)
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
