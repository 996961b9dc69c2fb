//go:build linux && !amd64 && !arm64

package build

// deniedCalls knows no numbers.
func deniedCalls() (calls []uintptr, architecture uint32) { return nil, 0 }
