package wasm

import (
	"context"
	"fmt"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"sluice.dev/sluice/internal/memory"
)

const (
	// keptFactor is how many bytes a compiled module takes for each of its own, and compileFactor how many more while it is
	// compiled; both as measured with the modules of Go's and other compilers.
	keptFactor    = 5
	compileFactor = 6
	// maxKept bounds how many modules are kept, however small they are.
	maxKept = 1000
)

// held is a compiled module that somebody runs.
type held struct {
	module wazero.CompiledModule
	// least is the memory that it begins with, and bytes what it takes as long as it is kept.
	least, bytes int64
	// users run it; who is the last lets go of one that is not kept any more.
	users  int
	isGone bool
}

// kept are compiled modules by their digests; the longest unused goes first.
type kept struct {
	most int64

	mu    sync.Mutex
	bytes int64
	lru   *simplelru.LRU[string, *held]
}

func newKept(most int64) *kept {
	k := &kept{most: most}
	// It fails for a size of nothing alone.
	k.lru, _ = simplelru.NewLRU(maxKept, func(_ string, gone *held) {
		k.bytes -= gone.bytes
		gone.isGone = true
		gone.close()
	})
	return k
}

// close is called with the lock held.
func (h *held) close() {
	if h.isGone && h.users == 0 {
		_ = h.module.Close(context.Background())
	}
}

func (k *kept) get(digest string) *held {
	k.mu.Lock()
	defer k.mu.Unlock()
	found, ok := k.lru.Get(digest)
	if !ok {
		return nil
	}
	found.users++
	return found
}

// add keeps a module that was compiled, and counts who compiled it as its user.
func (k *kept) add(digest string, made *held) {
	k.mu.Lock()
	defer k.mu.Unlock()
	made.users++
	k.lru.Remove(digest) // Two may have compiled the same.
	k.bytes += made.bytes
	k.lru.Add(digest, made)
	for k.bytes > k.most && k.lru.Len() > 1 {
		k.lru.RemoveOldest()
	}
}

func (k *kept) release(h *held) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h.users--
	h.close()
}

// compiled is the job's module, compiled if it is not kept. It has to be released.
func (e *Engine) compiled(ctx context.Context, job Job) (*held, error) {
	if found := e.kept.get(job.Module); found != nil {
		return found, nil
	}
	content, err := job.Load(ctx)
	if err != nil {
		return nil, err
	}
	size := int64(len(content))
	if keep := keptFactor * size; keep > e.options.KeptBytes {
		return nil, fmt.Errorf("%w: compiled, its %d bytes take about %d of memory, and there are %d for modules",
			memory.ErrBudget, size, keep, e.options.KeptBytes)
	}
	if err := memory.Draw(ctx, compileFactor*size); err != nil {
		return nil, err
	}
	defer memory.Return(ctx, compileFactor*size)
	allowed, least, err := inspect(content, e.options)
	if err != nil {
		return nil, err
	}
	// With workers, compiling ends soon after the context does.
	module, err := e.runtime.CompileModule(experimental.WithCompilationWorkers(ctx, compilers), allowed)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, unfit("%v", err)
	}
	made := &held{module: module, least: least, bytes: keptFactor * size}
	e.kept.add(job.Module, made)
	return made, nil
}

// compilers is how many functions of a module are compiled at once.
const compilers = 2
