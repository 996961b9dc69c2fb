package source_test

import (
	"errors"
	"io"
	"testing"

	controllers "sluice.dev/sluice/controllers/source"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/storage/local/localtest"
)

// TestAnIncludeIsItsDigestNotItsPath: the included object may be deleted and made anew while the commit is fetched.
func TestAnIncludeIsItsDigestNotItsPath(t *testing.T) {
	t.Parallel()
	store := localtest.Open(t, local.Options{})
	object := storage.Object{Kind: controllers.GitRepositoryDir, Namespace: "default", Name: "podinfo"}
	publish := func(content string) storage.Artifact {
		staged, err := store.Stage(t.Context(), 0, func(w io.Writer) error {
			_, err := io.WriteString(w, content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		record, err := store.Publish(t.Context(), object, staged, storage.Record{Current: storage.Artifact{Path: object.File("1.tar.gz")}})
		if err != nil {
			t.Fatal(err)
		}
		return record.Current
	}
	includes := controllers.Artifacts{Store: store}
	included := publish("old")
	if err := store.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	anew := publish("new")
	if _, err := includes.Body(t.Context(), included); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("The old artifact: got %v", err)
	}
	body, err := includes.Body(t.Context(), anew)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, err := io.ReadAll(body); string(got) != "new" || err != nil {
		t.Errorf("The new artifact: got %q, %v", got, err)
	}
}
