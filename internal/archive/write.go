package archive

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/tree"
)

// writeCost is what the compressor and the buffers of one archive take.
const writeCost = 2 << 20

// What belongs in one part: little enough that a change costs little, enough that parts cost little in size.
const (
	// minPart is the weight from which on a part may end, at an entry whose name says so.
	minPart = 256 << 10
	// maxPart is the weight that a part stays below, if it holds more than one entry.
	maxPart = 1 << 20
	// maxFolder is the weight above which a folder has parts of its own.
	maxFolder = 512 << 10
	// cutEvery is how many names there are to one that says so.
	cutEvery = 4
)

// Stored is an archive that was written before, from which parts may be taken. The zero value is none.
type Stored struct {
	Body  io.ReadSeeker
	Index []byte
}

// Write archives what the rules leave of the tree to dst, as a tar.gz. Nil rules are the default exclusions.
//
// The bytes depend on the names, contents and executable bits of files and folders only. What is compressed equals what
// Flux's source-controller makes of the same tree: entries in the order of filepath.Walk, the root first as ".",
// folders without a trailing slash, links and devices left out, owner and times zero. A folder that is excluded
// has no entry of its own even if something beneath it is not.
//
// The error is ErrLimit when the archive or the work of matching rules would exceed a limit and ErrUnsafe when the tree names an entry twice or
// by something that is no file name. What dst has got by then is of no use.
func Write(ctx context.Context, dst io.Writer, files fs.FS, rules *Rules, limits Limits) error {
	_, err := WriteFrom(ctx, dst, files, rules, limits, Stored{})
	return err
}

// WriteFrom is Write for a tree of which much may be in an archive that is stored already: that is neither listed nor read
// nor compressed again. It writes the same bytes, and returns the index of what it wrote. An index that is damaged is not
// used. The error is ErrStored when the stored archive turns out to be.
func WriteFrom(ctx context.Context, dst io.Writer, files fs.FS, rules *Rules, limits Limits, stored Stored) ([]byte, error) {
	limits = limits.orDefault()
	if err := memory.Draw(ctx, writeCost); err != nil {
		return nil, err
	}
	defer memory.Return(ctx, writeCost)
	top, err := plant(ctx, files, limits)
	if err != nil {
		return nil, err
	}
	out, err := newMember(ctx, dst)
	if err != nil {
		return nil, err
	}
	defer func() { memory.Return(ctx, out.drawn) }()
	if err := out.draw(int64(len(stored.Index)) / indexCost * recordCost); err != nil {
		return nil, err
	}
	w := &writer{walk: walk{limits: limits}, before: stored.read(), member: out, tar: tar.NewWriter(out), salt: salt(rules, limits)}
	if err := w.all(ctx, top, rules.scope(&budget{left: limits.MaxMatch, limit: limits.MaxMatch})); err != nil {
		return nil, err
	}
	return out.encode()
}

type writer struct {
	walk
	*member

	before  *earlier
	tar     *tar.Writer
	salt    key // of all keys
	scratch []byte
	files   int64
	bytes   int64
}

// all writes the whole archive. Its root and its end are parts that every archive has.
func (w *writer) all(ctx context.Context, top *tree.Node, rules scope) error {
	if err := w.header(tar.Header{Typeflag: tar.TypeDir, Name: root, Mode: folderMode}); err != nil {
		return err
	}
	if err := w.end(); err != nil {
		return err
	}
	if err := w.folder(ctx, root, top, rules); err != nil {
		return err
	}
	for _, finish := range []func() error{w.tar.Close, w.end, w.close} {
		if err := finish(); err != nil {
			return fmt.Errorf("finish archive: %w", err)
		}
	}
	return nil
}

