package build

import "golang.org/x/sys/unix"

// deniedCalls are the numbers of the calls that are refused, and the architecture whose numbers they are.
func deniedCalls() (calls []uintptr, architecture uint32) {
	return commonCalls(), unix.AUDIT_ARCH_AARCH64
}
