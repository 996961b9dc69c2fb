package memory_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/memory"
	"sluice.dev/sluice/storage/storagetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, func(_ *testing.T, now func() time.Time) storage.Store {
		return memory.New(memory.Options{Now: now})
	})
}

func ExampleStore() {
	ctx := context.Background()
	store := memory.New(memory.Options{})
	object := storage.Object{Kind: "gitrepository", Namespace: "default", Name: "podinfo"}

	staged, err := store.Stage(ctx, 1<<20, func(w io.Writer) error {
		_, err := io.WriteString(w, "an archive")
		return err
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	record, err := store.Publish(ctx, object, staged, storage.Record{
		Current: storage.Artifact{Path: object.File("abc.tar.gz"), Revision: "main@sha1:abc"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(record.Current.Path, record.Current.Size)
	// Output: gitrepository/default/podinfo/abc.tar.gz 10
}
