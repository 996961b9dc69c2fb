package archive

import (
	"archive/tar"
	"fmt"
	"io"
	"path"
	"strings"
)

func (r *reader) entry(header *tar.Header, body io.Reader) error {
	if err := checkHeader(header); err != nil {
		return err
	}
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := r.name(header)
	if err != nil {
		return err
	}
	if header.Typeflag == tar.TypeDir {
		return r.folder(name)
	}
	if header.Size > r.limits.MaxBytes-r.bytes {
		return fmt.Errorf("%w: the files hold more than %d bytes", ErrLimit, r.limits.MaxBytes)
	}
	r.stream.left += header.Size
	if err := r.file(name, header); err != nil {
		return err
	}
	r.bytes += header.Size
	return r.spool(body, header.Size)
}

// checkHeader refuses what has no place in a tree of plain files, and what readers of tar disagree about.
func checkHeader(header *tar.Header) error {
	switch header.Typeflag {
	case tar.TypeReg, tar.TypeDir:
	case tar.TypeXGlobalHeader:
		for key := range header.PAXRecords {
			if !isNeutral(key) {
				return fmt.Errorf("%w: global header sets %.64q", ErrUnsafe, key)
			}
		}
	case tar.TypeLink, tar.TypeSymlink:
		return fmt.Errorf("%w: it is a link", ErrUnsafe)
	default:
		return fmt.Errorf("%w: type %q is neither file nor folder", ErrUnsafe, header.Typeflag)
	}
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return fmt.Errorf("%w: it is a sparse file", ErrUnsafe)
		}
	}
	return nil
}

// isNeutral tells whether a record says nothing about names, kinds and sizes. Of these alone it does not matter that
// some readers apply a global header to the entries that follow and others do not. git archive notes the commit.
func isNeutral(key string) bool {
	switch key {
	case "comment", "atime", "ctime", "mtime", "uid", "gid", "uname", "gname":
		return true
	}
	return strings.HasPrefix(key, "SCHILY.xattr.") || strings.HasPrefix(key, "LIBARCHIVE.xattr.")
}

// name returns the entry's path in the tree.
func (r *reader) name(header *tar.Header) (string, error) {
	name := header.Name
	if name == "" || strings.HasPrefix(name, "/") || strings.ContainsAny(name, "\\\x00") {
		return "", fmt.Errorf("%w: no relative path with slashes", ErrUnsafe)
	}
	if header.Typeflag != tar.TypeDir && strings.HasSuffix(name, "/") {
		return "", fmt.Errorf("%w: a file with a folder's name", ErrUnsafe)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", fmt.Errorf("%w: the path leads upwards", ErrUnsafe)
		}
		if len(part) > maxName {
			return "", fmt.Errorf("%w: a name is longer than %d bytes", ErrLimit, maxName)
		}
	}
	name = path.Clean(name)
	return name, r.limits.checkPath(name)
}

// folder declares a folder, which may have been made up for an entry before.
func (r *reader) folder(name string) error {
	n := r.root
	if name != root {
		dir, base := path.Split(name)
		above, err := r.parent(dir)
		if err != nil {
			return err
		}
		if n, err = r.subfolder(above, base); err != nil {
			return err
		}
	}
	if n.declared && !r.repeats {
		return errTaken()
	}
	n.declared = true
	return nil
}

func (r *reader) file(name string, header *tar.Header) error {
	dir, base := path.Split(name)
	above, err := r.parent(dir)
	if err != nil {
		return err
	}
	if _, taken := above.byName[base]; taken || name == root {
		return errTaken()
	}
	mode := normalMode(header.FileInfo().Mode())
	return r.add(above, &node{name: strings.Clone(base), mode: mode, offset: r.bytes, size: header.Size})
}

// parent finds the folder that dir names, making it up where it is missing.
func (r *reader) parent(dir string) (*node, error) {
	n := r.root
	for part := range strings.SplitSeq(strings.TrimSuffix(dir, "/"), "/") {
		if part == "" {
			break
		}
		var err error
		if n, err = r.subfolder(n, part); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (r *reader) subfolder(above *node, name string) (*node, error) {
	if known, ok := above.byName[name]; ok {
		if !known.IsDir() {
			return nil, errTaken()
		}
		return known, nil
	}
	// A part of a path would keep all of it in memory.
	n := newFolder(strings.Clone(name))
	return n, r.add(above, n)
}

func (r *reader) add(above, n *node) error {
	if r.files++; r.files > r.limits.MaxFiles {
		return fmt.Errorf("%w: more than %d files and folders", ErrLimit, r.limits.MaxFiles)
	}
	if above.byName == nil {
		above.byName = map[string]*node{}
	}
	above.byName[n.name] = n
	r.stream.left += slackEntry
	return nil
}

func errTaken() error { return fmt.Errorf("%w: the name is taken", ErrUnsafe) }
