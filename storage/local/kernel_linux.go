package local

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// errCorrupted is how a file system says that what it has on the disk makes no sense.
const errCorrupted = syscall.EUCLEAN

// openBeneath opens a file below the folder in one step, and follows no links on the way.
func openBeneath(dir syscall.RawConn, name string) (*os.File, error) {
	how := unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	}
	var fd int
	var openErr error
	err := dir.Control(func(at uintptr) { fd, openErr = unix.Openat2(int(at), name, &how) })
	if err := errors.Join(err, openErr); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// dropCache asks the kernel to forget the file's bytes, so that the next pass reads the disk. The kernel may decline.
func dropCache(file *os.File) {
	_ = unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED)
}
