package storagetest

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/storage"
)

func publishedBodiesCanBeRead(t *testing.T, b *bench) {
	for file, body := range map[string]string{"a.tar.gz": "hello", "empty.tar.gz": "", "large.tar.gz": strings.Repeat("x", 1<<20)} {
		staged := b.stage(t, body)
		if staged.Digest != digest.FromString(body) || staged.Size != int64(len(body)) {
			t.Errorf("Stage of %d bytes: got %+v", len(body), staged)
		}
		if _, err := b.Publish(t.Context(), podinfo, staged, recordOf(podinfo, file)); err != nil {
			t.Fatalf("Publish: %v", err)
		}
		b.holds(t, podinfo.File(file), body)
	}
	body, err := b.Open(t.Context(), podinfo.File("a.tar.gz"))
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	defer body.Close()
	if _, err := body.Seek(-3, io.SeekEnd); err != nil {
		t.Fatalf("Seek: %v", err)
	}
	if tail, err := io.ReadAll(body); err != nil || string(tail) != "llo" {
		t.Errorf("The tail of the body: want %q, got %q, %v", "llo", tail, err)
	}
}

func stagedBodiesAreNotVisible(t *testing.T, b *bench) {
	b.stage(t, "hello")
	objects, err := b.Objects(t.Context())
	if err != nil || len(objects) != 0 {
		t.Errorf("Objects: want none, got %v, %v", objects, err)
	}
	b.absent(t, podinfo.File("a.tar.gz"))
	_, err = b.Record(t.Context(), podinfo)
	wantError(t, "Record", err, storage.ErrNotFound)
}

func failedWriteLeavesNothing(t *testing.T, b *bench) {
	torn := errors.New("upstream hung up")
	staged, err := b.Stage(t.Context(), 0, func(w io.Writer) error {
		if _, err := io.WriteString(w, "half a bo"); err != nil {
			return err
		}
		return torn
	})
	wantError(t, "Stage", err, torn)
	if staged != (storage.Staged{}) {
		t.Errorf("Stage: want nothing, got %+v", staged)
	}
	half := storage.Staged{Digest: digest.FromString("half a bo"), Size: 9}
	_, err = b.Publish(t.Context(), podinfo, half, recordOf(podinfo, "a.tar.gz"))
	wantError(t, "Publish of what was not staged", err, storage.ErrNotFound)
	b.absent(t, podinfo.File("a.tar.gz"))
}

func bodyHasALimit(t *testing.T, b *bench) {
	write := func(parts ...string) func(io.Writer) error {
		return func(w io.Writer) error {
			for _, part := range parts {
				if _, err := io.WriteString(w, part); err != nil {
					return err
				}
			}
			return nil
		}
	}
	if _, err := b.Stage(t.Context(), 5, write("he", "llo")); err != nil {
		t.Errorf("A body of exactly the limit: %v", err)
	}
	_, err := b.Stage(t.Context(), 5, write("he", "llo", "!"))
	wantError(t, "One byte more", err, storage.ErrTooLarge)
	_, err = b.Stage(t.Context(), 5, func(w io.Writer) error {
		_ = write("hello!")(w)
		return nil
	})
	wantError(t, "A writer that hides the refusal", err, storage.ErrTooLarge)
	_, err = b.Stage(t.Context(), 5, func(w io.Writer) error {
		_ = write("hello!")(w)
		return write("hi")(w)
	})
	wantError(t, "A writer that goes on after the refusal", err, storage.ErrTooLarge)
	if _, err := b.Stage(t.Context(), -1, write("")); err == nil {
		t.Error("A negative limit: want an error")
	}
}

func cancelledStageLeavesNothing(t *testing.T, b *bench) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := b.Stage(ctx, 0, func(w io.Writer) error {
		cancel()
		_, _ = io.WriteString(w, "too late")
		return nil
	})
	wantError(t, "Stage", err, context.Canceled)
	late := storage.Staged{Digest: digest.FromString("too late"), Size: 8}
	_, err = b.Publish(t.Context(), podinfo, late, recordOf(podinfo, "a.tar.gz"))
	wantError(t, "Publish of what was not staged", err, storage.ErrNotFound)
}

func discardedBodyIsGone(t *testing.T, b *bench) {
	first, second := b.stage(t, "hello"), b.stage(t, "hello")
	if err := b.Discard(t.Context(), first); err != nil {
		t.Fatalf("Discard: %v", err)
	}
	if _, err := b.Publish(t.Context(), podinfo, second, recordOf(podinfo, "a.tar.gz")); err != nil {
		t.Errorf("Discard took a body that was staged twice: %v", err)
	}
	third := b.stage(t, "hello")
	if err := b.Discard(t.Context(), third); err != nil {
		t.Fatalf("Discard: %v", err)
	}
	b.holds(t, podinfo.File("a.tar.gz"), "hello")

	gone := b.stage(t, "gone")
	for range 2 {
		if err := b.Discard(t.Context(), gone); err != nil {
			t.Fatalf("Discard: %v", err)
		}
	}
	_, err := b.Publish(t.Context(), podinfo, gone, recordOf(podinfo, "b.tar.gz"))
	wantError(t, "Publish of a discarded body", err, storage.ErrNotFound)
	b.holds(t, podinfo.File("a.tar.gz"), "hello")
}
