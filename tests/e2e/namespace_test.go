package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The test binary, started with these in its environment, mounts a small disk and becomes another program.
const (
	diskVariable    = "SLUICE_E2E_DISK"    // where it mounts the disk; without it, it runs tests
	programVariable = "SLUICE_E2E_PROGRAM" // what it becomes; without it, it ends well
)

// namespacedDisk is mounted in a mount namespace that the program is started in, and goes away with it. The user
// namespace around it, in which this user is root, is what allows that to those who may not mount otherwise.
func namespacedDisk(t *testing.T) (*smallDisk, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	top := t.TempDir()
	prepare := func(command *exec.Cmd) {
		command.Env = append(command.Environ(), diskVariable+"="+top)
		if command.Path != self {
			command.Env = append(command.Env, programVariable+"="+command.Path)
		}
		command.Path = self
		command.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		}
	}
	probe := exec.CommandContext(t.Context(), self)
	prepare(probe)
	if out, err := probe.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mount a tmpfs in a user and mount namespace: %w %s", err, out)
	}
	return &smallDisk{storage: storageOn(top), prepare: prepare}, nil
}

// inNamespace is the child's part. It returns only when something is wrong, or there is no program to become.
func inNamespace(top string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	if err := mountDisk(top); err != nil {
		return err
	}
	next := os.Getenv(programVariable)
	if next == "" {
		return nil
	}
	for _, variable := range []string{diskVariable, programVariable} {
		if err := os.Unsetenv(variable); err != nil {
			return err
		}
	}
	return syscall.Exec(next, os.Args, os.Environ())
}
