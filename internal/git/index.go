package git

import (
	"bufio"
	"bytes"
	"context"
	"crypto"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/hash"

	"sluice.dev/sluice/internal/memory"
)

const (
	packHeader  = 12
	packTrailer = 20
	// maxDeltaDepth is the longest chain of deltas that Git itself writes.
	maxDeltaDepth = 4095
	cursorBuffer  = 16 << 10
	// entryCost is what one object takes in memory as long as its pack is open, whatever it is.
	entryCost = 200
)

// cursor reads a pack from an offset on and knows where it is.
type cursor struct {
	buffer   *bufio.Reader
	position int64
}

// reset starts at the offset.
func (c *cursor) reset(in io.ReaderAt, from, to int64) {
	section := io.NewSectionReader(in, from, to-from)
	c.position = from
	if c.buffer == nil {
		c.buffer = bufio.NewReaderSize(section, cursorBuffer)
		return
	}
	c.buffer.Reset(section)
}

// Read counts what it reads.
func (c *cursor) Read(p []byte) (int, error) {
	n, err := c.buffer.Read(p)
	c.position += int64(n)
	return n, err
}

// ReadByte lets the inflater stop exactly at the end of its stream.
func (c *cursor) ReadByte() (byte, error) {
	b, err := c.buffer.ReadByte()
	if err == nil {
		c.position++
	}
	return b, err
}

// indexer turns the bytes of a pack into objects with names.
type indexer struct {
	*pack
	limits   packLimits
	unpacked int64
	starts   []int64                   // where each object begins
	children map[int32][]int32         // base → deltas on it
	waiting  map[plumbing.Hash][]int32 // base named by hash → deltas on it
	hashed   int
	inflater inflater
}

// newPack is what earlier fetches brought, as far as the spool has it. Large objects are in the folder while they are read.
// The spool is the pack's from here on.
func newPack(ctx context.Context, s *spool, earlier *kept, limits packLimits, dir string) *pack {
	p := &pack{spool: s, dir: dir}
	if earlier != nil {
		p.objects, p.byHash, p.kept, p.forget = earlier.objects, earlier.byHash, len(earlier.objects), earlier.forget
		p.drawn += earlier.drawn
	}
	p.bases.MaxSize = maxKeptBases
	p.work.Store(workShare * limits.unpacked)
	p.release = sync.OnceFunc(func() {
		p.drawing.Lock()
		defer p.drawing.Unlock()
		memory.Return(ctx, p.drawn+s.drawn)
		memory.ReturnFile(ctx, s.filed)
	})
	return p
}

// index checks what the spool brought and names every object in it. It must be complete: a delta on an object that is
// neither in it nor before it is refused. All limits hold, whatever the pack claims.
func (p *pack) index(ctx context.Context, limits packLimits) error {
	count, err := checkPack(p.spool, limits)
	if err != nil {
		return err
	}
	if err := p.draw(ctx, int64(count)*entryCost); err != nil {
		return fmt.Errorf("index %d objects: %w", count, err)
	}
	x := &indexer{
		pack:     p,
		limits:   limits,
		children: map[int32][]int32{},
		waiting:  map[plumbing.Hash][]int32{},
		hashed:   p.kept,
	}
	if err := x.scan(ctx, count); err != nil {
		return err
	}
	if err := x.resolve(ctx); err != nil {
		return err
	}
	x.sort()
	return nil
}

// sort puts the new objects among those of earlier fetches.
func (x *indexer) sort() {
	fresh := make([]int32, 0, len(x.objects)-x.kept)
	for i := x.kept; i < len(x.objects); i++ {
		fresh = append(fresh, int32(i)) //nolint:gosec // The number of objects is limited.
	}
	compare := func(a, b int32) int { return bytes.Compare(x.objects[a].hash[:], x.objects[b].hash[:]) }
	slices.SortStableFunc(fresh, compare)
	all := make([]int32, 0, len(x.byHash)+len(fresh))
	for earlier := x.byHash; len(earlier)+len(fresh) > 0; {
		if len(fresh) == 0 || len(earlier) > 0 && compare(earlier[0], fresh[0]) <= 0 {
			all, earlier = append(all, earlier[0]), earlier[1:]
		} else {
			all, fresh = append(all, fresh[0]), fresh[1:]
		}
	}
	x.byHash = slices.CompactFunc(all, func(a, b int32) bool { return x.objects[a].hash == x.objects[b].hash })
}

// checkPack verifies header and checksum, and returns the number of objects.
func checkPack(s *spool, limits packLimits) (int, error) {
	if s.size < packHeader+packTrailer {
		return 0, protocolErrorf("pack has only %d bytes", s.size)
	}
	var header [packHeader]byte
	if _, err := s.ReadAt(header[:], s.start); err != nil {
		return 0, fmt.Errorf("read pack: %w", err)
	}
	count, err := countObjects(header[:], limits)
	if err != nil {
		return 0, err
	}
	sum := hash.New(crypto.SHA1)
	if _, err := io.Copy(sum, io.NewSectionReader(s, s.start, s.size-packTrailer)); err != nil {
		return 0, fmt.Errorf("read pack: %w", err)
	}
	var trailer [packTrailer]byte
	if _, err := s.ReadAt(trailer[:], s.end()-packTrailer); err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("read pack: %w", err)
	}
	if [packTrailer]byte(sum.Sum(nil)) != trailer {
		return 0, protocolErrorf("pack does not match its checksum")
	}
	return count, nil
}