// folder writes the contents of a folder that has parts of its own: of each folder in it that has as well, and of the runs
// of other entries between these.
func (w *writer) folder(ctx context.Context, dir string, n *tree.Node, rules scope) error {
	entries, err := w.list(ctx, dir, n)
	if err != nil {
		return err
	}
	for len(entries) > 0 {
		length, apart, err := nextRun(entries)
		if err != nil {
			return err
		}
		if err := w.run(ctx, dir, entries[:length], rules); err != nil {
			return err
		}
		if apart {
			if err := w.subfolder(ctx, dir, entries[length-1], rules); err != nil {
				return err
			}
		}
		entries = entries[length:]
	}
	return nil
}

// nextRun tells how many of the entries are the next part, and whether the last of them is a folder that has its own.
func nextRun(entries []*tree.Node) (length int, apart bool, err error) {
	var weight int64
	for i, entry := range entries {
		facts, err := entry.Facts()
		switch {
		case err != nil:
			return 0, false, err
		case isApart(entry, facts):
			return i + 1, true, nil
		case i > 0 && weight+facts.Weight > maxPart:
			return i, false, nil
		}
		if weight += facts.Weight; weight >= minPart && endsPart(entry.Name) {
			return i + 1, false, nil
		}
	}
	return len(entries), false, nil
}

// isApart tells whether an entry is a folder that has parts of its own.
func isApart(n *tree.Node, facts tree.Facts) bool { return n.Mode.IsDir() && facts.Weight > maxFolder }

// endsPart goes by the name alone, so that most parts stay what they are when an entry comes or goes.
func endsPart(name string) bool { return crc32.ChecksumIEEE([]byte(name))%cutEvery == 0 }

// subfolder is folder for one inside another, whose header is written. As a whole it may be in the stored archive.
func (w *writer) subfolder(ctx context.Context, dir string, n *tree.Node, rules scope) error {
	name, inner, err := w.enter(ctx, dir, n, rules)
	if err != nil || name == "" {
		return err
	}
	defer inner.leave(ctx)
	id, known := w.keyOf('s', name, []*tree.Node{n})
	if at, ok := w.before.spanAt[id]; known && ok {
		return w.takeSpan(at)
	}
	parts, spans := len(w.Parts), len(w.Spans)
	if err := w.folder(ctx, name, n, inner); err != nil || !known {
		return err
	}
	w.Spans = append(w.Spans, span{Key: id, First: parts, Parts: len(w.Parts) - parts, Nested: len(w.Spans) - spans})
	return nil
}

// takeSpan takes all parts of a folder, and what is known about the folders in it.
func (w *writer) takeSpan(at int) error {
	found, first := w.before.Spans[at], len(w.Parts)
	for _, inside := range w.before.Spans[at-found.Nested : at+1] {
		inside.First += first - found.First
		w.Spans = append(w.Spans, inside)
	}
	return w.takeParts(found.First, found.Parts)
}

func (w *writer) takeParts(first, parts int) error {
	for _, p := range w.before.Parts[first : first+parts] {
		if err := w.count(p.Entries, p.Bytes); err != nil {
			return err
		}
	}
	return w.take(w.before, first, parts)
}

// run writes entries in a row, which are one part: of a folder that has parts of its own nothing but its header.
func (w *writer) run(ctx context.Context, dir string, entries []*tree.Node, rules scope) error {
	id, known := w.keyOf('p', dir, entries)
	if at, ok := w.before.partAt[id]; known && ok {
		return w.takeParts(at, 1)
	}
	files, bytes := w.files, w.bytes
	for _, entry := range entries {
		if err := w.entry(ctx, dir, entry, rules); err != nil {
			return err
		}
	}
	if err := w.tar.Flush(); err != nil {
		return fmt.Errorf("archive %q: %w", dir, err)
	}
	if known {
		w.now.Key = id
	}
	w.now.Entries, w.now.Bytes = w.files-files, w.bytes-bytes
	return w.end()
}

func (w *writer) entry(ctx context.Context, dir string, n *tree.Node, rules scope) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch {
	case n.Mode.IsDir():
		return w.branch(ctx, dir, n, rules)
	case n.Mode.IsRegular():
		return w.file(ctx, dir, n, rules)
	}
	return nil
}

