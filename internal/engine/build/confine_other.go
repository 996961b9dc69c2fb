//go:build !linux

package build

import (
	"errors"
	"os"
)

// confine is not possible: what needs a worker is not built.
func confine(int64, int64) error { return errors.ErrUnsupported }

// peak is not known.
func peak(*os.ProcessState) int64 { return 0 }
