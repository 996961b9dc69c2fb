package source

import (
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/source"
)

// Shared is what all source controllers work with.
type Shared struct {
	kernel.Shell

	Pipeline *source.Pipeline
	Address  Address
	// Backoff spreads the retries of objects that fail.
	Backoff *kernel.Backoff
}

// newKernel puts the shell round a kind.
func newKernel[O kernel.Object](k *kind[O]) *kernel.Kernel[O, source.Outcome] {
	return kernel.New(k.shared.Shell, k, Finalizer, k.shared.Backoff)
}