// branch writes a folder's header, and its contents unless they have parts of their own.
func (w *writer) branch(ctx context.Context, dir string, n *tree.Node, rules scope) error {
	name, inner, err := w.enter(ctx, dir, n, rules)
	if err != nil || name == "" {
		return err
	}
	defer inner.leave(ctx)
	if !inner.excluded {
		if err := w.count(1, 0); err != nil {
			return err
		}
		if err := w.header(tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: folderMode}); err != nil {
			return err
		}
	}
	if facts, err := n.Facts(); err != nil || isApart(n, facts) {
		return err
	}
	entries, err := w.list(ctx, name, n)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := w.entry(ctx, name, entry, inner); err != nil {
			return err
		}
	}
	return nil
}

// enter gives the path of a folder and the rules in it; no path where nothing of it belongs in the archive.
func (w *writer) enter(ctx context.Context, dir string, n *tree.Node, rules scope) (name string, inner scope, err error) {
	if inner, err = rules.enter(ctx, n.Name); err != nil {
		return "", inner, err
	}
	if inner.excluded && !inner.mayInclude() {
		inner.leave(ctx)
		return "", inner, nil
	}
	if name, err = w.join(dir, n.Name); err != nil {
		inner.leave(ctx)
		return "", inner, err
	}
	return name, inner, nil
}

func (w *writer) file(ctx context.Context, dir string, n *tree.Node, rules scope) error {
	if excluded, err := rules.excludes(ctx, n.Name); err != nil || excluded {
		return err
	}
	name, err := w.join(dir, n.Name)
	if err != nil {
		return err
	}
	if n.Size < 0 {
		return fmt.Errorf("archive %q: it is no regular file any more", name)
	}
	if err := w.count(1, n.Size); err != nil {
		return err
	}
	if err := w.header(tar.Header{Typeflag: tar.TypeReg, Name: name, Size: n.Size, Mode: int64(normalMode(n.Mode))}); err != nil {
		return err
	}
	return w.body(ctx, name, n)
}

// count adds what is going to be written, if it may be.
func (w *writer) count(files, bytes int64) error {
	if w.files += files; w.files > int64(w.limits.MaxFiles) {
		return fmt.Errorf("%w: more than %d files and folders", ErrLimit, w.limits.MaxFiles)
	}
	if bytes > w.limits.MaxBytes-w.bytes {
		return fmt.Errorf("%w: the files hold more than %d bytes", ErrLimit, w.limits.MaxBytes)
	}
	w.bytes += bytes
	return nil
}

func (w *writer) header(header tar.Header) error {
	if err := w.tar.WriteHeader(&header); err != nil {
		return fmt.Errorf("archive %q: %w", header.Name, err)
	}
	return nil
}

func (w *writer) body(ctx context.Context, name string, n *tree.Node) (err error) {
	file, err := n.Source.Open(n)
	if err != nil {
		return fmt.Errorf("open %q: %w", name, err)
	}
	defer func() {
		if closing := file.Close(); err == nil && closing != nil {
			err = fmt.Errorf("close %q: %w", name, closing)
		}
	}()
	// io.Copy would take a buffer of its own for each file.
	var done int64
	for {
		got, reading := file.Read(w.buffer)
		if done += int64(got); done > n.Size {
			return fmt.Errorf("archive %q: it grew beyond its %d bytes while it was read", name, n.Size)
		}
		if _, err := w.tar.Write(w.buffer[:got]); err != nil {
			return fmt.Errorf("archive %q: %w", name, err)
		}
		if errors.Is(reading, io.EOF) {
			break
		}
		if reading != nil {
			return fmt.Errorf("read %q: %w", name, reading)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if done < n.Size {
		return fmt.Errorf("archive %q: it ended after %d of its %d bytes", name, done, n.Size)
	}
	return nil
}
