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

// spool keeps a pack while it is in use: a small one in memory, a larger one in a file without a name, so that a
// killed process leaves nothing behind.
type spool struct {
	memory []byte
	drawn  int64 // for it
	file   *os.File
	filed  int64 // drawn for the file
	size   int64
	closed atomic.Bool
}

// fillSpool reads the whole pack, at most limit bytes of it.
func fillSpool(ctx context.Context, in io.Reader, dir string, limit int64) (s *spool, err error) {
	s = &spool{}
	defer func() {
		if err != nil {
			memory.Return(ctx, s.drawn)
			memory.ReturnFile(ctx, s.filed)
			_ = s.Close() // What matters is why the pack is of no use.
		}
	}()
	buffer := make([]byte, maxPacket)
	for {
		n, err := in.Read(buffer)
		if s.size+int64(n) > limit {
			return s, limitErrorf("pack is larger than %d bytes", limit)
		}
		if err := s.write(ctx, buffer[:n], dir); err != nil {
			return s, fmt.Errorf("keep pack: %w", err)
		}
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return s, err
		}
	}
}

func (s *spool) write(ctx context.Context, p []byte, dir string) error {
	s.size += int64(len(p))
	if bytes := growing * int64(len(p)); s.file == nil && s.size <= memoryPack && memory.Draw(ctx, bytes) == nil {
		s.drawn += bytes
		s.memory = append(s.memory, p...)
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
	_, err := s.file.Write(p)
	return err
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
	file, err := os.CreateTemp(dir, "sluice-pack-*")
	if err != nil {
		return err
	}
	s.file = file
	if err := os.Remove(file.Name()); err != nil {
		return err
	}
	if _, err := file.Write(s.memory); err != nil {
		return err
	}
	s.memory = nil
	return nil
}

// ReadAt reads from the pack; fs.ErrClosed after Close.
func (s *spool) ReadAt(p []byte, offset int64) (int, error) {
	if s.closed.Load() {
		return 0, fs.ErrClosed
	}
	if s.file != nil {
		return s.file.ReadAt(p, offset)
	}
	return bytes.NewReader(s.memory).ReadAt(p, offset)
}

// Close frees what the pack took.
func (s *spool) Close() error {
	if s.closed.Swap(true) || s.file == nil {
		return nil
	}
	return s.file.Close()
}
