package git

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"sluice.dev/sluice/internal/memory"
)

// largeObject is the size up to which an object stays in memory while it is open.
const largeObject = 1 << 20

// opened keeps the object that was put together from deltas last, because a tree may name one object many times.
// Large ones are kept in a file, not in memory.
type opened struct {
	mu     sync.Mutex
	last   *shared
	closed bool
}

// shared is an object and those who read it.
type shared struct {
	*spool
	index   int32
	users   int
	release func() // gives back what was drawn for its file
}

// find opens the object if it is the last one.
func (o *opened) find(index int32) (io.ReadCloser, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil || o.last.index != index {
		return nil, false
	}
	return o.reader(o.last), true
}

// keep remembers the object in place of the last one, and opens it.
func (o *opened) keep(ctx context.Context, index int32, content []byte, dir string) (io.ReadCloser, error) {
	s := &spool{memory: content, size: int64(len(content))}
	release := func() { memory.ReturnFile(ctx, s.filed) }
	if len(content) > largeObject {
		err := s.drawFile(ctx, s.size)
		if err == nil {
			err = s.spill(dir)
		}
		if err != nil {
			_ = s.Close() // What matters is why it cannot be kept.
			release()
			return nil, fmt.Errorf("keep object: %w", err)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drop()
	now := &shared{spool: s, index: index, release: release}
	if !o.closed {
		o.last = now
	}
	return o.reader(now), nil
}

// close forgets the last object, and ends the reading of all others.
func (o *opened) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.drop()
}

func (o *opened) isClosed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}

// drop forgets the last object.
func (o *opened) drop() {
	last := o.last
	o.last = nil
	o.free(last)
}

// free closes an object that nobody reads or will open again.
func (o *opened) free(s *shared) {
	if s != nil && s != o.last && s.users == 0 {
		_ = s.Close() // It was only read.
		s.release()
	}
}

func (o *opened) reader(s *shared) io.ReadCloser {
	s.users++
	return &sharedReader{opened: o, shared: s, content: io.NewSectionReader(s, 0, s.size)}
}

// sharedReader reads a shared object.
type sharedReader struct {
	opened  *opened
	shared  *shared
	content *io.SectionReader
	left    bool
}

// Read fails after Close, and when the pack was closed.
func (r *sharedReader) Read(p []byte) (int, error) {
	if r.left || r.opened.isClosed() {
		return 0, fs.ErrClosed
	}
	return r.content.Read(p)
}

// Close ends the reading.
func (r *sharedReader) Close() error {
	if r.left {
		return nil
	}
	r.left = true
	r.opened.mu.Lock()
	defer r.opened.mu.Unlock()
	r.shared.users--
	r.opened.free(r.shared)
	return nil
}
