package app

import (
	"cmp"
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"sluice.dev/sluice/internal/memory"
)

const (
	// unknownMemory is what the budget is made for where nothing bounds the process.
	unknownMemory = 1 << 30
	// leastBudget is enough for ordinary work, one object after the other.
	leastBudget = 32 << 20
	// Parts of the budget that have bounds of their own: answers of registries that are held as a whole, and rendered objects.
	documentsPart = 8
	rendersPart   = 4
)

// budgets are how --memory-budget is shared out.
type budgets struct {
	documents, renders int64
	// work is for all else.
	work *memory.Budget
}

// shareMemory sets the Go runtime's soft limit where the environment does not, and shares out the budget.
func shareMemory(options Options) budgets {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		limit = unknownMemory
		if container, err := memlimit.FromCgroup(); err == nil && container < math.MaxInt64 {
			limit = limitOf(int64(container), int64(options.BuildWorkers)*options.Limits.BuildBytes)
			debug.SetMemoryLimit(limit)
		}
	}
	// Half is for the caches, for what is too small to be counted, and for what the garbage collector has yet to free.
	total := cmp.Or(options.MemoryBudget, max(limit/2, leastBudget))
	b := budgets{documents: total / documentsPart, renders: total / rendersPart}
	b.work = memory.New(total - b.documents - b.renders)
	return b
}

// limitOf is the soft limit in a container: nine tenths of what its child processes leave. Half of it is left at least:
// whoever raises their bounds raises the container's as well.
func limitOf(container, children int64) int64 { return max(container-children, container/2) / 10 * 9 }
