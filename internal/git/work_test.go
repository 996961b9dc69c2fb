package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/hashicorp/golang-lru/v2"

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/memory"
)

// uncached is the size of a base that is not kept.
const uncached = maxKeptBase + 1

// chained is a pack with a chain of deltas that are not kept, and small ones at its end.
func chained(t *testing.T, length int, ends ...string) []byte {
	t.Helper()
	w := &packWriter{t: t}
	w.blob(strings.Repeat("\x00", uncached))
	for i := range length {
		w.offsetDelta(i, same(uncached, byte(i+1)))
	}
	for _, end := range ends {
		w.offsetDelta(length, word(uncached, end))
	}
	return w.bytes()
}

func openAll(ctx context.Context, p *pack, index int32) (string, error) {
	stream, err := p.open(ctx, index)
	if err != nil {
		return "", err
	}
	content, err := io.ReadAll(stream)
	return string(content), errors.Join(err, stream.Close())
}

// TestSmallFilesFromLongChainsAreNotFree: a tree may name an object many times, and each time costs the whole chain.
func TestSmallFilesFromLongChainsAreNotFree(t *testing.T) {
	t.Parallel()
	limits := packLimits{objects: 10, object: uncached, delta: uncached, unpacked: 5 * uncached}
	p, err := indexWithin(t.Context(), chained(t, 3, "first", "second"), limits)
	if err != nil {
		t.Fatal(err)
	}
	first, second := lookUp(t, p, "first"), lookUp(t, p, "second")
	if got, err := openAll(t.Context(), p, first); err != nil || got != "first" {
		t.Fatalf("first: %q, %v", got, err)
	}
	left := p.work.Load()
	for range 1000 {
		if got, err := openAll(t.Context(), p, first); err != nil || got != "first" {
			t.Fatalf("first again: %q, %v", got, err)
		}
	}
	if now := p.work.Load(); now != left {
		t.Errorf("opening the same object again took %d bytes of work", left-now)
	}
	opened := 0
	for err == nil {
		if opened++; opened > 100 {
			t.Fatal("work has no end")
		}
		if _, err = openAll(t.Context(), p, second); err == nil {
			_, err = openAll(t.Context(), p, first)
		}
	}
	if !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "--git-max-unpacked-bytes") {
		t.Errorf("want %v, got %v", ErrLimit, err)
	}
}

// TestLeavesAreResolvedFirst: with the leaf resolved before the chain goes on, no base is needed twice.
func TestLeavesAreResolvedFirst(t *testing.T) {
	t.Parallel()
	w := &packWriter{t: t}
	w.blob(strings.Repeat("\x00", uncached))
	last := 0
	for i := range 10 {
		w.offsetDelta(last, word(uncached, fmt.Sprint("before ", i)))
		w.offsetDelta(last, same(uncached, byte(i+1)))
		next := len(w.offsets) - 1
		w.offsetDelta(last, word(uncached, fmt.Sprint("after ", i)))
		last = next
	}
	limits := packLimits{objects: 100, object: uncached, delta: uncached, unpacked: 1 << 30}
	p, err := indexWithin(t.Context(), w.bytes(), limits)
	if err != nil {
		t.Fatal(err)
	}
	if spent := workShare*limits.unpacked - p.work.Load(); spent != uncached+stepWork {
		t.Errorf("more was unpacked again than the first base: %d bytes", spent)
	}
}

// TestForksAreNotFree: where several long chains leave each base, bases are needed again, and that is bounded.
func TestForksAreNotFree(t *testing.T) {
	t.Parallel()
	w := &packWriter{t: t}
	w.blob(strings.Repeat("\x00", uncached))
	const levels = 20
	last := 0
	for i := range levels {
		w.offsetDelta(last, word(uncached, "fork"))
		w.offsetDelta(len(w.offsets)-1, word(4, fmt.Sprint("end ", i)))
		w.offsetDelta(last, same(uncached, byte(i+1)))
		last = len(w.offsets) - 1
	}
	limits := packLimits{objects: 100, object: uncached, delta: uncached, unpacked: (levels + 2) * uncached}
	if _, err := indexWithin(t.Context(), w.bytes(), limits); !errors.Is(err, ErrLimit) {
		t.Errorf("want %v, got %v", ErrLimit, err)
	}
	limits.unpacked *= 10
	if _, err := indexWithin(t.Context(), w.bytes(), limits); err != nil {
		t.Errorf("with more work allowed: %v", err)
	}
}

