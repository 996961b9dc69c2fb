package archive

import (
	"archive/tar"
	"bufio"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

// What the stream may hold beyond the bodies of files: some at its end, and some a header.
const (
	slackArchive = 1 << 20
	slackEntry   = 16 << 10
)

// Open reads a whole tar.gz, keeps the bodies of its files in an unnamed temporary file in dir (the system's
// folder for these if empty), and gives the archive as a file system. Folders that have no entry of their own are
// made up. Of modes only the executable bit is kept.
//
// The error is ErrLimit as soon as the stream exceeds a limit, ErrUnsafe on an entry that is no regular file or
// folder, is sparse, has an absolute name, one with "..", a backslash or a zero byte, or a name that is taken, and
// ErrCorrupt on anything that is not exactly one whole archive. Nothing is left behind then.
func Open(ctx context.Context, src io.Reader, dir string, limits Limits) (*Tree, error) {
	spool, err := newSpool(dir)
	if err != nil {
		return nil, fmt.Errorf("spool archive: %w", err)
	}
	r := &reader{
		root:   newFolder(root),
		limits: limits.orDefault(),
		out:    bufio.NewWriterSize(spool, bufferSize),
		buffer: make([]byte, bufferSize),
	}
	if err := r.read(ctx, src); err != nil {
		return nil, errors.Join(classify(err), spool.Close())
	}
	r.root.sort()
	return &Tree{spool: spool, root: r.root}, nil
}

// newSpool makes a file that has no name any more, so that a crash leaves nothing behind either.
func newSpool(dir string) (*os.File, error) {
	spool, err := os.CreateTemp(dir, "archive-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(spool.Name()); err != nil {
		return nil, errors.Join(err, spool.Close())
	}
	return spool, nil
}

type reader struct {
	root   *node
	limits Limits
	out    *bufio.Writer
	buffer []byte
	stream *boundedReader
	files  int
	bytes  int64
}

func (r *reader) read(ctx context.Context, src io.Reader) error {
	packed, err := gzip.NewReader(&cancelReader{ctx: ctx, src: src})
	if err != nil {
		return fmt.Errorf("read archive: %w", err)
	}
	r.stream = &boundedReader{src: packed, left: slackArchive}
	entries := tar.NewReader(r.stream)
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		if err := r.entry(header, entries); err != nil {
			return fmt.Errorf("read %.256q: %w", header.Name, err)
		}
	}
	if err := r.drain(); err != nil {
		return fmt.Errorf("read the end of the archive: %w", err)
	}
	if err := r.out.Flush(); err != nil {
		return fmt.Errorf("spool archive: %w", err)
	}
	return nil
}

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
	r.stream.left += slackEntry
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
			// git archive notes the commit in a comment; anything else would change the entries that follow.
			if key != "comment" && key != "mtime" {
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
	if n.declared {
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
	return nil
}

func errTaken() error { return fmt.Errorf("%w: the name is taken", ErrUnsafe) }

func (r *reader) spool(body io.Reader, size int64) error {
	for size > 0 {
		n, err := body.Read(r.buffer[:min(size, bufferSize)])
		if _, err := r.out.Write(r.buffer[:n]); err != nil {
			return fmt.Errorf("spool archive: %w", err)
		}
		if size -= int64(n); size > 0 && err != nil {
			if errors.Is(err, io.EOF) {
				return io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// drain reads the stream to its end, where its checksum is. Tar pads archives with zeros; nothing else may follow.
func (r *reader) drain() error {
	for {
		n, err := r.stream.Read(r.buffer)
		for _, b := range r.buffer[:n] {
			if b != 0 {
				return fmt.Errorf("%w: something follows it", ErrCorrupt)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// classify marks the errors of the tar and gzip readers as damage.
func classify(err error) error {
	for _, damage := range []error{
		gzip.ErrHeader, gzip.ErrChecksum, tar.ErrHeader, tar.ErrFieldTooLong, io.ErrUnexpectedEOF, io.EOF,
	} {
		if errors.Is(err, damage) {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
	}
	if _, ok := errors.AsType[flate.CorruptInputError](err); ok {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}

// boundedReader gives out what is left of the stream's allowance, which each entry adds to.
type boundedReader struct {
	src  io.Reader
	left int64
}

func (r *boundedReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, fmt.Errorf("%w: the archive holds too much beside its files", ErrLimit)
	}
	n, err := r.src.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	return n, err
}

// cancelReader ends with its context.
type cancelReader struct {
	ctx context.Context
	src io.Reader
}

func (r *cancelReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.src.Read(p)
}
