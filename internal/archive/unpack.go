package archive

import (
	"archive/tar"
	"fmt"
	"io"
	"path"
	"strings"

	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/tree"
)

// nodeCost is what a file or folder takes in memory while its archive is read, with its place in the folder, and nameCost what
// its ID does.
const (
	nodeCost = 256
	nameCost = 80
)

func (r *reader) entry(header *tar.Header, body io.Reader) error {
	if err := r.checkHeader(header); err != nil {
		return err
	}
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := r.name(header)
	if err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		if !r.isWanted(name) {
			return r.count() // It is made up where something in it is wanted.
		}
		return r.folder(name)
	case tar.TypeLink, tar.TypeSymlink:
		return r.leaveOut(name)
	}
	if header.Size > r.limits.MaxBytes-r.bytes-r.skipped {
		return fmt.Errorf("%w: the files hold more than %d bytes", ErrLimit, r.limits.MaxBytes)
	}
	r.stream.left += header.Size
	if !r.isWanted(name) {
		r.skipped += header.Size
		if _, err := io.Copy(io.Discard, body); err != nil {
			return err
		}
		return r.count()
	}
	file, err := r.file(name, header)
	if err != nil {
		return err
	}
	if err := memory.DrawFile(r.ctx, header.Size); err != nil {
		return err
	}
	r.bytes += header.Size
	return r.spool(file, body)
}

func (d dialect) isWanted(name string) bool { return d.wanted == nil || d.wanted(name) }

// checkHeader refuses what has no place in a tree of plain files, and what readers of tar disagree about.
func (d dialect) checkHeader(header *tar.Header) error {
	switch header.Typeflag {
	case tar.TypeReg, tar.TypeDir:
	case tar.TypeXGlobalHeader:
		for key := range header.PAXRecords {
			if !isNeutral(key) {
				return fmt.Errorf("%w: global header sets %.64q", ErrUnsafe, key)
			}
		}
	case tar.TypeLink, tar.TypeSymlink:
		if !d.foreign {
			return fmt.Errorf("%w: it is a link", ErrUnsafe)
		}
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
	return name, r.limits.CheckPath(name)
}

// folder declares a folder, which may have been made up for an entry before.
func (r *reader) folder(name string) error {
	n, err := r.reach(name)
	if err != nil {
		return err
	}
	f := r.inside(n)
	if f.declared && !r.foreign {
		return errTaken()
	}
	f.declared = true
	return nil
}

func (r *reader) file(name string, header *tar.Header) (*tree.Node, error) {
	dir, base := path.Split(name)
	above, err := r.reach(strings.TrimSuffix(dir, "/"))
	if err != nil {
		return nil, err
	}
	if _, taken := r.inside(above).byName[base]; taken || name == root {
		return nil, errTaken()
	}
	mode := normalMode(header.FileInfo().Mode())
	file := &tree.Node{Name: strings.Clone(base), Mode: mode, Size: header.Size, Source: r.bodies, At: r.bytes}
	return file, r.add(above, file)
}

// reach finds a folder, making it up where it is missing.
func (r *reader) reach(name string) (*tree.Node, error) {
	n := r.root
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == root {
			break // It is the root itself.
		}
		known, ok := r.inside(n).byName[part]
		if !ok {
			// A part of a path would keep all of it in memory.
			known = newFolder(strings.Clone(part))
			if err := r.add(n, known); err != nil {
				return nil, err
			}
		}
		if !known.Mode.IsDir() {
			return nil, errTaken()
		}
		n = known
	}
	return n, nil
}

func (r *reader) inside(n *tree.Node) *folder {
	if r.folders[n] == nil {
		r.folders[n] = &folder{byName: map[string]*tree.Node{}}
	}
	return r.folders[n]
}

func (r *reader) add(above, n *tree.Node) error {
	cost := nodeCost + int64(len(n.Name))
	if r.named {
		cost += nameCost
	}
	if err := memory.Draw(r.ctx, cost); err != nil {
		return err
	}
	r.inside(above).byName[n.Name] = n
	return r.count()
}

// leaveOut forgets a link: its name stays free.
func (r *reader) leaveOut(link string) error {
	if r.links++; r.links == 1 {
		r.firstLink = strings.Clone(link)
	}
	return r.count()
}

// count allows an entry its place in the stream.
func (r *reader) count() error {
	if r.files++; r.files > r.limits.MaxFiles {
		return fmt.Errorf("%w: more than %d files and folders", ErrLimit, r.limits.MaxFiles)
	}
	r.stream.left += slackEntry
	return nil
}

func errTaken() error { return fmt.Errorf("%w: the name is taken", ErrUnsafe) }
