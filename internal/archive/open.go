package archive

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"

	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/tree"
)

// What the stream may hold beyond the bodies of files: some at its end, and some for each file and folder.
const (
	slackArchive = 1 << 20
	slackEntry   = 16 << 10
)

// blockSize is what tar is made of. One block of zeros, at least, marks the end of an archive.
const blockSize = 512

// Open reads a whole tar.gz, keeps the bodies of its files in an unnamed temporary file in dir (the system's
// folder for these if empty), and gives the archive as a file system. Folders that have no entry of their own are
// made up. Of modes only the executable bit is kept.
//
// The error is ErrLimit as soon as the stream exceeds a limit, ErrUnsafe on an entry that is no regular file or
// folder, is sparse, has an absolute name, one with "..", a backslash or a zero byte, or a name that is taken, and
// ErrCorrupt on anything that is not exactly one whole archive. An error of the source is given as it is, whatever was
// read before. Nothing is left behind after any of them.
func Open(ctx context.Context, src io.Reader, dir string, limits Limits) (*Tree, error) {
	return dialect{expand: expandGzip}.open(ctx, src, dir, limits)
}

// OpenPart is Open for a part of an archive: what is not wanted, by its path, is looked at and let go. It counts among what
// the limits bound, and takes neither temporary file nor memory.
func OpenPart(ctx context.Context, src io.Reader, dir string, limits Limits, wanted func(path string) bool) (*Tree, error) {
	return dialect{expand: expandGzip, wanted: wanted}.open(ctx, src, dir, limits)
}

// OpenLayer is like Open, for a layer of an image or artifact that others made: a tar archive as it is or packed with
// gzip or zstandard, which its first bytes tell. Several members or frames in a row are one archive, and a folder may
// have several entries. Whiteouts and the indexes of layers that are made for lazy pulling are files like others; links
// are left out and counted. All else that Open refuses is refused, and a zstandard window of more than 16 MiB is ErrLimit.
func OpenLayer(ctx context.Context, src io.Reader, dir string, limits Limits) (*Tree, error) {
	return dialect{expand: expandAny, foreign: true}.open(ctx, src, dir, limits)
}

// OpenNamed is OpenLayer for a part of an archive, as OpenPart has it, with an ID for each file and folder that names its content.
func OpenNamed(ctx context.Context, src io.Reader, dir string, limits Limits, wanted func(path string) bool) (*Tree, error) {
	return dialect{expand: expandAny, foreign: true, wanted: wanted, named: true}.open(ctx, src, dir, limits)
}

// dialect says what is an archive.
type dialect struct {
	expand  func(*bufio.Reader) (io.Reader, error) // takes the compression off
	foreign bool                                   // a folder may have several entries, and links are left out
	wanted  func(path string) bool                 // nil for all
	named   bool                                   // what is kept gets an ID
}

func (d dialect) open(ctx context.Context, src io.Reader, dir string, limits Limits) (*Tree, error) {
	bodies, err := newSpool(dir)
	if err != nil {
		return nil, fmt.Errorf("spool archive: %w", err)
	}
	r := &reader{
		ctx:     ctx,
		dialect: d,
		root:    newFolder(root),
		folders: map[*tree.Node]*folder{},
		bodies:  spool{bodies},
		limits:  limits.orDefault(),
		out:     bufio.NewWriterSize(bodies, bufferSize),
		buffer:  make([]byte, bufferSize),
	}
	in := &source{ctx: ctx, src: src}
	err = classify(r.read(in))
	if in.failure != nil {
		err = fmt.Errorf("read archive: %w", in.failure)
	}
	release := sync.OnceFunc(func() { memory.ReturnFile(ctx, r.bytes) })
	if err != nil {
		release()
		return nil, errors.Join(err, bodies.Close())
	}
	for n, f := range r.folders {
		n.Children = slices.SortedFunc(maps.Values(f.byName), tree.Compare)
	}
	r.settle(r.root)
	return &Tree{
		Tree: &tree.Tree{Root: r.root}, Links: r.links, FirstLink: r.firstLink, spool: r.bodies, files: r.files, bytes: r.bytes, release: release,
	}, nil
}

// settle notes the facts about each folder, so that nobody has to find them out again, and its ID.
func (d dialect) settle(n *tree.Node) {
	for _, child := range n.Children {
		if child.Mode.IsDir() {
			d.settle(child)
		}
	}
	facts, _ := tree.Sum(n.Children) // Listing what is in memory cannot fail.
	n.Known = &facts
	if d.named {
		n.ID = tree.Name(n.Children)
	}
}

// newSpool makes a file that has no name any more, so that a crash leaves nothing behind either.
func newSpool(dir string) (*os.File, error) {
	file, err := os.CreateTemp(dir, "archive-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

type reader struct {
	dialect

	ctx context.Context

	root    *tree.Node
	folders map[*tree.Node]*folder
	bodies  spool
	limits  Limits
	out     *bufio.Writer
	buffer  []byte
	stream  *boundedReader
	files   int
	bytes   int64 // of the files that are kept
	skipped int64 // of those that are not
	// links are those that were left out.
	links     int
	firstLink string
}

// folder is what is collected about a folder.
type folder struct {
	byName   map[string]*tree.Node
	declared bool // it has an entry of its own
}

func (r *reader) read(src io.Reader) error {
	expanded, err := r.expand(bufio.NewReaderSize(src, bufferSize))
	if err != nil {
		return fmt.Errorf("read archive: %w", err)
	}
	r.stream = &boundedReader{src: expanded, left: slackArchive}
	entries, end := tar.NewReader(r.stream), int64(0)
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
		end = (r.stream.total + blockSize - 1) / blockSize * blockSize
	}
	if err := r.drain(end); err != nil {
		return fmt.Errorf("read the end of the archive: %w", err)
	}
	if err := r.out.Flush(); err != nil {
		return fmt.Errorf("spool archive: %w", err)
	}
	return nil
}

// spool keeps the body of a file, which it gives its ID.
func (r *reader) spool(file *tree.Node, body io.Reader) error {
	out := io.Writer(r.out)
	if r.named {
		name := tree.NewNamer()
		out = io.MultiWriter(r.out, name)
		defer func() { file.ID = name.ID() }()
	}
	for size := file.Size; size > 0; {
		n, err := body.Read(r.buffer[:min(size, bufferSize)])
		if _, err := out.Write(r.buffer[:n]); err != nil {
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

// drain reads the stream to its end, where its checksum is. From where the last entry ended there are only zeros, which
// mark the end and which tar pads archives with. Where there are none, the archive was cut between two entries.
func (r *reader) drain(end int64) error {
	for {
		_, err := r.stream.Read(r.buffer)
		if r.stream.zeros < r.stream.total-end {
			return fmt.Errorf("%w: something follows it", ErrCorrupt)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if r.stream.total-end < blockSize {
		return fmt.Errorf("%w: it has no end", ErrCorrupt)
	}
	return nil
}
