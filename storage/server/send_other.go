//go:build !linux

package server

// sending is for Linux.
type sending struct{}

// announce is false: net/http sends files by itself, a chunk at a time.
func (p *place) announce() bool { return false }
