package build

import "golang.org/x/sys/unix"

// deniedCalls are the numbers of the calls that are refused, and the architecture whose numbers they are.
func deniedCalls() (calls []uintptr, architecture uint32) {
	return append(commonCalls(),
		unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_UNLINK, unix.SYS_RMDIR, unix.SYS_LINK, unix.SYS_SYMLINK, unix.SYS_MKDIR, unix.SYS_MKNOD,
		unix.SYS_RENAME, unix.SYS_RENAMEAT, unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_SETRLIMIT,
	), unix.AUDIT_ARCH_X86_64
}
