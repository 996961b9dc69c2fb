package testenv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Build builds the program into dir and returns its path. The program is kept as well, for the next one who asks for it with these
// flags: the go command links nothing that has not changed, and to link takes it half a minute.
func Build(ctx context.Context, dir string, flags ...string) (string, error) {
	binary := filepath.Join(dir, "sluice")
	kept, release, err := keep(flags)
	if err != nil {
		return binary, build(ctx, binary, flags) // Nobody can write there.
	}
	defer release()
	if err := build(ctx, kept, flags); err != nil {
		return "", err
	}
	if os.Link(kept, binary) == nil {
		return binary, nil
	}
	// The folder is on another disk.
	if out, err := exec.CommandContext(ctx, "cp", kept, binary).CombinedOutput(); err != nil {
		return "", fmt.Errorf("copy sluice: %w: %s", err, out)
	}
	return binary, nil
}

func build(ctx context.Context, binary string, flags []string) error {
	// Without what debuggers need, half as much is linked.
	build := exec.CommandContext(ctx, "go", append(append([]string{"build", "-buildvcs=false", "-ldflags=-s -w"}, flags...), "-o", binary, ".")...)
	build.Dir = Root()
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build sluice: %w: %s", err, out)
	}
	return nil
}

// keep says where the program that is built with these flags is kept, for nobody else until it is released.
func keep(flags []string) (binary string, release func(), err error) {
	top := os.Getenv("SLUICE_CACHE")
	if top == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", nil, err
		}
		top = filepath.Join(user, "sluice")
	}
	folder := filepath.Join(top, "program"+strings.Join(flags, ""))
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return "", nil, err
	}
	lock, err := os.OpenFile(filepath.Join(folder, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", nil, errors.Join(err, lock.Close())
	}
	return filepath.Join(folder, "sluice"), func() { _ = lock.Close() }, nil
}

// DependOnSources opens every file that the program is built from. The go command remembers which files a test opens
// and reuses its result only while they stay as they are; it sees neither what TestMain opens before it runs the tests,
// nor what a compiler reads.
func DependOnSources() error {
	for _, top := range []string{"main.go", "go.mod", "go.sum", "api", "controllers", "internal", "storage"} {
		err := filepath.WalkDir(filepath.Join(Root(), top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := os.Open(path)
			if err != nil {
				return err
			}
			return file.Close()
		})
		if err != nil {
			return fmt.Errorf("look at the sources: %w", err)
		}
	}
	return nil
}
