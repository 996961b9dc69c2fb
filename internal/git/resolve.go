package git

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"sluice.dev/sluice/internal/memory"
)

// framesAtOnce is how many of the largest objects are in memory while a delta is applied: base, delta and result.
const framesAtOnce = 3

// retainedBases is how many bytes of bases are kept while the deltas on them are resolved, beside the one at hand.
// A base that was let go is put together again.
const retainedBases = 16 << 20

// frame is a base whose deltas are being resolved.
type frame struct {
	index    int32
	content  []byte // nil when it was let go
	children []int32
}

// resolve names all deltas: from each object that is none, depth first, so that memory holds one chain at a time.
// Some of these are in what earlier fetches brought.
func (x *indexer) resolve(ctx context.Context) error {
	roots := x.roots()
	frames := x.deltaMemory(roots)
	if err := x.draw(ctx, frames); err != nil {
		return fmt.Errorf("put objects together from deltas: %w", err)
	}
	defer func() {
		x.drawn -= frames
		memory.Return(ctx, frames)
	}()
	for _, root := range roots {
		if err := x.resolveFrom(ctx, root); err != nil {
			return err
		}
	}
	if x.hashed != len(x.objects) {
		return protocolErrorf("pack lacks the base of %d deltas: %w", len(x.objects)-x.hashed, errIncomplete)
	}
	return x.shorten(ctx)
}

// roots are the objects that deltas apply to and that are none, or are known already.
func (x *indexer) roots() (roots []int32) {
	for hash, deltas := range x.waiting {
		if base, ok := x.lookUp(hash); ok {
			x.children[base] = append(x.children[base], deltas...)
			delete(x.waiting, hash)
			roots = append(roots, base)
		}
	}
	slices.Sort(roots)
	for i := x.kept; i < len(x.objects); i++ {
		if !x.objects[i].kind.IsDelta() {
			roots = append(roots, int32(i)) //nolint:gosec // The number of objects is limited.
		}
	}
	return roots
}

// deltaMemory is what is needed while all deltas are resolved: retained bases, and the largest base, delta and result.
func (x *indexer) deltaMemory(roots []int32) (frames int64) {
	var largest, sum int64
	for i := x.kept; i < len(x.objects); i++ {
		if object := &x.objects[i]; object.kind.IsDelta() || x.hasChildren(int32(i)) { //nolint:gosec // Their number is limited.
			largest = max(largest, object.size, object.raw)
			sum += object.size
		}
	}
	for _, root := range roots {
		if int(root) < x.kept {
			largest = max(largest, x.frames(root))
			sum += x.objects[root].size
		}
	}
	return min(sum, retainedBases) + framesAtOnce*largest
}

func (x *indexer) resolveFrom(ctx context.Context, root int32) error {
	if !x.hasChildren(root) {
		return nil
	}
	if x.objects[root].size > x.limits.delta {
		return x.tooLargeForDeltas()
	}
	stack := []frame{{index: root, children: x.takeChildren(root)}}
	retained := 0
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if len(top.children) == 0 {
			retained -= len(top.content)
			stack = stack[:len(stack)-1]
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if top.content == nil {
			var err error
			if top.content, err = x.assemble(ctx, top.index); err != nil {
				return err
			}
			retained += len(top.content)
		}
		child := top.children[len(top.children)-1]
		top.children = top.children[:len(top.children)-1]
		content, err := x.resolveDelta(top, child)
		if err != nil {
			return err
		}
		if len(top.children) == 0 {
			retained -= len(top.content)
			top.content = nil
		}
		if grandchildren := x.takeChildren(child); len(grandchildren) > 0 {
			retained += len(content)
			stack = append(stack, frame{index: child, content: content, children: grandchildren})
		}
		retained -= release(stack, retained)
	}
	return nil
}

// release lets the lowest bases go until the rest fits; the topmost stays. It returns the bytes it freed.
func release(stack []frame, retained int) int {
	freed := 0
	for i := 0; i < len(stack)-1 && retained-freed > retainedBases; i++ {
		freed += len(stack[i].content)
		stack[i].content = nil
	}
	return freed
}

// resolveDelta applies one delta and names the result.
func (x *indexer) resolveDelta(base *frame, index int32) ([]byte, error) {
	object := &x.objects[index]
	if err := x.account(object.size); err != nil {
		return nil, err
	}
	parent := x.objects[base.index]
	object.base, object.kind, object.depth = base.index, parent.kind, parent.depth+1
	x.objects[base.index].based = true
	if object.depth > maxDeltaDepth {
		return nil, limitErrorf("chain of deltas is longer than %d", maxDeltaDepth)
	}
	content, err := x.apply(base.content, index)
	if err != nil {
		return nil, err
	}
	hasher := plumbing.NewHasher(object.kind, int64(len(content)))
	_, _ = hasher.Write(content) // A hash never fails to write.
	if object.hash, err = finish(hasher); err != nil {
		return nil, protocolErrorf("delta at %d: %w", object.data, err)
	}
	x.hashed++
	return content, nil
}

// hasChildren tells whether deltas are known to apply to an object. What names a delta's result by its hash is known
// when the result is.
func (x *indexer) hasChildren(index int32) bool {
	if len(x.children[index]) > 0 {
		return true
	}
	hash := x.objects[index].hash
	return !hash.IsZero() && len(x.waiting[hash]) > 0
}

// takeChildren hands out the deltas on an object, whether they name it by place or by hash, once. They are taken
// from the end: first those that nothing else comes from, so that their base can be let go before a long chain is
// followed.
func (x *indexer) takeChildren(index int32) []int32 {
	children := x.children[index]
	delete(x.children, index)
	hash := x.objects[index].hash
	if waiting, ok := x.waiting[hash]; ok {
		children = append(children, waiting...)
		delete(x.waiting, hash)
	}
	slices.SortStableFunc(children, func(a, b int32) int { return x.following(b) - x.following(a) })
	return children
}

// following is 1 for an object that others come from, else 0.
func (x *indexer) following(index int32) int {
	if x.hasChildren(index) {
		return 1
	}
	return 0
}