func TestDeltasOnLargeObjectsAreRefused(t *testing.T) {
	t.Parallel()
	const limit = 1 << 16
	large := noiseOf(limit + 1)
	cases := map[string]struct {
		reason string
		make   func(w *packWriter)
		want   error
	}{
		"no delta":     {"It is streamed.", func(w *packWriter) { w.blob(large) }, nil},
		"at the limit": {"It fits.", func(w *packWriter) { w.blob(large[:limit]); w.offsetDelta(0, same(limit, 'x')) }, nil},
		"base":         {"It would have to be held.", func(w *packWriter) { w.blob(large); w.offsetDelta(0, word(limit+1, "x")) }, ErrLimit},
		"result":       {"It would have to be held.", func(w *packWriter) { w.blob("abc"); w.offsetDelta(0, copies(3, limit/3+1)) }, ErrLimit},
		"delta": {"It would have to be held.", func(w *packWriter) {
			w.blob("abc")
			w.offsetDelta(0, append([]byte{3, 1}, strings.Repeat("\x01x", limit/2)...))
		}, ErrLimit},
	}
	for name, c := range cases {
		w := &packWriter{t: t}
		c.make(w)
		_, err := indexWithin(t.Context(), w.bytes(), packLimits{objects: 10, object: 1 << 20, delta: limit, unpacked: 1 << 30})
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), "--git-max-object-bytes") {
			t.Errorf("%s %s want %v, got %v", name, c.reason, c.want, err)
		}
	}
}

func noiseOf(size int) string {
	text := make([]byte, size)
	state := uint32(1)
	for i := range text {
		state = state*1664525 + 1013904223
		text[i] = byte(state >> 24)
	}
	return string(text)
}

// TestMemoryIsDrawnBeforeItIsTaken: packs whose objects, deltas or trees need more than there is are given up.
func TestMemoryIsDrawnBeforeItIsTaken(t *testing.T) {
	t.Parallel()
	const objects = 100_000
	many := &packWriter{t: t}
	for i := range objects {
		many.blob(strconv.Itoa(i))
	}
	wide := &packWriter{t: t}
	wide.blob("")
	empty := plumbing.ComputeHash(plumbing.BlobObject, nil)
	var entries strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&entries, "100644 %08d\x00%s", i, empty[:])
	}
	wide.add(plumbing.TreeObject, entries.Len(), nil, []byte(entries.String()))
	tree := plumbing.ComputeHash(plumbing.TreeObject, []byte(entries.String()))
	cases := map[string]struct {
		pack   []byte
		tree   plumbing.Hash
		budget int64
		want   error
	}{
		"Small deltas":         {pack: smallDeltas(t), budget: 64 << 10},
		"Large deltas":         {pack: chained(t, 1, "leaf"), budget: framesAtOnce * uncached, want: memory.ErrBudget},
		"Large deltas, enough": {pack: chained(t, 1, "leaf"), budget: 12 * uncached},
		"Many objects":         {pack: many.bytes(), budget: objects * entryCost / 2, want: memory.ErrBudget},
		"Many objects, enough": {pack: many.bytes(), budget: objects * entryCost * 2},
		"A large tree":         {pack: wide.bytes(), tree: tree, budget: 2 << 20, want: memory.ErrBudget},
		"A large tree, enough": {pack: wide.bytes(), tree: tree, budget: 8 << 20},
	}
	limits := packLimits{objects: 2 * objects, object: uncached, delta: uncached, unpacked: 1 << 30}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := memory.New(c.budget, "").Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
				p, err := indexWithin(ctx, c.pack, limits)
				if err == nil && !c.tree.IsZero() {
					known, _ := lru.New[place, facts](1)
					_, err = (&planter{blobs: blobs{ctx, p}, limits: treeLimits{depth: 1, files: objects}, memo: known}).plant(ctx, c.tree)
				}
				return err
			})
			if !errors.Is(err, c.want) {
				t.Errorf("with %d bytes: %v, want %v", c.budget, err, c.want)
			}
		})
	}
}

