package build

// ReadFrame and Confine let a test be a worker that misbehaves.
func ReadFrame(r interface{ Read([]byte) (int, error) }) error {
	_, _, err := readFrame(r, maxJob)
	return err
}

// Confine is what a worker does first.
func Confine(memory, cpu int64) error { return confine(memory, cpu) }
