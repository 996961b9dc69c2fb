package git

import (
	"context"
	"fmt"
	"strings"
)

// folderWith finds the folder that holds a file, nil if there is none, and splits the file's path.
func (o *Objects) folderWith(ctx context.Context, root *editedTree, file string) (above *editedTree, steps []string, name string, err error) {
	steps = strings.Split(file, "/")
	mark := steps[len(steps)-1]
	steps, name = steps[:len(steps)-2], steps[len(steps)-2]
	if above, err = o.descend(ctx, root, steps, false); above == nil || err != nil {
		return nil, steps, name, err
	}
	folder, err := o.inside(ctx, above, name)
	if folder == nil || err != nil {
		return nil, steps, name, err
	}
	if mode, err := parseMode(folder.entries[mark].octal); err != nil || !mode.IsRegular() {
		return nil, steps, name, nil //nolint:nilerr // There is no such file.
	}
	return above, steps, name, nil
}

// drop takes the folders that hold the files out of a tree that is edited.
func (o *Objects) drop(ctx context.Context, from *editedTree, files []string) error {
	for _, file := range files {
		above, _, name, err := o.folderWith(ctx, from, file)
		if err != nil {
			return err
		}
		if above != nil {
			delete(above.entries, name)
		}
	}
	return nil
}

// keep copies the folders in Edit.Keep from the tree before the edit, nil for none, into the new tree. A folder inside another one is
// copied with it.
func (o *Objects) keep(ctx context.Context, before, at *editedTree, e Edit) error {
	if before == nil {
		return nil
	}
	for _, file := range e.Keep {
		from, steps, name, err := o.folderWith(ctx, before, file)
		if err == nil && from != nil {
			err = o.transfer(ctx, from.entries[name], at, steps, name)
		}
		if err != nil {
			return describe(strings.TrimPrefix(e.Path+"/"+file, "/"), err)
		}
	}
	return nil
}

// transfer puts an entry under a name into the folder at the end of the steps.
func (o *Objects) transfer(ctx context.Context, kept entry, to *editedTree, steps []string, name string) (err error) {
	for _, step := range steps {
		if next, ok := to.entries[step]; ok && !next.isDir() {
			return fmt.Errorf("%w: a file has the path of a folder that must not change", ErrUnsafeTree)
		}
		if to, err = o.descend(ctx, to, []string{step}, true); err != nil {
			return err
		}
	}
	if now, ok := to.entries[name]; ok && now.hash != kept.hash {
		return fmt.Errorf("%w: another entry has the path of a folder that must not change", ErrUnsafeTree)
	}
	to.entries[name] = kept
	return nil
}
