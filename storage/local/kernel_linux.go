package local

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// errCorrupted is how a file system says that what it has on the disk makes no sense.
const errCorrupted = syscall.EUCLEAN

// dropCache asks the kernel to forget the file's bytes, so that the next pass reads the disk. The kernel may decline.
func dropCache(file *os.File) {
	_ = unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED)
}
