package app

import (
	"context"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/memory"
)

// TestThePartsAreTheBudget: whatever the planes and the limits are, the parts of the budget are together what it says, and
// there is some for each.
func TestThePartsAreTheBudget(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"Derived":   {"--controllers=source,modules"},
		"Sources":   {"--controllers=source"},
		"Documents": {"--controllers=source,modules", "--oci-max-manifest-bytes=67108864"},
		"Functions": {"--controllers=modules,packages", "--memory-budget=134217728", "--functions-configmap=own"},
		"Share":     {"--controllers=source,packages", "--memory-budget=134217728", "--functions-configmap=own", "--functions-budget=67108864"},
		"None":      {"--controllers=source", "--memory-budget=134217728", "--functions-configmap=own"},
		"Least":     {"--controllers=source,modules", "--memory-budget=67108864"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := parse(t, map[string]string{"RUNTIME_NAMESPACE": "sluice-system"}, args...)
			if err := options.Validate(); err != nil {
				t.Fatal(err)
			}
			const limit = 100 << 20
			total := options.MemoryBudget
			if total == 0 {
				total = max(limit/2, options.leastBudget())
			}
			parts := options.shareOut(limit)
			if want := map[string]int64{"Functions": 32 << 20, "Share": 64 << 20}[name]; parts.functions != want {
				t.Errorf("functions have %d bytes, want %d", parts.functions, want)
			}
			left := total - parts.renders - parts.functions
			drawing := func(bytes int64) error {
				return parts.work.Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error { return memory.Draw(ctx, bytes) })
			}
			if err := drawing(left); err != nil || left < 8<<20 {
				t.Errorf("%d bytes of %d are left for work: %v", left, total, err)
			}
			if err := drawing(left + 1); err == nil || !strings.Contains(err.Error(), "--memory-budget=") {
				t.Errorf("more than is left of %d: got %v", total, err)
			}
		})
	}
}

func TestLimitsLeaveRoomForChildren(t *testing.T) {
	t.Parallel()
	both, sources := parse(t, nil, "--controllers=source,modules"), parse(t, nil, "--controllers=source")
	if both.children() != 512<<20 || sources.children() != 0 {
		t.Errorf("%d bytes for processes that run kustomize, and %d where none does", both.children(), sources.children())
	}
	if limit := limitOf(1<<30, both.children()); limit+both.children() > 1<<30 {
		t.Errorf("the limit of %d leaves them too little", limit)
	}
}

// TestTemporaryFilesFollowFromTheLimits: each object may be as large as its own limits say.
func TestTemporaryFilesFollowFromTheLimits(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--git-max-pack-bytes=4294967296", "--archive-max-bytes=4294967296"}} {
		options := parse(t, nil, args...)
		l := options.Limits
		largest := l.GitPackBytes + l.GitObjectBytes/4 + l.ArchiveBytes
		files := options.shareOut(1 << 30).files
		err := files.Do(t.Context(), fair.Wish{Namespace: "a"}, nil, func(ctx context.Context) error { return memory.DrawFile(ctx, largest) })
		if err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
	options := parse(t, nil, "--tmp-budget=1000")
	err := options.shareOut(1<<30).files.Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error { return memory.DrawFile(ctx, 1001) })
	if err == nil || !strings.Contains(err.Error(), "--tmp-budget=1000") {
		t.Errorf("got %v", err)
	}
}
