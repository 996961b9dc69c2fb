package local

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"sluice.dev/sluice/storage"
)

// TestARemovedBodyDoesNotStayOpen: its bytes would stay on the disk.
func TestARemovedBodyDoesNotStayOpen(t *testing.T) {
	t.Parallel()
	store := open(t, t.TempDir(), Options{})
	path := publish(t, store, podinfo, "hello").Current.Path
	body, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read(store, path); err != nil || store.opened.Len() != 1 {
		t.Fatalf("%d bodies stay open for who asks next, %v", store.opened.Len(), err)
	}
	if err := store.Delete(t.Context(), podinfo); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(body); string(got) != "hello" || err != nil {
		t.Errorf("Who reads it already got %q, %v", got, err)
	}
	shared := asBody(t, body).file.File
	if err := body.Close(); err != nil {
		t.Error(err)
	}
	if _, err := shared.Stat(); err == nil || store.opened.Len() != 0 {
		t.Errorf("It is open, as are %d bodies", store.opened.Len())
	}
}

// TestABodyThatIsClosedTwiceStaysWithItsOtherReaders: they share the file.
func TestABodyThatIsClosedTwiceStaysWithItsOtherReaders(t *testing.T) {
	t.Parallel()
	store := open(t, t.TempDir(), Options{})
	path := publish(t, store, podinfo, "hello").Current.Path
	var bodies [2]storage.Body
	for i := range bodies {
		var err error
		if bodies[i], err = store.Open(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if err := bodies[0].Close(); err != nil {
			t.Error(err)
		}
	}
	if got, err := io.ReadAll(bodies[1]); string(got) != "hello" || err != nil {
		t.Errorf("The other reader got %q, %v", got, err)
	}
	if err := bodies[1].Close(); err != nil {
		t.Error(err)
	}
}

// TestWhoHasGoneDoesNotWait: hashing a large body on a slow disk outlasts many a client, of which each keeps a connection.
func TestWhoHasGoneDoesNotWait(t *testing.T) {
	t.Parallel()
	store := open(t, t.TempDir(), Options{})
	artifact := publish(t, store, podinfo, "hello").Current
	defer store.digests.lock(artifact.Digest)()
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := store.Open(ctx, artifact.Path)
		ended <- err
	}()
	for users := 0; users < 2; runtime.Gosched() {
		store.digests.mu.Lock()
		users = store.digests.locks[artifact.Digest].users
		store.digests.mu.Unlock()
	}
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) { // If it waited, the test would not end.
		t.Errorf("Open: want %v, got %v", context.Canceled, err)
	}
}

func asBody(t *testing.T, opened storage.Body) *body {
	t.Helper()
	b, ok := opened.(*body)
	if !ok {
		t.Fatalf("A body is a %T", opened)
	}
	return b
}

// TestReadersOfOneBodyDoNotMeet: they share a file, which is closed and opened again all the time.
func TestReadersOfOneBodyDoNotMeet(t *testing.T) {
	t.Parallel()
	store := open(t, t.TempDir(), Options{})
	path := publish(t, store, podinfo, "hello").Current.Path
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for range 200 {
				if got, err := read(store, path); got != "hello" || err != nil {
					t.Errorf("got %q, %v", got, err)
				}
			}
		})
	}
	for range 200 {
		store.opened.Purge()
	}
	readers.Wait()
}

// TestWhatCannotBeReadIsHashedAgain: the file was intact once, and its times do not tell that the disk has lost it.
func TestWhatCannotBeReadIsHashedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var seen watch
	store := open(t, dir, Options{OnDamage: seen.onDamage})
	artifact := publish(t, store, podinfo, "hello").Current
	blob := filepath.Join(dir, blobPath(artifact.Digest))
	if err := errors.Join(os.Chmod(blob, 0o600), os.WriteFile(blob, []byte("jello"), 0o600), store.trust(artifact.Digest)); err != nil {
		t.Fatal(err)
	}
	opened, err := store.Open(t.Context(), artifact.Path)
	if err != nil {
		t.Fatal(err)
	}
	file := asBody(t, opened).file
	good := file.File
	file.File = ioError(t)
	if _, err := io.ReadAll(opened); !errors.Is(err, syscall.EIO) {
		t.Fatalf("The test needs an I/O error, got %v", err)
	}
	file.File = good
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	if content, err := read(store, artifact.Path); !errors.Is(err, storage.ErrDamaged) || seen.count() != 1 {
		t.Errorf("Open: %q, %v, told %v", content, err, seen.told)
	}
}