// countObjects reads the header of a pack.
func countObjects(header []byte, limits packLimits) (int, error) {
	version := binary.BigEndian.Uint32(header[4:])
	if string(header[:4]) != "PACK" || version != 2 && version != 3 {
		return 0, protocolErrorf("no pack of version 2 or 3")
	}
	count := binary.BigEndian.Uint32(header[8:])
	if int64(count) > int64(limits.objects) {
		return 0, limitErrorf("pack holds %d objects, more than %d", count, limits.objects)
	}
	return int(count), nil
}

// scan reads through the pack once and hashes the objects that are no deltas.
func (x *indexer) scan(ctx context.Context, count int) error {
	end := x.spool.end() - packTrailer
	in := &x.inflater.source
	in.reset(x.spool, x.spool.start+packHeader, end)
	buffer := make([]byte, 32<<10)
	for range count {
		if err := ctx.Err(); err != nil {
			return err
		}
		start := in.position
		if err := x.scanObject(in, buffer); err != nil {
			if errors.Is(err, ErrLimit) || errors.Is(err, ErrProtocol) {
				return err
			}
			return protocolErrorf("object at %d: %w", start, err)
		}
	}
	if in.position != end {
		return protocolErrorf("pack goes on after its last object")
	}
	return nil
}

// scanObject reads one entry, see gitformat-pack(5).
func (x *indexer) scanObject(in *cursor, buffer []byte) error {
	start := in.position
	kind, size, err := readEntryHeader(in)
	if err != nil {
		return err
	}
	object := packed{raw: size, size: size, base: noBase, kind: kind}
	index := int32(len(x.objects)) //nolint:gosec // The number of objects is limited.
	switch kind {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
	case plumbing.OFSDeltaObject:
		distance, err := readOffset(in)
		if err != nil {
			return err
		}
		place, ok := slices.BinarySearch(x.starts, start-distance)
		if !ok {
			return errors.New("delta on no object")
		}
		base := int32(x.kept + place) //nolint:gosec // The number of objects is limited.
		x.children[base] = append(x.children[base], index)
	case plumbing.REFDeltaObject:
		var base plumbing.Hash
		if _, err := io.ReadFull(in, base[:]); err != nil {
			return err
		}
		x.waiting[base] = append(x.waiting[base], index)
	default:
		return fmt.Errorf("unknown kind %d", kind)
	}
	object.data = in.position
	if err := x.account(size); err != nil {
		return err
	}
	if kind.IsDelta() && size > x.limits.delta {
		return x.tooLargeForDeltas()
	}
	if err := x.inflateEntry(in, &object, buffer); err != nil {
		return err
	}
	object.length = in.position - object.data
	if kind.IsDelta() && object.size > x.limits.delta {
		return x.tooLargeForDeltas()
	}
	x.starts = append(x.starts, start)
	x.objects = append(x.objects, object)
	if !kind.IsDelta() {
		x.hashed++
	}
	return nil
}

// account refuses an object before it is inflated.
func (x *indexer) account(size int64) error {
	if size < 0 || size > x.limits.object {
		return limitErrorf("an object is larger than the %d bytes of --git-max-object-bytes", x.limits.object)
	}
	if x.unpacked += size; x.unpacked > x.limits.unpacked {
		return limitErrorf("objects are larger together than the %d bytes of --git-max-unpacked-bytes", x.limits.unpacked)
	}
	return nil
}

// tooLargeForDeltas refuses what would have to be held in memory.
func (x *indexer) tooLargeForDeltas() error {
	return limitErrorf("a delta, its base or its result is larger than %d bytes, a quarter of --git-max-object-bytes", x.limits.delta)
}

// inflateEntry reads the zlib stream to its end: hashes an object, or learns from a delta how large its result is.
func (x *indexer) inflateEntry(in *cursor, object *packed, buffer []byte) error {
	if err := x.inflater.restart(in); err != nil {
		return err
	}
	var sink io.Writer
	var hasher plumbing.Hasher
	var head deltaHead
	if object.kind.IsDelta() {
		sink = &head
	} else {
		hasher = plumbing.NewHasher(object.kind, object.size)
		sink = hasher
	}
	// One byte more than announced, to notice it; the read that finds the end verifies zlib's checksum.
	n, err := io.CopyBuffer(sink, io.LimitReader(&x.inflater, object.raw+1), buffer)
	if err != nil {
		return err
	}
	if n != object.raw {
		return errors.New("object does not have the announced size")
	}
	if object.kind.IsDelta() {
		object.size, err = head.resultSize()
		return err
	}
	object.hash, err = finish(hasher)
	return err
}

// finish names an object, unless it was made to collide with another; see https://shattered.io.
func finish(hasher plumbing.Hasher) (plumbing.Hash, error) {
	if resistant, ok := hasher.Hash.(interface {
		CollisionResistantSum(in []byte) ([]byte, bool)
	}); ok {
		if _, collision := resistant.CollisionResistantSum(nil); collision {
			return plumbing.ZeroHash, errors.New("object is part of a SHA-1 collision attack")
		}
	}
	return hasher.Sum(), nil
}
