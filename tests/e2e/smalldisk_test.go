package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	diskSize = 4 << 20
	// sharedMemory is where systems have a tmpfs for everybody; of at most largestDisk bytes, a test may fill it.
	sharedMemory = "/dev/shm"
	largestDisk  = 256 << 20
)

// smallDisk is a file system that a test can fill without harm to others.
type smallDisk struct {
	// storage is the folder for artifacts on it, where the program finds it.
	storage string
	// prepare has a disk made just before the program starts, where nobody but the program sees it, an empty one for
	// each start; nil when the disk is there already.
	prepare func(*exec.Cmd)
}

// newSmallDisk finds a way to a small disk that this user may take: a tmpfs mounted for all to see, one in a mount
// namespace that the program has for itself, the system's shared memory. The disk goes away after everything that is
// begun later in the test.
func newSmallDisk(t *testing.T) *smallDisk {
	t.Helper()
	var refused []error
	for _, way := range []func(*testing.T) (*smallDisk, error){mountedDisk, namespacedDisk, sharedDisk} {
		disk, err := way(t)
		if err == nil {
			return disk
		}
		t.Logf("a small disk: %v", err)
		refused = append(refused, err)
	}
	t.Fatalf("a full storage needs a small file system, and none is to be had here:\n%v\n"+
		"Allow CAP_SYS_ADMIN to root, or user namespaces (kernel.unprivileged_userns_clone, user.max_user_namespaces, "+
		"a container's seccomp profile), or make %s a tmpfs of at most %d MiB (docker run --shm-size=64m).",
		errors.Join(refused...), sharedMemory, largestDisk>>20)
	return nil
}

func mountedDisk(t *testing.T) (*smallDisk, error) {
	t.Helper()
	top := t.TempDir()
	if err := mountDisk(top); err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		// A process that another test is just starting may still have a file of it open.
		if err := unix.Unmount(top, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return &smallDisk{storage: storageOn(top)}, nil
}

// mountDisk mounts a small tmpfs with a folder for artifacts in it.
func mountDisk(top string) error {
	if err := unix.Mount("tmpfs", top, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", diskSize)); err != nil {
		return fmt.Errorf("mount a tmpfs: %w", err)
	}
	return os.Mkdir(storageOn(top), 0o700)
}

func storageOn(top string) string { return filepath.Join(top, "storage") }

// sharedDisk is for one test at a time, of whatever checkout.
func sharedDisk(t *testing.T) (*smallDisk, error) {
	t.Helper()
	all, err := os.Open(sharedMemory)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = all.Close() })
	if err := unix.Flock(int(all.Fd()), unix.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock %s: %w", sharedMemory, err)
	}
	free, err := roomOn(all)
	if err != nil {
		return nil, err
	}
	if free < diskSize {
		return nil, fmt.Errorf("%s has %d bytes of room, want %d", sharedMemory, free, diskSize)
	}
	storage, err := os.MkdirTemp(sharedMemory, "sluice-e2e-") //nolint:usetesting // It has to be on this file system.
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(storage); err != nil {
			t.Error(err)
		}
	})
	return &smallDisk{storage: storage}, nil
}

// roomOn is the free bytes of the tmpfs that the file is on. Another or a larger file system is an error.
func roomOn(file *os.File) (int64, error) {
	var disk unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &disk); err != nil {
		return 0, fmt.Errorf("look at the file system of %s: %w", file.Name(), err)
	}
	block := uint64(disk.Bsize)
	if disk.Type != unix.TMPFS_MAGIC || disk.Blocks == 0 || disk.Blocks > largestDisk/block {
		return 0, fmt.Errorf("%s is on a file system of type %#x with %d blocks of %d bytes, want a tmpfs of at most %d bytes",
			file.Name(), disk.Type, disk.Blocks, block, largestDisk)
	}
	return int64(disk.Bavail * block), nil
}

// seen is the folder of artifacts as the test finds it while the program runs in the process.
func (d *smallDisk) seen(pid int) string {
	if d.prepare == nil {
		return d.storage
	}
	return filepath.Join("/proc", strconv.Itoa(pid), "root", d.storage)
}

// fill leaves so many bytes of room on the disk of the running program, until the returned function makes room again.
func (d *smallDisk) fill(t *testing.T, pid int, room int64) func() {
	t.Helper()
	// It lies beside the folder of artifacts, where the program does not look.
	name := d.seen(pid) + ".ballast"
	ballast, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	free, err := roomOn(ballast)
	if err == nil {
		err = unix.Fallocate(int(ballast.Fd()), 0, 0, free-room)
	}
	remove := func() error { // The disk may be gone with its process.
		if err := os.Remove(name); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	t.Cleanup(func() {
		if err := remove(); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(err, ballast.Close()); err != nil {
		t.Fatalf("take all but %d of %d bytes: %v", room, free, err)
	}
	return func() {
		t.Helper()
		if err := remove(); err != nil {
			t.Fatal(err)
		}
	}
}
