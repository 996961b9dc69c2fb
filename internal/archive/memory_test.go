package archive_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/memory"
)

// TestRulesOfADeepFolderTakeWhatTheyAre: no pattern repeats the folders above it. It runs alone, as it counts all
// allocations.
func TestRulesOfADeepFolderTakeWhatTheyAre(t *testing.T) { //nolint:paralleltest // See above.
	deep := strings.Repeat("d/", 250)
	var lines strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&lines, "%d\n", i)
	}
	tree := fstest.MapFS{deep + ".sourceignore": &fstest.MapFile{Data: []byte(lines.String())}, deep + "1": &fstest.MapFile{}, deep + "x": &fstest.MapFile{}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	rules, err := archive.ReadRules(t.Context(), tree, nil, archive.Limits{})
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 32<<20 {
		t.Errorf("10,000 patterns in %d bytes took %d bytes", lines.Len(), took)
	}
	if err := archive.Write(t.Context(), io.Discard, tree, rules, archive.Limits{}); err != nil {
		t.Error(err)
	}
}

func TestMemoryIsDrawnBeforeItIsTaken(t *testing.T) {
	t.Parallel()
	many := fstest.MapFS{}
	for i := range 20_000 {
		many[fmt.Sprintf("file-%d", i)] = &fstest.MapFile{}
	}
	var whole strings.Builder
	if err := archive.Write(t.Context(), &whole, many, nil, archive.Limits{}); err != nil {
		t.Fatal(err)
	}
	patterns := strings.Repeat("a/b/c/d/e/f/g\n", 9_000)
	cases := map[string]struct {
		work   func(context.Context) error
		little int64
		enough int64
	}{
		"Archive that is read": {func(ctx context.Context) error {
			opened, err := archive.Open(ctx, strings.NewReader(whole.String()), t.TempDir(), archive.Limits{})
			if err != nil {
				return err
			}
			return opened.Close()
		}, 4 << 20, 16 << 20},
		"Archive that is written": {func(ctx context.Context) error {
			return archive.Write(ctx, io.Discard, many, nil, archive.Limits{})
		}, 512 << 10, 4 << 20},
		"Patterns": {func(ctx context.Context) error {
			_, err := archive.ReadRules(ctx, fstest.MapFS{}, &patterns, archive.Limits{})
			return err
		}, 4 << 20, 16 << 20},
		"Patterns for the root": {func(ctx context.Context) error {
			_, err := archive.RootOnly(ctx, &patterns)
			return err
		}, 4 << 20, 16 << 20},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := memory.New(c.little, "").Do(t.Context(), fair.Wish{}, nil, c.work); !errors.Is(err, memory.ErrBudget) {
				t.Errorf("with %d bytes: %v, want ErrBudget", c.little, err)
			}
			if err := memory.New(c.enough, "").Do(t.Context(), fair.Wish{}, nil, c.work); err != nil {
				t.Errorf("with %d bytes: %v", c.enough, err)
			}
		})
	}
}

// TestBodiesAreDrawn: an archive takes room for the bodies of its files before it writes them, and gives it back.
func TestBodiesAreDrawn(t *testing.T) {
	t.Parallel()
	const size = 2 << 20
	var packed strings.Builder
	files := fstest.MapFS{"file": &fstest.MapFile{Data: make([]byte, size)}}
	if err := archive.Write(t.Context(), &packed, files, nil, archive.Limits{}); err != nil {
		t.Fatal(err)
	}
	for total, want := range map[int64]error{size - 1: memory.ErrBudget, size: nil} {
		err := memory.NewFiles(total, "").Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
			for range 3 {
				tree, err := archive.Open(ctx, strings.NewReader(packed.String()), t.TempDir(), archive.Limits{})
				if err != nil {
					return err
				}
				if err := tree.Close(); err != nil {
					return err
				}
			}
			return nil
		})
		if !errors.Is(err, want) {
			t.Errorf("with room for %d bytes: %v, want %v", total, err, want)
		}
	}
}
