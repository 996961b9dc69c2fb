package app

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"sluice.dev/sluice/internal/memory"
)

const (
	// unknownMemory is what the budget is made for where nothing bounds the process.
	unknownMemory = 1 << 30
	// leastWork is enough for ordinary work, one object after the other, and leastDocuments is how many of the largest
	// answers of registries find room beside it.
	leastWork      = 32 << 20
	leastDocuments = 8
	// rendersPart is the part of the budget that has a bound of its own, for rendered objects.
	rendersPart = 4
	// functionsPart is the part of the budget for functions that packages bring, where operators do not say another.
	functionsPart = 4
)

// budgets are how --memory-budget is shared out.
type budgets struct {
	renders int64
	// functions is for those that packages bring.
	functions int64
	// work is for all else.
	work *memory.Budget
	// files are those of sources.
	files *memory.Budget
}

// leastBudget is the least that --memory-budget may be.
func (o *Options) leastBudget() int64 {
	return leastWork + leastDocuments*o.Limits.OCIManifestBytes
}

// tmpObjects is how many of the largest objects fit into the derived --tmp-budget. One of them may have three eighths.
const tmpObjects = 4

// TmpBytes is the most that sources take in temporary files: the flag or, without it, what follows from other limits.
func (o *Options) TmpBytes() int64 {
	l := o.Limits
	return cmp.Or(o.TmpBudget, tmpObjects*(l.GitPackBytes+l.GitObjectBytes/4+l.ArchiveBytes))
}

// gitCachePath is where objects from Git servers are kept.
func (o *Options) gitCachePath() string {
	return cmp.Or(o.GitCachePath, filepath.Join(os.TempDir(), "sluice-git-cache"))
}

// children is what processes that run kustomize may take beside this one.
func (o *Options) children() int64 {
	if !slices.Contains(o.Controllers, planeModules) {
		return 0
	}
	return int64(o.BuildWorkers) * o.Limits.BuildBytes
}

// shareMemory sets the Go runtime's soft limit where the environment does not, and shares out the budget. The options say
// by now which planes run.
func shareMemory(options Options) budgets {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		limit = unknownMemory
		if container, err := memlimit.FromCgroup(); err == nil && container < math.MaxInt64 {
			limit = limitOf(int64(container), options.children())
			debug.SetMemoryLimit(limit)
		}
	}
	return options.shareOut(limit)
}

// shareOut shares out the budget for a process whose soft limit is known. Half of that is for the caches, for what is too
// small to be counted, and for what the garbage collector has yet to free.
func (o *Options) shareOut(limit int64) budgets {
	total := cmp.Or(o.MemoryBudget, max(limit/2, o.leastBudget()))
	var b budgets
	if slices.Contains(o.Controllers, planeModules) {
		b.renders = total / rendersPart
	}
	if o.FunctionsConfigMap != "" && slices.Contains(o.Controllers, planePackages) {
		b.functions = min(cmp.Or(o.FunctionsBudget, total/functionsPart), total/2)
	}
	b.work = memory.New(total-b.renders-b.functions, fmt.Sprintf("--memory-budget=%d", total))
	b.files = memory.NewFiles(o.TmpBytes(), fmt.Sprintf("--tmp-budget=%d", o.TmpBytes()))
	return b
}

// limitOf is the soft limit in a container: nine tenths of what its child processes leave. Half of it is left at least:
// whoever raises their bounds raises the container's as well.
func limitOf(container, children int64) int64 { return max(container-children, container/2) / 10 * 9 }