// TestWhatIsClosedTakesNoMemory: one account may read many packs, one after the other.
func TestWhatIsClosedTakesNoMemory(t *testing.T) {
	t.Parallel()
	good := &packWriter{t: t}
	good.blob(noiseOf(1 << 20))
	good.offsetDelta(0, word(1<<20, "x"))
	broken := &packWriter{t: t}
	broken.blob(noiseOf(1 << 20))
	broken.refDelta(plumbing.ZeroHash, word(1<<20, "x"))
	limits := packLimits{objects: 10, object: 1 << 20, delta: 1 << 20, unpacked: 1 << 30}
	err := memory.New(16<<20, "").Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
		for range 30 {
			for _, content := range [][]byte{good.bytes(), broken.bytes()} {
				large := newPack(ctx, &spool{}, nil, limits, t.TempDir())
				if err := large.spool.fill(ctx, bytes.NewReader(content), t.TempDir(), 1<<20); !errors.Is(err, ErrLimit) {
					return fmt.Errorf("a pack that is too large: %w", err)
				}
				p := newPack(ctx, &spool{}, nil, limits, t.TempDir())
				if err := p.spool.fill(ctx, bytes.NewReader(content), t.TempDir(), 2<<20); err != nil {
					return err
				}
				if p.spool.memory == nil {
					return errors.New("there is no memory for it")
				}
				if err := p.index(ctx, limits); err != nil && !errors.Is(err, ErrProtocol) {
					return err
				}
				if err := errors.Join(p.Close(), large.Close()); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestFilesOfPacksAreDrawn: one account may keep many packs in files, one after the other, and none that is too large.
func TestFilesOfPacksAreDrawn(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	content := strings.Repeat("no pack ", (memoryPack+mib)/8)
	for total, want := range map[int64]error{memoryPack: memory.ErrBudget, memoryPack + mib: ErrProtocol} {
		err := memory.NewFiles(total, "").Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
			for range 3 {
				p := newPack(ctx, &spool{}, nil, packLimits{}, t.TempDir())
				if err := p.spool.fill(ctx, strings.NewReader(content), t.TempDir(), 2*memoryPack); err != nil {
					return errors.Join(err, p.Close())
				}
				if err := p.index(ctx, packLimits{}); !errors.Is(err, ErrProtocol) {
					return err
				}
				if err := p.Close(); err != nil {
					return err
				}
			}
			return ErrProtocol
		})
		if !errors.Is(err, want) {
			t.Errorf("with room for %d bytes: %v, want %v", total, err, want)
		}
	}
}

func smallDeltas(t *testing.T) []byte {
	t.Helper()
	w := &packWriter{t: t}
	w.blob("base")
	w.offsetDelta(0, insert(4, " more"))
	return w.bytes()
}

// TestLargeOpenFilesAreNotInMemory: what was put together is kept in a file without a name, as long as it is read.
func TestLargeOpenFilesAreNotInMemory(t *testing.T) {
	t.Parallel()
	limits := packLimits{objects: 10, object: uncached, delta: uncached, unpacked: 1 << 30}
	p, err := indexWithin(t.Context(), chained(t, 2, "leaf"), limits)
	if err != nil {
		t.Fatal(err)
	}
	p.dir = t.TempDir()
	large, err := p.open(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	first := p.opened.last
	if first.memory != nil || first.file == nil {
		t.Errorf("kept in memory: %d bytes", len(first.memory))
	}
	if left, err := os.ReadDir(p.dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if got, err := openAll(t.Context(), p, lookUp(t, p, "leaf")); err != nil || got != "leaf" {
		t.Errorf("another file meanwhile: %q, %v", got, err)
	}
	content, err := io.ReadAll(large)
	if want := "\x01" + strings.Repeat("\x00", uncached-1); err != nil || string(content) != want {
		t.Errorf("read %d bytes, %v", len(content), err)
	}
	if first.closed.Load() {
		t.Error("closed while it was read")
	}
	if err := errors.Join(large.Close(), large.Close()); err != nil || !first.closed.Load() {
		t.Errorf("not closed after it was read: %v", err)
	}
	again, err := p.open(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Read(make([]byte, 1)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("read after the pack was closed: %v", err)
	}
	last := p.opened.last
	if err := again.Close(); err != nil || last != nil {
		t.Errorf("close: %v, still kept: %v", err, last)
	}
	ended, end := context.WithCancelCause(t.Context())
	end(fs.ErrClosed)
	if _, err := p.open(ended, 2); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("open after the end: %v", err)
	}
}

// TestKeptBasesAreDrawn, also those that earlier fetches brought.
func TestKeptBasesAreDrawn(t *testing.T) {
	t.Parallel()
	const size, many = maxKeptBase, maxKeptBases/maxKeptBase + 1
	limits := packLimits{objects: 100, object: size, delta: size, unpacked: 1 << 30}
	w := &packWriter{t: t}
	for i := range many {
		w.blob(string(rune('a'+i)) + strings.Repeat("\x00", size-1))
		w.offsetDelta(2*i, word(size, fmt.Sprint("small ", i)))
	}
	k, name := keptPack(t, w.bytes(), limits)
	p := over(t, k, name, nil)
	p.work.Store(1 << 40)
	for _, read := range []int{1, 3, many, 2} {
		for i := range read {
			if got, err := openAll(t.Context(), p, int32(2*i+1)); err != nil || got != fmt.Sprint("small ", i) {
				t.Fatalf("%q, %v", got, err)
			}
		}
		var held int64
		for i := range p.objects {
			if base, ok := p.bases.Get(int64(i)); ok {
				held += int64(len(base))
			}
		}
		if held < size || p.drawn < held || p.drawn > maxKeptBases {
			t.Errorf("of %d bases %d bytes are held, and %d are drawn", read, held, p.drawn)
		}
	}
}
