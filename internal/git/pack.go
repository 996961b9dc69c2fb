package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/klauspost/compress/zlib"

	"sluice.dev/sluice/internal/memory"
)

// packLimits bound one pack; see Options.
type packLimits struct {
	objects  int
	object   int64
	delta    int64 // bounds objects that take part in deltas, and the deltas themselves
	unpacked int64
}

const (
	// deltaShare is which part of Options.MaxObjectBytes an object that takes part in deltas may have: it is held in
	// memory, with its base and its delta, where others are streamed.
	deltaShare = 4
	// workShare is how many times over a pack may be unpacked while objects are put together from deltas again.
	workShare = 4
	// stepWork is what each delta costs beside its bytes.
	stepWork = 1 << 10
	// maxKeptBases bounds the bases that one pack keeps, maxKeptBase each of them.
	maxKeptBases = 16 << 20
	maxKeptBase  = 4 << 20
)

// noBase stands for "not a delta" and for "no such object".
const noBase = -1

// packed is one object of a pack.
type packed struct {
	data   int64 // where the zlib stream begins
	length int64 // of the zlib stream
	raw    int64 // what the zlib stream inflates to: the object, or the delta
	size   int64 // the object itself
	base   int32 // index of the object that a delta applies to
	depth  int32 // how many deltas there are down to an object that is none
	kind   plumbing.ObjectType
	based  bool // deltas apply to it
	hash   plumbing.Hash
}

// pack gives the objects of a complete pack, and of those before it in the cache. Reading is safe for concurrent use.
type pack struct {
	spool   *spool
	objects []packed
	byHash  []int32 // indexes of objects in the order of their hashes, each hash once
	// kept is how many of the objects, from the first one on, earlier fetches brought: what is read of them is checked, for
	// they lay on a disk meanwhile. When they turn out to be damaged or not complete, forget is called.
	kept    int
	forget  func()
	bases   cache.BufferLRU
	opened  opened
	dir     string // takes large objects while they are open
	drawing sync.Mutex
	drawn   int64  // memory, for as long as the pack is open
	release func() // gives it back
	// drawnBases is what is drawn for bases.
	drawnBases int64
	// work is how many bytes may still be inflated and patched for objects that were unpacked before: a few bytes
	// in a tree can name an object at the end of a long chain, and many entries can name the same one.
	work atomic.Int64
	// readers are reused: an inflater and its buffer take about 60 KiB.
	readers sync.Pool
}

// Close frees the pack.
func (p *pack) Close() error {
	p.opened.close()
	p.release()
	return p.spool.Close()
}

// draw draws memory for as long as the pack is open.
func (p *pack) draw(ctx context.Context, bytes int64) error {
	p.drawing.Lock()
	defer p.drawing.Unlock()
	err := memory.Draw(ctx, bytes)
	if err == nil {
		p.drawn += bytes
	}
	return err
}

// giveBack is for what was drawn and is not needed any more.
func (p *pack) giveBack(ctx context.Context, bytes int64) {
	p.drawing.Lock()
	defer p.drawing.Unlock()
	memory.Return(ctx, bytes)
	p.drawn -= bytes
}

// find returns the object with the hash if it is of the kind.
func (p *pack) find(hash plumbing.Hash, kind plumbing.ObjectType) (int32, error) {
	index, ok := p.lookUp(hash)
	if !ok {
		return noBase, p.blame(0, protocolErrorf("pack lacks %s %s", kind, hash))
	}
	if got := p.objects[index].kind; got != kind {
		return noBase, protocolErrorf("object %s is a %s, not a %s", hash, got, kind)
	}
	return index, nil
}

// lookUp returns the index of the object with the hash.
func (p *pack) lookUp(hash plumbing.Hash) (index int32, ok bool) {
	place, ok := slices.BinarySearchFunc(p.byHash, hash, func(index int32, hash plumbing.Hash) int {
		return bytes.Compare(p.objects[index].hash[:], hash[:])
	})
	if !ok {
		return noBase, false
	}
	return p.byHash[place], true
}

// load returns a whole object, which must not be changed.
func (p *pack) load(ctx context.Context, index int32) (content []byte, err error) {
	err = p.with(ctx, index, func(whole []byte) error {
		content = whole
		return nil
	})
	return content, err
}

// with hands over an object, and draws the memory for what it is made of.
func (p *pack) with(ctx context.Context, index int32, use func(content []byte) error) error {
	frames := p.frames(index)
	if err := memory.Draw(ctx, frames); err != nil {
		return err
	}
	defer memory.Return(ctx, frames)
	content, err := p.assemble(ctx, index)
	if err == nil {
		err = p.check(index, content)
	}
	if err != nil {
		return err
	}
	return use(content)
}

// frames is how much memory it takes at once to put the object together.
func (p *pack) frames(index int32) int64 {
	var most int64
	for p.objects[index].base != noBase {
		object := &p.objects[index]
		base := &p.objects[object.base]
		most = max(most, base.size+object.raw+object.size)
		index = object.base
	}
	return max(most, p.objects[index].size)
}

