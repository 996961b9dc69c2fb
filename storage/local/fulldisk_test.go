package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/storage"
)

// TestAFullDiskLeavesTheOldArtifact runs in a child process, which mounts a small tmpfs in a mount namespace of its own.
// Where a machine lets nobody do that, the child bounds the size of its files, which fails the same writes with EFBIG.
func TestAFullDiskLeavesTheOldArtifact(t *testing.T) {
	t.Parallel()
	inNamespace := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		inNamespace = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		}
	}
	dir := t.TempDir()
	run := func(how string, attributes *syscall.SysProcAttr) (string, error) {
		command := exec.CommandContext(t.Context(), os.Args[0])
		command.Env = append(os.Environ(), childMode+"=fulldisk", "DIR="+dir, "HOW="+how)
		command.SysProcAttr = attributes
		out, err := command.CombinedOutput()
		return string(out), err
	}
	out, err := run("tmpfs", inNamespace)
	if err != nil && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || strings.Contains(out, cannotMount)) {
		t.Logf("no mount namespace here (%v %s): bounding the size of files instead", err, out)
		out, err = run("rlimit", nil)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Log(out)
}

const (
	cannotMount = "mount tmpfs"
	diskSize    = 512 << 10
)

func inFullDiskChild() error {
	dir := os.Getenv("DIR")
	if os.Getenv("HOW") == "rlimit" {
		signal.Ignore(syscall.SIGXFSZ)
		limit := unix.Rlimit{Cur: diskSize, Max: diskSize}
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		return fillByOneFile(dir)
	}
	private := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	mounted := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", diskSize))
	if err := errors.Join(private, mounted); err != nil {
		return fmt.Errorf(cannotMount+": %w", err)
	}
	return fillToTheBrim(dir)
}

func fillByOneFile(dir string) error {
	store, old, err := storeWithOld(dir)
	if err != nil {
		return err
	}
	_, err = store.Stage(context.Background(), 0, writing(strings.Repeat("x", diskSize+1)))
	if !errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("stage beyond the bound: want %w, got %w", syscall.EFBIG, err)
	}
	fmt.Println("one file beyond the bound: refused")
	return stillGood(store, dir, old)
}

// fillToTheBrim leaves less and less room, so that the disk is full at each file in turn: the body, the record, a folder.
func fillToTheBrim(dir string) error {
	store, old, err := storeWithOld(dir)
	if err != nil {
		return err
	}
	ballast := filepath.Join(dir, ownDir, "ballast")
	refused, accepted := 0, 0
	for room := 0; room <= 48<<10; room += 4 << 10 {
		if err := fill(ballast, dir, room); err != nil {
			return err
		}
		object := storage.Object{Kind: "gitrepository", Namespace: "default", Name: fmt.Sprint("new-", room)}
		staged, err := store.Stage(context.Background(), 0, writing(strings.Repeat("x", 10<<10)))
		if err == nil {
			_, err = store.Publish(context.Background(), object, staged, recordFor(object, "new"))
			err = errors.Join(err, store.Discard(context.Background(), staged))
		}
		switch {
		case err == nil:
			accepted++
		case errors.Is(err, syscall.ENOSPC):
			refused++
			if _, err := store.Record(context.Background(), object); !errors.Is(err, storage.ErrNotFound) {
				return fmt.Errorf("%d bytes of room: a refused artifact has a record: %w", room, err)
			}
		default:
			return fmt.Errorf("%d bytes of room: %w", room, err)
		}
		if err := stillGood(store, dir, old); err != nil {
			return fmt.Errorf("%d bytes of room: %w", room, err)
		}
		if err := errors.Join(store.Delete(context.Background(), object), os.Remove(ballast)); err != nil {
			return err
		}
	}
	if refused < 2 || accepted < 2 {
		return fmt.Errorf("refused %d times and accepted %d times, which proves little", refused, accepted)
	}
	fmt.Printf("disk full: refused %d times, accepted %d times\n", refused, accepted)
	return nil
}

// fill takes all blocks of the file system but room.
func fill(ballast, dir string, room int) error {
	file, err := os.Create(ballast)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := io.Copy(file, io.LimitReader(zeros{}, diskSize)); !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("fill %s: want %w, got %w", dir, syscall.ENOSPC, err)
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return file.Truncate(max(0, info.Size()-int64(room)))
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func storeWithOld(dir string) (*Store, string, error) {
	store, err := Open(dir, Options{})
	if err != nil {
		return nil, "", err
	}
	staged, err := store.Stage(context.Background(), 0, writing("old"))
	if err != nil {
		return nil, "", err
	}
	record, err := store.Publish(context.Background(), podinfo, staged, recordFor(podinfo, "old"))
	return store, record.Current.Path, err
}

// stillGood checks that the old artifact is served and that no temporary file or unpublished body is left.
func stillGood(store *Store, dir, old string) error {
	if content, err := read(store, old); content != "old" {
		return fmt.Errorf("the old artifact: %q, %w", content, err)
	}
	leftovers, err := os.ReadDir(filepath.Join(dir, tmpDir))
	if err != nil || len(leftovers) > 0 {
		return fmt.Errorf("left in tmp: %v, %w", leftovers, err)
	}
	objects, err := store.Objects(context.Background())
	if err != nil {
		return err
	}
	blobs, err := os.ReadDir(filepath.Join(dir, blobsDir, "sha256"))
	if err != nil || len(blobs) > len(objects) {
		return fmt.Errorf("%d objects have %d blobs: %w", len(objects), len(blobs), err)
	}
	return nil
}
