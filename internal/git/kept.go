package git

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // It names Git's objects.
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/klauspost/compress/zlib"

	"sluice.dev/sluice/internal/memory"
)

const (
	// keptFormat begins the file with the index, and changes whenever its meaning does.
	keptFormat = "SLUICE02"
	keptHeader = len(keptFormat) + keptName + 5*8
	// keptName is how long the name of the data may be.
	keptName = 32
	// keptRecord is what an object takes in the file, keptCost in memory.
	keptRecord = len(plumbing.ZeroHash) + 4*8 + 3*4
	keptCost   = 88
	// maxTips is how many commits are remembered that were fetched one by one.
	maxTips = 16
	// maxChain is how long a chain of deltas becomes over several fetches.
	maxChain = 50
)

// errIndexMemory says that there is no memory to read the index of the cache.
var errIndexMemory = errors.New("read the cache's index")

// errDamaged says that the cache has not what it should have. It has been dropped then.
var errDamaged = errors.New("the cache of the repository was damaged, and has been removed")

// kept is what earlier fetches of a repository brought: one file of data, to which each fetch adds its pack, and an index of
// it, in which the objects are in the order in which they came.
type kept struct {
	data    *os.File
	length  int64 // of what counts of the data; a crash may have left something behind it
	compact int64 // the length after the last compaction
	objects []packed
	byHash  []int32
	remembered

	drawn  int64
	forget func()
}

// remembered are commits that are there without their history, the newest last.
type remembered struct {
	tips []tip
	// crowd are commits that were asked for together with others.
	crowd []member
}

// tip is a commit with all its trees; with all its files, too, unless it is bare.
type tip struct {
	commit plumbing.Hash
	bare   bool
}

// tipRecord is what a tip takes in the file.
const tipRecord = len(plumbing.ZeroHash) + 4

// encoded is how many bytes the index file has.
func (k *kept) encoded() int64 {
	return int64(keptHeader + len(k.objects)*(keptRecord+4) + len(k.tips)*tipRecord + len(k.crowd)*memberRecord + 4)
}

