//go:build !linux

package local

import (
	"errors"
	"os"
	"syscall"
)

// errCorrupted is how a file system says that what it has on the disk makes no sense.
const errCorrupted = syscall.EIO

// openBeneath is for Linux.
func openBeneath(syscall.RawConn, string) (*os.File, error) { return nil, errors.ErrUnsupported }

// dropCache does nothing: only Linux can be asked to forget a file's bytes.
func dropCache(*os.File) {}
