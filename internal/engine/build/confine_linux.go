package build

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// confine limits this process for good. Memory is in bytes, beyond what it has; processor time is in seconds.
func confine(memory, cpu int64) error {
	// If memory gets scarce, this is what goes. Where it cannot be said, the limits below remain.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o600)
	mapped, private, err := statm()
	if err != nil {
		return err
	}
	// The runtime reserves address space by the large piece and uses it by the small one: the one limit is about what is
	// reserved, the other about what is used.
	const reserve = 192 << 20
	limits := []struct {
		resource  int
		soft, top uint64
	}{
		{unix.RLIMIT_AS, mapped + sizeOf(memory) + reserve, 0},
		{unix.RLIMIT_DATA, private + sizeOf(memory), 0},
		// At the first the runtime says why it ends; at the second nothing does.
		{unix.RLIMIT_CPU, sizeOf(cpu), sizeOf(cpu) + 1},
		{unix.RLIMIT_FSIZE, 0, 0},
		{unix.RLIMIT_CORE, 0, 0},
	}
	for _, l := range limits {
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.soft, Max: max(l.soft, l.top)}); err != nil {
			return fmt.Errorf("set limit %d: %w", l.resource, err)
		}
	}
	return filterCalls()
}

// peak is the most memory that an ended process held, in bytes.
func peak(state *os.ProcessState) int64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return usage.Maxrss << 10 // getrusage(2): in KiB
}

func sizeOf(n int64) uint64 { return uint64(max(n, 0)) }

// statm is what is mapped and what of it is private data, in bytes: proc(5).
func statm() (mapped, private uint64, err error) {
	content, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, 0, err
	}
	fields := bytes.Fields(content)
	if len(fields) < 6 {
		return 0, 0, fmt.Errorf("read statm: %d fields", len(fields))
	}
	page := sizeOf(int64(os.Getpagesize()))
	if mapped, err = strconv.ParseUint(string(fields[0]), 10, 64); err != nil {
		return 0, 0, err
	}
	private, err = strconv.ParseUint(string(fields[5]), 10, 64)
	return mapped * page, private * page, err
}

// filterCalls takes from all threads of the process the calls that a build has no use for: it can open no file, reach no
// network, start no program and touch no other process. See seccomp(2) and the kernel's seccomp_filter.rst.
func filterCalls() error {
	denied, architecture := deniedCalls()
	if architecture == 0 {
		return nil // The file system of the build and the missing PATH have to do on other processors.
	}
	const (
		load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		above = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		give  = unix.BPF_RET | unix.BPF_K
		deny  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		// From here on calls are those of another convention with their own numbers.
		otherConvention = 0x40000000
	)
	filter := []unix.SockFilter{
		{Code: load, K: 4}, // the architecture
		{Code: equal, K: architecture, Jt: 1},
		{Code: give, K: deny},
		{Code: load, K: 0}, // the number of the call
		{Code: above, K: otherConvention, Jf: 1},
		{Code: give, K: deny},
	}
	for _, call := range denied {
		filter = append(filter, unix.SockFilter{Code: equal, K: uint32(call), Jf: 1}, unix.SockFilter{Code: give, K: deny}) //nolint:gosec // Calls are few.
	}
	filter = append(filter, unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ALLOW})
	// The one who sets the filter must be unable to gain rights; the filter takes the other threads along in this too.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]} //nolint:gosec // A hundred.
	//nolint:gosec // The kernel wants a pointer.
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno == unix.ENOSYS || errno == unix.EINVAL {
		return nil // A kernel without it, or one that is played by a sandbox.
	}
	if errno != 0 {
		return fmt.Errorf("filter system calls: %w", errno)
	}
	return nil
}

// commonCalls are refused on every architecture.
func commonCalls() []uintptr {
	return []uintptr{
		unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_UNLINKAT, unix.SYS_LINKAT, unix.SYS_SYMLINKAT, unix.SYS_MKDIRAT,
		unix.SYS_MKNODAT, unix.SYS_RENAMEAT2, unix.SYS_FCHMODAT, unix.SYS_FCHOWNAT, unix.SYS_TRUNCATE, unix.SYS_MOUNT, unix.SYS_UMOUNT2,
		unix.SYS_CHROOT, unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_EXECVE, unix.SYS_EXECVEAT,
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_OPEN, unix.SYS_KILL, unix.SYS_PRLIMIT64,
		unix.SYS_SETNS, unix.SYS_UNSHARE, unix.SYS_BPF, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_IO_URING_SETUP,
		unix.SYS_USERFAULTFD, unix.SYS_PERF_EVENT_OPEN,
	}
}
