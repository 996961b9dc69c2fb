package bucket

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/storage"
)

// TestSmallIndexesDoNotPileUp: each artifact has one, most are soon of no use, and all are looked at whenever one is written.
func TestSmallIndexesDoNotPileUp(t *testing.T) {
	t.Parallel()
	p := parts{dir: t.TempDir(), max: 64 << 20, identity: "location"}
	for i := range 2 * maxIndexes {
		if err := os.WriteFile(filepath.Join(p.dir, fmt.Sprint(indexPrefix, i)), []byte("small"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	last := digest.FromString("last")
	p.Save(last, []byte("of the archive"))
	if found, err := os.ReadDir(p.dir); err != nil || len(found) != maxIndexes {
		t.Errorf("%d are left, %v", len(found), err)
	}
	if string(p.Load(last)) != "of the archive" {
		t.Error("the last one is not among them")
	}
}

// recorded is a store with one artifact.
type recorded struct{ record storage.Record }

func (r recorded) Record(context.Context, storage.Object) (storage.Record, error) {
	return r.record, nil
}

func (recorded) Open(context.Context, string) (storage.Body, error) { return nil, storage.ErrNotFound }

// TestAnIndexIsDrawnBeforeItIsRead: its size is that of the keys, which a tenant chooses.
func TestAnIndexIsDrawnBeforeItIsRead(t *testing.T) {
	t.Parallel()
	p := parts{dir: t.TempDir(), max: 64 << 20, identity: "location"}
	artifact := digest.FromString("artifact")
	p.Save(artifact, make([]byte, 4<<20))
	opener := &Opener{Options: Options{IndexDir: p.dir, Stored: recorded{storage.Record{Current: storage.Artifact{Digest: artifact}}}}}
	err := memory.New(8<<20, "--memory-budget").Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
		_, err := (&session{opener: opener, identity: p.identity}).known(ctx)
		return err
	})
	if !errors.Is(err, memory.ErrBudget) {
		t.Error(err)
	}
}
