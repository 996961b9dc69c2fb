//go:build !linux

package local

import (
	"os"
	"syscall"
)

// errCorrupted is how a file system says that what it has on the disk makes no sense.
const errCorrupted = syscall.EIO

// dropCache does nothing: only Linux can be asked to forget a file's bytes.
func dropCache(*os.File) {}
