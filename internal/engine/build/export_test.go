package build

import "sluice.dev/sluice/internal/fair"

// Workers lets a test keep workers from others.
func (b *Builder) Workers() *fair.Pool { return b.workers }

// ReadFrame and Confine let a test be a worker that misbehaves.
func ReadFrame(r interface{ Read([]byte) (int, error) }) error {
	_, _, err := readFrame(r, maxJob)
	return err
}

// Confine is what a worker does first.
func Confine(memory, cpu int64) error { return confine(memory, cpu) }
