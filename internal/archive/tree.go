package archive

import (
	"fmt"
	"io"
	"os"

	"sluice.dev/sluice/internal/tree"
)

// Tree is an archive that was opened: a read-only file system of plain files and folders, for concurrent use.
type Tree struct {
	*tree.Tree

	// Links is how many links the archive has that the tree has not, FirstLink the name of the first.
	Links     int
	FirstLink string

	spool   spool
	files   int
	bytes   int64
	release func() // gives back what was drawn for the spool
}

// Beside returns what an opened archive leaves of the limits for others that are open at the same time; ErrLimit when that
// is nothing.
func (l Limits) Beside(t *Tree) (Limits, error) {
	l = l.orDefault()
	l.MaxFiles -= t.files
	l.MaxBytes -= t.bytes
	if l.MaxFiles < 1 || l.MaxBytes < 1 {
		return l, fmt.Errorf("%w: all archives together hold too many files or bytes", ErrLimit)
	}
	return l, nil
}

// Close gives up the spooled bodies. Files of the tree cannot be read any more.
func (t *Tree) Close() error {
	t.release()
	return t.spool.Close()
}

// spool is the file that holds the bodies of an archive's files, one after the other.
type spool struct{ *os.File }

// Open implements tree.Source.
func (s spool) Open(n *tree.Node) (io.ReadCloser, error) {
	return io.NopCloser(io.NewSectionReader(s, n.At, n.Size)), nil
}
