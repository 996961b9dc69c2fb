package local

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"sluice.dev/sluice/storage"
)

func TestAFileWithoutRightsIsMadeAgain(t *testing.T) {
	t.Parallel()
	if boundElsewhere(t) {
		return
	}
	for name, file := range map[string]string{
		"Body": blobPath(digest.FromString("hello")), "Record": recordPath(podinfo),
	} {
		for _, restarted := range []bool{false, true} {
			label := name
			if restarted {
				label += "WhileDown"
			}
			t.Run(label, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				first, err := Open(dir, Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = first.Close() })
				publish(t, first, podinfo, "hello")
				store := first
				if restarted {
					if err := first.Close(); err != nil {
						t.Fatal(err)
					}
					store = open(t, dir, Options{})
				}
				if err := os.Chmod(filepath.Join(dir, file), 0); err != nil {
					t.Fatal(err)
				}
				wantMadeAgain(t, store, dir)
			})
		}
	}
}

func TestAFolderWithoutRightsKeepsNobodyElseFromWriting(t *testing.T) {
	t.Parallel()
	if boundElsewhere(t) {
		return
	}
	dir := t.TempDir()
	first, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Close() })
	publish(t, first, storage.Object{Kind: podinfo.Kind, Namespace: "closed", Name: "a"}, "closed")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(dir, recordsDir, podinfo.Kind, "closed")
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(closed, dirMode) })
	publish(t, open(t, dir, Options{}), podinfo, "hello")
}

// TestAFolderWithoutRightsIsToldOfOnce, however often a client asks for what is in it.
func TestAFolderWithoutRightsIsToldOfOnce(t *testing.T) {
	t.Parallel()
	if boundElsewhere(t) {
		return
	}
	dir := t.TempDir()
	var seen watch
	store := open(t, dir, Options{OnDamage: seen.onDamage})
	path := publish(t, store, podinfo, "hello").Current.Path
	closed := filepath.Join(dir, blobsDir, "sha256")
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(closed, dirMode) })
	for range 3 {
		if content, err := read(store, path); err == nil {
			t.Errorf("Open: %q", content)
		}
	}
	if seen.count() != 1 {
		t.Errorf("told %q", seen.told)
	}
	if err := os.Chmod(closed, dirMode); err != nil {
		t.Fatal(err)
	}
	if content, err := read(store, path); content != "hello" {
		t.Errorf("Open with rights: %q, %v", content, err)
	}
}

// boundElsewhere runs the test again in a process that modes bind, when root runs it.
func boundElsewhere(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 || os.Getenv(childMode) == "bound" {
		return false
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	command.Env = append(os.Environ(), childMode+"=bound")
	if out, err := runBound(command); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return true
}

// runBound runs a command of root's without the rights that set root above the modes of files. It stays root, so that
// it matters to nobody where the binary and the temporary folders lie.
func runBound(command *exec.Cmd) ([]byte, error) {
	var out []byte
	ended := make(chan error)
	go func() {
		// What a thread gives up stays given up. This one stays locked, so that it ends with the goroutine.
		runtime.LockOSThread()
		for _, right := range []uintptr{unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH} {
			// Who may not give up rights has few of them, and these are hardly among them: the test tells.
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, right, 0, 0, 0); err != nil && !errors.Is(err, unix.EPERM) {
				ended <- err
				return
			}
		}
		var err error
		out, err = command.CombinedOutput()
		ended <- err
	}()
	err := <-ended
	return out, err
}

func TestAFileThatTheDiskDoesNotGiveBackIsMadeAgain(t *testing.T) {
	t.Parallel()
	for _, reason := range []error{syscall.EIO, errCorrupted, syscall.EACCES, syscall.EPERM} {
		for _, bad := range []string{blobPath(digest.FromString("hello")), recordPath(podinfo)} {
			dir := t.TempDir()
			store := open(t, dir, Options{})
			publish(t, store, podinfo, "hello")
			rot(t, store, dir, bad, reason)
			wantMadeAgain(t, store, dir)
		}
	}
}

// rot makes a file unreadable until another takes its name.
func rot(t *testing.T, store *Store, dir, bad string, reason error) {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, bad))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() }) // Until then no other file gets its number.
	was, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	store.disk.opening = func(name string) error {
		info, err := os.Lstat(filepath.Join(dir, name))
		if name == bad && err == nil && os.SameFile(info, was) {
			return &os.PathError{Op: "open", Path: name, Err: reason}
		}
		return nil
	}
}

// wantMadeAgain asserts that the object with a file that cannot be read has no record, harms no other, and heals.
func wantMadeAgain(t *testing.T, store *Store, dir string) {
	t.Helper()
	path := pathFor(podinfo, "hello")
	if _, err := store.Record(t.Context(), podinfo); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Record: want %v, got %v", storage.ErrNotFound, err)
	}
	for range 2 {
		if _, err := read(store, path); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Open: want %v, got %v", storage.ErrNotFound, err)
		}
	}
	if _, err := store.Collect(t.Context(), podinfo, ""); err != nil {
		t.Errorf("Collect: %v", err)
	}
	publish(t, store, podinfo, "hello")
	if content, err := read(store, path); content != "hello" {
		t.Errorf("Open after the repair: %q, %v", content, err)
	}
	if _, err := store.SweepOrphans(t.Context(), func(storage.Object, string) bool { return true }, 0); err != nil {
		t.Errorf("SweepOrphans: %v", err)
	}
	wantTidy(t, store, dir)
}