// assemble puts an object together, from the nearest base that is kept. The caller has seen to it that there is room.
func (p *pack) assemble(ctx context.Context, index int32) ([]byte, error) {
	var chain []int32
	content, found := p.bases.Get(int64(index))
	for !found && p.objects[index].base != noBase {
		chain = append(chain, index)
		index = p.objects[index].base
		content, found = p.bases.Get(int64(index))
	}
	var err error
	if !found {
		if err := p.spend(ctx, p.objects[index].raw); err != nil {
			return nil, err
		}
		if content, err = p.inflate(index); err != nil {
			return nil, err
		}
		if err := p.keep(ctx, index, content); err != nil {
			return nil, err
		}
	}
	for _, index := range slices.Backward(chain) {
		if err := p.spend(ctx, p.objects[index].raw+p.objects[index].size); err != nil {
			return nil, err
		}
		if content, err = p.apply(content, index); err != nil {
			return nil, err
		}
		if err := p.keep(ctx, index, content); err != nil {
			return nil, err
		}
	}
	return content, nil
}

// spend takes from the work that is left, and stops when the context ends.
func (p *pack) spend(ctx context.Context, bytes int64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.work.Add(-bytes-stepWork) < 0 {
		return limitErrorf("putting objects together from deltas takes more than %d times --git-max-unpacked-bytes", workShare)
	}
	return nil
}

// keep remembers bases: the files of a directory are mostly deltas on each other. What the work of one namespace may not take is
// put together again.
func (p *pack) keep(ctx context.Context, index int32, content []byte) error {
	if !p.objects[index].based || len(content) > maxKeptBase {
		return nil
	}
	err := p.drawBase(ctx, int64(len(content)))
	switch {
	case errors.Is(err, memory.ErrBudget):
		return nil
	case err == nil:
		p.bases.Put(int64(index), content)
	}
	return err
}

// drawBase draws memory for one more base, up to what all may take.
func (p *pack) drawBase(ctx context.Context, bytes int64) error {
	p.drawing.Lock()
	defer p.drawing.Unlock()
	bytes = min(bytes, maxKeptBases-p.drawnBases)
	err := memory.Draw(ctx, bytes)
	if err == nil {
		p.drawn, p.drawnBases = p.drawn+bytes, p.drawnBases+bytes
	}
	return err
}

// apply makes the object from its base.
func (p *pack) apply(base []byte, index int32) ([]byte, error) {
	delta, err := p.inflate(index)
	if err != nil {
		return nil, err
	}
	content, err := patch(base, delta, p.objects[index].size)
	if err != nil {
		return nil, p.blame(index, protocolErrorf("delta at %d: %w", p.objects[index].data, err))
	}
	return content, nil
}

// inflate returns what the object's zlib stream holds.
func (p *pack) inflate(index int32) ([]byte, error) {
	stream, err := p.stream(index)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }() // Reading told whether the data was good.
	content := make([]byte, p.objects[index].raw)
	if _, err := io.ReadFull(stream, content); err != nil {
		return nil, p.blame(index, fmt.Errorf("read object at %d: %w", p.objects[index].data, err))
	}
	return content, nil
}

// open streams an object. One that is a delta is put together first.
func (p *pack) open(ctx context.Context, index int32) (stream io.ReadCloser, err error) {
	if p.objects[index].base == noBase {
		if stream, err = p.stream(index); err == nil && int(index) < p.kept {
			stream = &checkedObject{ReadCloser: stream, pack: p, index: index, sum: p.hasher(index)}
		}
		return stream, err
	}
	if last, ok := p.opened.find(index); ok {
		return last, nil
	}
	err = p.with(ctx, index, func(content []byte) error {
		stream, err = p.opened.keep(ctx, index, content, p.dir)
		return err
	})
	return stream, err
}

func (p *pack) stream(index int32) (io.ReadCloser, error) {
	offset := p.objects[index].data
	r, ok := p.readers.Get().(*inflater)
	if !ok {
		r = &inflater{}
	}
	r.source.reset(p.spool, offset, p.spool.end())
	if err := r.restart(&r.source); err != nil {
		return nil, p.blame(index, fmt.Errorf("read object at %d: %w", offset, err))
	}
	return &object{inflater: r, pool: &p.readers}, nil
}

// inflater is a zlib reader that is used for one stream after the other.
type inflater struct {
	io.ReadCloser
	source cursor
}

func (i *inflater) restart(from io.Reader) (err error) {
	if resetter, ok := i.ReadCloser.(zlib.Resetter); ok {
		return resetter.Reset(from, nil)
	}
	i.ReadCloser, err = zlib.NewReader(from)
	return err
}

// object is the content of one object while it is read. Close gives the inflater back.
type object struct {
	inflater *inflater
	pool     *sync.Pool
}

// Read fails after Close.
func (o *object) Read(p []byte) (int, error) {
	if o.inflater == nil {
		return 0, fs.ErrClosed
	}
	return o.inflater.Read(p)
}

// Close ends the reading.
func (o *object) Close() error {
	if o.inflater == nil {
		return nil
	}
	o.pool.Put(o.inflater)
	o.inflater = nil
	return nil
}
