package git

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/klauspost/compress/zlib"

	"sluice.dev/sluice/internal/memory"
)

// editCost is what each byte of a tree comes to that is edited: itself, its entries by their names, and what is written in its
// place.
const editCost = 8

// read returns a commit or a tree, wherever it is. The memory is drawn for both to be taken apart, until all is forgotten.
func (o *Objects) read(ctx context.Context, hash plumbing.Hash, kind plumbing.ObjectType) (content []byte, err error) {
	from, index := o.fresh, int32(noBase)
	if place, ok := o.places[hash]; ok {
		index = place
	}
	for i := 0; i < len(o.bases) && index == noBase; i++ {
		if place, ok := o.bases[i].lookUp(hash); ok {
			from, index = o.bases[i].pack, place
		}
	}
	if index == noBase {
		return nil, fmt.Errorf("%s %s: %w", kind, hash, errIncomplete)
	}
	switch object := &from.objects[index]; {
	case object.kind != kind:
		return nil, protocolErrorf("object %s is a %s, not a %s", hash, object.kind, kind)
	case object.size > maxMetaBytes:
		return nil, limitErrorf("%s %s is larger than %d bytes", kind, hash, maxMetaBytes)
	}
	if err := o.hold(ctx, editCost*from.objects[index].size); err != nil {
		return nil, err
	}
	return from.load(ctx, index)
}

// hold draws memory until all is forgotten.
func (o *Objects) hold(ctx context.Context, bytes int64) error {
	err := memory.Draw(ctx, bytes)
	if err == nil {
		o.held += bytes
	}
	return err
}

// forget gives back what was drawn for trees and commits that were read.
func (o *Objects) forget(ctx context.Context) {
	memory.Return(ctx, o.held)
	o.held = 0
}

// isThere tells whether the server has the object, or gets it from here.
func (o *Objects) isThere(ctx context.Context, hash plumbing.Hash) (bool, error) {
	if _, ok := o.places[hash]; ok {
		return true, nil
	}
	for _, b := range o.bases {
		index, ok := b.lookUp(hash)
		if !ok {
			continue
		}
		if err := b.walk(ctx); err != nil {
			return false, err
		}
		if b.reached[index] {
			return true, nil
		}
	}
	return false, nil
}

// walk marks what the commits lead to, once.
func (b *basis) walk(ctx context.Context) error {
	if b.reached == nil {
		b.reached = make([]bool, len(b.objects))
	}
	for ; b.unwalked < len(b.commits); b.unwalked++ {
		if err := b.mark(ctx, tip{b.commits[b.unwalked], true}, 0, b.reached); err != nil {
			return err
		}
	}
	return nil
}

// store adds an object unless it is there, and returns its id. Of the known ids it need not be found out.
func (o *Objects) store(ctx context.Context, kind plumbing.ObjectType, content []byte, known ...plumbing.Hash) (plumbing.Hash, error) {
	size := int64(len(content))
	hasher := plumbing.NewHasher(kind, size)
	_, _ = hasher.Write(content) // A hash never fails to write.
	hash, err := finish(hasher)
	if err != nil {
		return hash, err
	}
	if slices.Contains(known, hash) {
		return hash, nil
	}
	if there, err := o.isThere(ctx, hash); there || err != nil {
		return hash, err
	}
	if err := o.admit(kind, size); err != nil {
		return hash, err
	}
	if err := o.fresh.draw(ctx, entryCost); err != nil {
		return hash, err
	}
	at := o.fresh.spool.end()
	if err := o.deflate(ctx, content); err != nil {
		return hash, fmt.Errorf("keep object: %w", err)
	}
	o.places[hash] = int32(len(o.fresh.objects)) //nolint:gosec // The number of objects is limited.
	o.fresh.objects = append(o.fresh.objects, packed{
		data: at, length: o.fresh.spool.end() - at, raw: size, size: size, base: noBase, kind: kind, hash: hash,
	})
	return hash, nil
}

// moment is how far the new objects had come.
type moment struct {
	objects               int
	unpacked, size, drawn int64
}

func (o *Objects) now() moment {
	return moment{len(o.fresh.objects), o.unpacked, o.fresh.spool.size, o.fresh.drawn}
}

// undo forgets what was stored since then: what one commit is refused for must not be in the way of the next.
func (o *Objects) undo(ctx context.Context, to moment) {
	for _, object := range o.fresh.objects[to.objects:] {
		delete(o.places, object.hash)
	}
	o.fresh.objects, o.unpacked = o.fresh.objects[:to.objects], to.unpacked
	o.fresh.giveBack(ctx, o.fresh.drawn-to.drawn)
	o.fresh.spool.cut(ctx, to.size)
}

// admit refuses what would not be fetched again.
func (o *Objects) admit(kind plumbing.ObjectType, size int64) error {
	o.unpacked += size
	switch {
	case kind != plumbing.BlobObject && size > maxMetaBytes:
		return limitErrorf("a %s is larger than %d bytes", kind, maxMetaBytes)
	case size > o.limits.object:
		return limitErrorf("an object is larger than the %d bytes of --git-max-object-bytes", o.limits.object)
	case o.unpacked > o.limits.unpacked:
		return limitErrorf("objects are larger together than the %d bytes of --git-max-unpacked-bytes", o.limits.unpacked)
	case len(o.fresh.objects) >= o.limits.objects:
		return limitErrorf("there are more than %d new objects", o.limits.objects)
	case o.fresh.spool.size > o.options.MaxPackBytes:
		return limitErrorf("new objects take more than the %d bytes of --git-max-pack-bytes", o.options.MaxPackBytes)
	}
	return nil
}

func (o *Objects) deflate(ctx context.Context, content []byte) error {
	to := &adding{ctx, o.fresh.spool, o.fresh.dir}
	if o.deflater == nil {
		o.deflater = zlib.NewWriter(to)
	} else {
		o.deflater.Reset(to)
	}
	if _, err := o.deflater.Write(content); err != nil {
		return err
	}
	return o.deflater.Close()
}
