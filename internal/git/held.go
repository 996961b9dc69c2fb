package git

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"sluice.dev/sluice/internal/memory"
)

// held is a repository's folder while one fetch has it. A nil one keeps nothing.
type held struct {
	cache  *objectCache
	folder *folder
	name   string
	dir    string
	full   bool // no pack can be written there
}

// repository names it; empty where nothing is kept.
func (h *held) repository() string {
	if h == nil {
		return ""
	}
	return h.name
}

// release lets the next one in. When the context has ended, upstream may keep that one waiting as well: all who wait go on
// without the cache.
func (h *held) release(ctx context.Context) {
	if h == nil {
		return
	}
	if ctx.Err() != nil {
		h.cache.mu.Lock()
		close(h.folder.gaveUp)
		h.folder.gaveUp = make(chan struct{})
		h.cache.mu.Unlock()
	}
	<-h.folder.busy
	h.leave()
}

// leave counts the folder's use, and makes room for what it has grown by. Nobody else waits for the disk to do that.
func (h *held) leave() {
	c := h.cache
	c.mu.Lock()
	c.turn++
	h.folder.used = c.turn
	c.unuse(h.name, h.folder)
	aside := c.evict()
	c.mu.Unlock()
	for _, path := range aside {
		_ = os.RemoveAll(path) // The next start removes what is left.
	}
}

// tidy removes all data but the one of the name, and counts the rest.
func (h *held) tidy(name string) {
	keepOnly(h.dir, name) // Nobody else waits for the disk to do that.
	h.cache.mu.Lock()
	defer h.cache.mu.Unlock()
	size := keepOnly(h.dir, name)
	h.cache.size += size - h.folder.size
	h.folder.size = size
}

// parts are those of the repository.
func (h *held) parts() *Parts {
	if h == nil {
		return nil
	}
	return &Parts{cache: h.cache, name: h.name}
}

// load opens what earlier fetches brought; nil without anything that can be used. It is the caller's to close. The error is
// that others have the memory that it takes.
func (h *held) load(ctx context.Context) (*kept, error) {
	if h == nil {
		return nil, nil
	}
	k := &kept{forget: h.forget}
	err := k.open(ctx, h.dir, h.cache.max, h.cache.object)
	if err == nil {
		return k, nil
	}
	k.close(ctx)
	if short := errors.Is(err, errIndexMemory) && !errors.Is(err, memory.ErrBudget); short {
		return nil, err
	}
	h.forget() // Whatever it is, it would be the same the next time.
	return nil, nil
}

// forget makes the next fetch begin anew. Who reads what was kept goes on.
func (h *held) forget() { _ = os.RemoveAll(filepath.Join(h.dir, indexFile)) } // It may be gone already.

// trusted tells whether the server may be told what is there.
func (h *held) trusted() bool { return h != nil && h.folder.doubts < maxDoubts }

// doubt forgets all, and counts: a server that leaves out too much is not told for ever what is there.
func (h *held) doubt() {
	h.forget()
	h.folder.doubts++
}

// room is where a pack is written that may be kept, and whether it may.
func (h *held) room(otherwise string) (dir string, ok bool) {
	if h == nil || h.full || os.MkdirAll(h.dir, 0o700) != nil {
		return otherwise, false
	}
	return h.dir, true
}

// keep adds what a fetch brought to what is kept, or takes its place where that was not built upon. The pack can be read on.
func (h *held) keep(ctx context.Context, p *pack, before *kept, t tip) error {
	if h == nil || before.has(t.commit, t.bare) && len(p.objects) == p.kept {
		return nil
	}
	return h.add(ctx, p, before, before.with(t), remembered{tips: []tip{t}})
}

// keepAll is keep for commits that were fetched together, or made here, the first of which are the newest.
func (h *held) keepAll(ctx context.Context, p *pack, before *kept, fresh []member) error {
	if h == nil || len(p.objects) == p.kept && (len(fresh) == 0 || before.knows(fresh)) {
		return nil
	}
	return h.add(ctx, p, before, before.joined(fresh), (*kept)(nil).joined(fresh))
}

// add keeps what a fetch brought, to remember the commits, or those that it brought alone where there is room for no others.
func (h *held) add(ctx context.Context, p *pack, before *kept, all, alone remembered) error {
	next := &kept{length: p.spool.end(), compact: p.spool.end(), objects: p.objects, byHash: p.byHash, remembered: all}
	var name string
	var err error
	switch tooLong := next.length > h.cache.max/share; {
	case before == nil && tooLong:
		return nil
	case before == nil:
		name, err = h.adopt(p.spool)
	default:
		name, next.compact = before.data.Name(), before.compact
		if !tooLong && !next.wasteful() {
			err = appendTo(name, p.spool)
		} else if next, name, err = h.compact(ctx, p, tooLong, all, alone); err == nil && next == nil {
			h.forget()
			h.tidy("")
			return nil
		}
	}
	if err != nil {
		return err
	}
	if err = h.save(ctx, next, filepath.Base(name)); err != nil && (before == nil || name != before.data.Name()) {
		_ = os.Remove(name) // What is left takes room until the next start.
	}
	return err
}

// compact writes anew what all the commits need or, where that is too much, those alone that a fetch brought. It returns nil
// where that is too much as well.
func (h *held) compact(ctx context.Context, p *pack, tooLong bool, all, alone remembered) (*kept, string, error) {
	room := h.cache.max / share
	most := room
	if tooLong {
		most -= room / 4 // Or the next fetches would have to do it again.
	}
	next, name, err := (&kept{remembered: all}).compacted(ctx, p, h.dir, most)
	if errors.Is(err, errIncomplete) || err == nil && next == nil {
		return (&kept{remembered: alone}).compacted(ctx, p, h.dir, room)
	}
	return next, name, err
}

// adopt makes a pack the data of the folder.
func (h *held) adopt(s *spool) (name string, err error) {
	if s.file != nil && s.named {
		s.named = false
		return s.file.Name(), nil
	}
	file, err := os.CreateTemp(h.dir, dataPattern)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(file, io.NewSectionReader(s, s.start, s.size))
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(file.Name()) // What is left takes room until the next start.
	}
	return file.Name(), err
}

// appendTo adds what a fetch brought to the data, in the place of what a crash left there.
func appendTo(name string, s *spool) error {
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.NewOffsetWriter(file, s.start), io.NewSectionReader(s, s.start, s.size))
	return errors.Join(err, file.Close())
}

// save makes the index the folder's, in one step, and removes the data of the one before.
func (h *held) save(ctx context.Context, k *kept, name string) error {
	if err := memory.Draw(ctx, k.encoded()); err != nil {
		return err
	}
	defer memory.Return(ctx, k.encoded())
	aside := filepath.Join(h.dir, asideFile)
	if err := os.WriteFile(aside, k.encode(name), 0o600); err != nil {
		return err
	}
	if err := os.Rename(aside, filepath.Join(h.dir, indexFile)); err != nil {
		return err
	}
	h.tidy(name)
	return nil
}
