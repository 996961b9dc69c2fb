package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"

	"sluice.dev/sluice/internal/memory"
)

// memoryPack is the size up to which a pack stays in memory, if there is room.
const memoryPack = 8 << 20

// growing is how many times its length a slice takes at most that is appended to.
const growing = 2

// spool keeps what a fetch brought while it is in use, behind what earlier fetches did: a small pack in memory, a larger
// one in a file without a name, so that a killed process leaves nothing behind. A file that may become the cache's has a
// name; the cache sweeps what it does not know.
type spool struct {
	before *os.File // of earlier fetches; nil without any
	start  int64    // where they end
	memory []byte
	drawn  int64 // for it
	file   *os.File
	filed  int64 // drawn for the file
	named  bool  // the file has a name
	size   int64 // of what this fetch brought
	closed atomic.Bool
}

// fill reads the whole pack, at most limit bytes of it.
func (s *spool) fill(ctx context.Context, in io.Reader, dir string, limit int64) error {
	buffer := make([]byte, maxPacket)
	for {
		n, err := in.Read(buffer)
		if s.size+int64(n) > limit {
			return limitErrorf("pack is larger than %d bytes", limit)
		}
		if err := s.write(ctx, buffer[:n], dir); err != nil {
			return fmt.Errorf("keep pack: %w", err)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// end is where everything ends.
func (s *spool) end() int64 { return s.start + s.size }

// write adds to what is there, all or nothing.
func (s *spool) write(ctx context.Context, p []byte, dir string) error {
	size := s.size + int64(len(p))
	if bytes := growing * int64(len(p)); s.file == nil && size <= memoryPack && memory.Draw(ctx, bytes) == nil {
		s.drawn += bytes
		s.memory = append(s.memory, p...)
		s.size = size
		return nil
	}
	if s.file == nil {
		if err := s.drawFile(ctx, int64(len(s.memory))); err != nil {
			return err
		}
		if err := s.spill(dir); err != nil {
			return err
		}
		memory.Return(ctx, s.drawn)
		s.drawn = 0
	}
	if err := s.drawFile(ctx, int64(len(p))); err != nil {
		return err
	}
	_, err := s.file.WriteAt(p, s.size)
	if err == nil {
		s.size = size
	}
	return err
}

// cut takes away what came last, so that so many bytes are left.
func (s *spool) cut(ctx context.Context, size int64) {
	drawn, filed := growing*size, int64(0)
	if s.file == nil {
		s.memory = s.memory[:size]
	} else {
		drawn, filed = 0, size
		_ = s.file.Truncate(size) // What stays behind the end is written over.
	}
	memory.Return(ctx, s.drawn-drawn)
	memory.ReturnFile(ctx, s.filed-filed)
	s.size, s.drawn, s.filed = size, drawn, filed
}

// drawFile draws what is about to be written to the file.
func (s *spool) drawFile(ctx context.Context, bytes int64) error {
	err := memory.DrawFile(ctx, bytes)
	if err == nil {
		s.filed += bytes
	}
	return err
}

// spill moves the pack from memory to a file, which is unlinked at once where the system allows that.
func (s *spool) spill(dir string) error {
	file, err := os.CreateTemp(dir, dataPattern)
	if err != nil {
		return err
	}
	if !s.named {
		err = os.Remove(file.Name())
	}
	if err == nil {
		_, err = file.Write(s.memory)
	}
	if err != nil {
		_ = os.Remove(file.Name()) // It may be gone already.
		return errors.Join(err, file.Close())
	}
	s.file, s.memory = file, nil
	return nil
}

// ReadAt reads what earlier fetches brought and this one; fs.ErrClosed after Close.
func (s *spool) ReadAt(p []byte, offset int64) (n int, err error) {
	if s.closed.Load() {
		return 0, fs.ErrClosed
	}
	if offset < s.start {
		part := p[:min(int64(len(p)), s.start-offset)]
		if n, err = s.before.ReadAt(part, offset); err != nil || len(part) == len(p) {
			return n, err
		}
	}
	var tail io.ReaderAt = s.file
	if s.file == nil {
		tail = bytes.NewReader(s.memory)
	}
	more, err := tail.ReadAt(p[n:], offset+int64(n)-s.start)
	return n + more, err
}

// Close frees what the pack took.
func (s *spool) Close() (err error) {
	if s.closed.Swap(true) {
		return nil
	}
	if s.before != nil {
		err = s.before.Close()
	}
	if s.file == nil {
		return err
	}
	if s.named {
		// The cache may have made room, or may be gone.
		if gone := os.Remove(s.file.Name()); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return errors.Join(err, s.file.Close())
}