func TestScrubFindsWhatTheDiskDoesNotGiveBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var seen watch
	store := open(t, dir, Options{OnDamage: seen.onDamage})
	publish(t, store, podinfo, "hello")
	publish(t, store, twin, "fine")
	blob := blobPath(digest.FromString("hello"))
	rot(t, store, dir, blob, syscall.EIO)

	checked, damagedObjects, err := store.Scrub(t.Context())
	if diff := cmp.Diff([]storage.Object{podinfo}, damagedObjects); diff != "" || checked != 2 || err != nil {
		t.Errorf("Scrub checked %d, %v; damaged: -want, +got:\n%s", checked, err, diff)
	}
	if exists(dir, blob) || seen.count() != 1 {
		t.Errorf("The unreadable file: still there %t, told %d times", exists(dir, blob), seen.count())
	}
}

func TestTheLackOfDescriptorsIsNoDamage(t *testing.T) {
	t.Parallel()
	for _, reason := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		for _, bad := range []string{blobPath(digest.FromString("hello")), recordPath(podinfo)} {
			dir := t.TempDir()
			var seen watch
			store := open(t, dir, Options{OnDamage: seen.onDamage})
			path := publish(t, store, podinfo, "hello").Current.Path
			rot(t, store, dir, bad, reason)
			if _, err := store.Record(t.Context(), podinfo); !errors.Is(err, reason) || errors.Is(err, storage.ErrNotFound) {
				t.Errorf("%s: Record: want %v, got %v", bad, reason, err)
			}
			if _, err := read(store, path); !errors.Is(err, reason) || errors.Is(err, storage.ErrNotFound) {
				t.Errorf("%s: Open: want %v, got %v", bad, reason, err)
			}
			store.disk.opening = func(string) error { return nil }
			if content, err := read(store, path); content != "hello" || seen.count() > 0 {
				t.Errorf("%s: Open afterwards: %q, %v, told %v", bad, content, err, seen.told)
			}
		}
	}
}

// ioError is a file that cannot be read: the first page of a process's memory is never there.
func ioError(t *testing.T) *os.File {
	t.Helper()
	file, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	if _, err := file.Read(make([]byte, 1)); !errors.Is(err, syscall.EIO) {
		t.Fatalf("The test needs an I/O error, got %v", err)
	}
	return file
}

func TestAReadErrorIsDamage(t *testing.T) {
	t.Parallel()
	file := ioError(t)
	store := open(t, t.TempDir(), Options{})
	id, err := identify(file)
	if err != nil {
		t.Fatal(err)
	}
	is, isNew, err := store.judge(file, id, storage.Artifact{Digest: digest.FromString("hello")})
	if is != damaged || !isNew || err != nil {
		t.Errorf("judge: %v, %t, %v", is, isNew, err)
	}
}

// TestOneBadObjectStopsNoPass makes all of one object's files fail in a way that is no damage.
func TestOneBadObjectStopsNoPass(t *testing.T) {
	t.Parallel()
	for name, pass := range map[string]func(ctx context.Context, store *Store) error{
		"Sweep": func(ctx context.Context, store *Store) error {
			removed, err := store.SweepOrphans(ctx, func(storage.Object, string) bool { return false }, 0)
			if diff := cmp.Diff([]storage.Object{twin}, removed); diff != "" {
				return errors.New(diff)
			}
			return err
		},
		"Scrub": func(ctx context.Context, store *Store) error {
			checked, damagedObjects, err := store.Scrub(ctx)
			if checked != 1 || len(damagedObjects) != 0 {
				return errors.Join(errors.New("it did not go on"), err)
			}
			return err
		},
	} {
		for _, bad := range []string{blobPath(digest.FromString("hello")), recordPath(podinfo)} {
			if name == "Sweep" && bad != recordPath(podinfo) {
				continue // A sweep opens no bodies.
			}
			dir := t.TempDir()
			store := open(t, dir, Options{})
			publish(t, store, podinfo, "hello")
			publish(t, store, twin, "fine")
			rot(t, store, dir, bad, syscall.EMFILE)
			if err := pass(t.Context(), store); !errors.Is(err, syscall.EMFILE) {
				t.Errorf("%s with %s: %v", name, bad, err)
			}
		}
	}
}

func TestFailuresAreBounded(t *testing.T) {
	t.Parallel()
	var failed failures
	failed.add(nil)
	if err := failed.join(); err != nil {
		t.Errorf("No failure: %v", err)
	}
	for range maxFailures {
		failed.add(syscall.EIO)
	}
	plain := failed.join().Error()
	failed.add(syscall.EIO)
	failed.add(syscall.EIO)
	if want, got := plain+"\nand 2 more errors", failed.join().Error(); got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}