// encode is the content of the index file; name is that of the data file.
func (k *kept) encode(name string) []byte {
	b := make([]byte, keptHeader, k.encoded())
	copy(b, keptFormat)
	copy(b[len(keptFormat):], name)
	for i, n := range []int64{k.length, k.compact, int64(len(k.objects)), int64(len(k.tips)), int64(len(k.crowd))} {
		binary.LittleEndian.PutUint64(b[len(keptFormat)+keptName+8*i:], uint64(n)) //nolint:gosec // Sizes are not negative.
	}
	for i := range k.objects {
		b = k.objects[i].encode(b)
	}
	// Objects that came twice are in no order.
	order := append(make([]int32, 0, len(k.objects)), k.byHash...)
	for len(order) < len(k.objects) {
		order = append(order, noBase)
	}
	for _, index := range order {
		b = binary.LittleEndian.AppendUint32(b, uint32(index)) //nolint:gosec // It comes back as it was.
	}
	for _, t := range k.tips {
		b = append(b, t.commit[:]...)
		b = binary.LittleEndian.AppendUint32(b, flag(t.bare))
	}
	for _, m := range k.crowd {
		b = append(b, m.commit[:]...)
		b = binary.LittleEndian.AppendUint64(b, m.ref)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// encode appends the object's record. What is not negative comes back as it was, and so does what is.
//
//nolint:gosec // See above.
func (o *packed) encode(b []byte) []byte {
	b = append(b, o.hash[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(o.data))
	b = binary.LittleEndian.AppendUint64(b, uint64(o.length))
	b = binary.LittleEndian.AppendUint64(b, uint64(o.raw))
	b = binary.LittleEndian.AppendUint64(b, uint64(o.size))
	b = binary.LittleEndian.AppendUint32(b, uint32(o.base))
	b = binary.LittleEndian.AppendUint32(b, uint32(o.depth))
	return binary.LittleEndian.AppendUint32(b, uint32(o.kind)<<1|flag(o.based))
}

// decode reads a record.
//
//nolint:gosec // See encode.
func (o *packed) decode(b []byte) {
	_ = b[keptRecord-1]
	copy(o.hash[:], b)
	o.data = int64(binary.LittleEndian.Uint64(b[20:]))
	o.length = int64(binary.LittleEndian.Uint64(b[28:]))
	o.raw = int64(binary.LittleEndian.Uint64(b[36:]))
	o.size = int64(binary.LittleEndian.Uint64(b[44:]))
	o.base = int32(binary.LittleEndian.Uint32(b[52:]))
	o.depth = int32(binary.LittleEndian.Uint32(b[56:]))
	kind := binary.LittleEndian.Uint32(b[60:])
	o.kind, o.based = plumbing.ObjectType(kind>>1), kind&1 != 0
}

func flag(is bool) uint32 {
	if is {
		return 1
	}
	return 0
}

// dataName is the name of the data in the beginning of an index; empty without one.
func dataName(b []byte) string {
	if len(b) < keptHeader || string(b[:len(keptFormat)]) != keptFormat {
		return ""
	}
	return string(bytes.TrimRight(b[len(keptFormat):][:keptName], "\x00"))
}

// open reads the index in the folder, and opens the data. Neither the index nor an object has more bytes than allowed.
func (k *kept) open(ctx context.Context, dir string, most, object int64) error {
	index, err := os.Open(filepath.Join(dir, indexFile))
	if err != nil {
		return err
	}
	defer func() { _ = index.Close() }() // It was only read.
	info, err := index.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if size > most {
		return errDamaged
	}
	needed := size + size/int64(keptRecord)*keptCost
	if err := memory.Draw(ctx, needed); err != nil {
		return fmt.Errorf("%w: %w", errIndexMemory, err)
	}
	k.drawn = needed
	content := make([]byte, size)
	if _, err := io.ReadFull(index, content); err != nil {
		return err
	}
	if err := k.decode(content, object); err != nil {
		return err
	}
	memory.Return(ctx, size)
	k.drawn -= size
	if k.data, err = os.Open(filepath.Join(dir, dataName(content))); err != nil {
		return err
	}
	if info, err = k.data.Stat(); err == nil && (info.Size() < k.length || !info.Mode().IsRegular()) {
		err = errDamaged
	}
	return err
}

// decode reads an index of objects that have at most so many bytes.
func (k *kept) decode(b []byte, most int64) error {
	if ok, _ := filepath.Match(dataPattern, dataName(b)); !ok || len(b) < keptHeader+4 {
		return errDamaged
	}
	b, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) != sum {
		return errDamaged
	}
	header, b := b[len(keptFormat)+keptName:], b[keptHeader:]
	long := func(i int) int64 { return int64(binary.LittleEndian.Uint64(header[8*i:])) } //nolint:gosec // It was one.
	k.length, k.compact = long(0), long(1)
	objects, tips, crowd := int(long(2)), int(long(3)), int(long(4))
	bounded := objects >= 0 && objects <= len(b) && tips >= 0 && tips <= maxTips && crowd >= 0 && crowd <= maxCrowd
	if !bounded || len(b) != objects*(keptRecord+4)+tips*tipRecord+crowd*memberRecord {
		return errDamaged
	}
	k.objects, k.byHash = make([]packed, objects), make([]int32, 0, objects)
	for i := range k.objects {
		k.objects[i].decode(b)
		b = b[keptRecord:]
	}
	for i := range objects {
		if index := int32(binary.LittleEndian.Uint32(b[4*i:])); index != noBase { //nolint:gosec // It was one.
			k.byHash = append(k.byHash, index)
		}
	}
	b = b[4*objects:]
	for range tips {
		k.tips = append(k.tips, tip{plumbing.Hash(b[:len(plumbing.ZeroHash)]), binary.LittleEndian.Uint32(b[len(plumbing.ZeroHash):]) != 0})
		b = b[tipRecord:]
	}
	for ; len(b) > 0; b = b[memberRecord:] {
		k.crowd = append(k.crowd, member{plumbing.Hash(b[:len(plumbing.ZeroHash)]), binary.LittleEndian.Uint64(b[len(plumbing.ZeroHash):])})
	}
	return k.validate(most)
}

// validate refuses what cannot be, so that whoever follows it comes to an end and stays within it.
func (k *kept) validate(most int64) error {
	for i := range k.objects {
		o := &k.objects[i]
		known := o.kind >= plumbing.CommitObject && o.kind <= plumbing.TagObject
		inside := o.data >= 0 && o.length >= 0 && o.data <= k.length && o.length <= k.length-o.data
		whole := o.base == noBase && o.depth == 0 && o.raw == o.size
		bounded := min(o.raw, o.size) >= 0 && max(o.raw, o.size) <= most
		if !known || !inside || !bounded || !whole && !k.follows(o) {
			return errDamaged
		}
	}
	for _, index := range k.byHash {
		if index < 0 || int(index) >= len(k.objects) {
			return errDamaged
		}
	}
	return nil
}

// follows tells whether an object is a delta on another, which is nearer to the end of the chain.
func (k *kept) follows(o *packed) bool {
	if o.base < 0 || int(o.base) >= len(k.objects) {
		return false
	}
	base := &k.objects[o.base]
	return o.depth == base.depth+1 && o.kind == base.kind
}

// spool is the data as the beginning of a pack.
func (k *kept) spool() *spool {
	if k == nil {
		return &spool{}
	}
	return &spool{before: k.data, start: k.length}
}

// has tells whether the commit is there with all its files or, where that is enough, with its trees.
func (k *kept) has(commit plumbing.Hash, bare bool) bool {
	if k == nil {
		return false
	}
	isMember := func(m member) bool { return m.commit == commit }
	return slices.Contains(k.tips, tip{commit, false}) || bare && slices.Contains(k.tips, tip{commit, true}) || slices.ContainsFunc(k.crowd, isMember)
}

// haves are the ids of the newest tips that have all their files or, where that is enough, their trees.
func (k *kept) haves(bare bool) (ids []string) {
	if k == nil {
		return nil
	}
	for _, t := range k.tips {
		if bare || !t.bare {
			ids = append(ids, t.commit.String())
		}
	}
	for _, m := range k.crowd[max(0, len(k.crowd)-maxTips):] {
		if id := m.commit.String(); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// close gives up what no pack has taken over.
func (k *kept) close(ctx context.Context) {
	if k != nil {
		memory.Return(ctx, k.drawn)
		_ = k.data.Close() // It was only read, if it was opened.
	}
}

// shorten stores the new objects anew, and not as deltas, that are at the end of long chains: each fetch would add to them
// for as long as a file changes with each commit.
func (x *indexer) shorten(ctx context.Context) error {
	if x.kept == 0 {
		return nil
	}
	deflater := zlib.NewWriter(&adding{ctx, x.spool, x.dir})
	for i := x.kept; i < len(x.objects); i++ {
		object, index := &x.objects[i], int32(i) //nolint:gosec // The number of objects is limited.
		if object.depth <= maxChain {
			continue
		}
		at := x.spool.end()
		err := x.with(ctx, index, func(content []byte) error {
			deflater.Reset(&adding{ctx, x.spool, x.dir})
			_, err := deflater.Write(content)
			return errors.Join(err, deflater.Close())
		})
		if err != nil {
			return fmt.Errorf("keep object: %w", err)
		}
		object.data, object.length, object.raw = at, x.spool.end()-at, object.size
		object.base, object.depth = noBase, 0
	}
	return nil
}

// adding writes to the end of a spool.
type adding struct {
	ctx   context.Context //nolint:containedctx // It is that of one call of shorten.
	spool *spool
	dir   string
}

// Write draws what it takes.
func (a *adding) Write(p []byte) (int, error) { return len(p), a.spool.write(a.ctx, p, a.dir) }

// check compares an object of an earlier fetch with its id.
func (p *pack) check(index int32, content []byte) error {
	if int(index) >= p.kept {
		return nil
	}
	sum := p.hasher(index)
	_, _ = sum.Write(content) // A hash never fails to write.
	return p.compare(index, sum)
}

// hasher names an object. Whether it was made to collide with another has been looked into when it came.
func (p *pack) hasher(index int32) hash.Hash {
	sum := sha1.New() //nolint:gosec // It names Git's objects.
	object := &p.objects[index]
	_, _ = io.WriteString(sum, object.kind.String()+" "+strconv.FormatInt(object.size, 10)+"\x00")
	return sum
}

func (p *pack) compare(index int32, sum hash.Hash) error {
	if plumbing.Hash(sum.Sum(nil)) == p.objects[index].hash {
		return nil
	}
	return p.blame(index, protocolErrorf("object %s is another one", p.objects[index].hash))
}

// blame forgets what earlier fetches brought when something is wrong with an object of theirs, so that the next one begins anew.
func (p *pack) blame(index int32, err error) error {
	if int(index) >= p.kept || errors.Is(err, fs.ErrClosed) {
		return err
	}
	p.forget()
	return fmt.Errorf("%w: %w", errDamaged, err)
}

// checkedObject is an object of an earlier fetch, which is compared with its id while it is read.
type checkedObject struct {
	io.ReadCloser
	pack  *pack
	index int32
	sum   hash.Hash
}

// Read returns errDamaged at the end of an object that is another one.
func (c *checkedObject) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	_, _ = c.sum.Write(b[:n]) // A hash never fails to write.
	switch {
	case errors.Is(err, io.EOF):
		if damaged := c.pack.compare(c.index, c.sum); damaged != nil {
			return n, damaged
		}
	case err != nil:
		err = c.pack.blame(c.index, err)
	}
	return n, err
}
