package archive

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"sluice.dev/sluice/internal/memory"
)

// writeCost is what the compressor and the buffers of one archive take.
const writeCost = 1 << 20

// Write archives what the rules leave of the tree to dst, as a tar.gz. Nil rules are the default exclusions.
//
// The bytes depend on the names, contents and executable bits of files and folders only, and equal those that
// Flux's source-controller makes of the same tree: entries in the order of filepath.Walk, the root first as ".",
// folders without a trailing slash, links and devices left out, owner and times zero. A folder that is excluded
// has no entry of its own even if something beneath it is not.
//
// The error is ErrLimit when the archive or the work of matching rules would exceed a limit and ErrUnsafe when the tree names an entry twice or
// by something that is no file name. What dst has got by then is of no use.
func Write(ctx context.Context, dst io.Writer, tree fs.FS, rules *Rules, limits Limits) error {
	if err := memory.Draw(ctx, writeCost); err != nil {
		return err
	}
	defer memory.Return(ctx, writeCost)
	// The compressor hands on a few hundred bytes at a time, which would each be a system call.
	out := bufio.NewWriterSize(dst, bufferSize)
	packed := gzip.NewWriter(out)
	w := &writer{
		walk:   walk{tree: tree, limits: limits.orDefault()},
		tar:    tar.NewWriter(packed),
		buffer: make([]byte, bufferSize),
	}
	if err := w.header(tar.Header{Typeflag: tar.TypeDir, Name: root, Mode: folderMode}); err != nil {
		return err
	}
	matching := &budget{left: w.limits.MaxMatch, limit: w.limits.MaxMatch}
	if err := w.folder(ctx, root, rules.scope(matching)); err != nil {
		return err
	}
	for _, finish := range []func() error{w.tar.Close, packed.Close, out.Flush} {
		if err := finish(); err != nil {
			return fmt.Errorf("finish archive: %w", err)
		}
	}
	return nil
}

type writer struct {
	walk
	tar    *tar.Writer
	buffer []byte
	files  int
	bytes  int64
}

func (w *writer) folder(ctx context.Context, dir string, rules scope) error {
	entries, err := w.list(ctx, dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch {
		case entry.IsDir():
			err = w.subfolder(ctx, dir, entry.Name(), rules)
		case entry.Type().IsRegular():
			err = w.file(ctx, dir, entry, rules)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) subfolder(ctx context.Context, dir, name string, rules scope) error {
	rules, err := rules.enter(ctx, name)
	if err != nil {
		return err
	}
	defer rules.leave(ctx)
	if rules.excluded && !rules.mayInclude() {
		return nil
	}
	name, err = w.join(dir, name)
	if err != nil {
		return err
	}
	if !rules.excluded {
		if err := w.add(tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: folderMode}); err != nil {
			return err
		}
	}
	return w.folder(ctx, name, rules)
}

func (w *writer) file(ctx context.Context, dir string, entry fs.DirEntry, rules scope) error {
	if excluded, err := rules.excludes(ctx, entry.Name()); err != nil || excluded {
		return err
	}
	name, err := w.join(dir, entry.Name())
	if err != nil {
		return err
	}
	info, err := entry.Info()
	if err != nil {
		return fmt.Errorf("stat %q: %w", name, err)
	}
	if !info.Mode().IsRegular() || info.Size() < 0 {
		return fmt.Errorf("archive %q: it is no regular file any more", name)
	}
	if info.Size() > w.limits.MaxBytes-w.bytes {
		return fmt.Errorf("%w: with %q the files hold more than %d bytes", ErrLimit, name, w.limits.MaxBytes)
	}
	w.bytes += info.Size()
	mode := int64(normalMode(info.Mode()))
	if err := w.add(tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: mode}); err != nil {
		return err
	}
	return w.body(ctx, name, info.Size())
}

func (w *writer) add(header tar.Header) error {
	if w.files++; w.files > w.limits.MaxFiles {
		return fmt.Errorf("%w: more than %d files and folders", ErrLimit, w.limits.MaxFiles)
	}
	return w.header(header)
}

func (w *writer) header(header tar.Header) error {
	if err := w.tar.WriteHeader(&header); err != nil {
		return fmt.Errorf("archive %q: %w", header.Name, err)
	}
	return nil
}

func (w *writer) body(ctx context.Context, name string, size int64) (err error) {
	file, err := w.tree.Open(name)
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
		n, reading := file.Read(w.buffer)
		if done += int64(n); done > size {
			return fmt.Errorf("archive %q: it grew beyond its %d bytes while it was read", name, size)
		}
		if _, err := w.tar.Write(w.buffer[:n]); err != nil {
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
	if done < size {
		return fmt.Errorf("archive %q: it ended after %d of its %d bytes", name, done, size)
	}
	return nil
}
