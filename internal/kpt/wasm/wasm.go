// Package wasm runs WebAssembly modules that are written for WASI preview 1, in process and cut off from everything: what is
// written to a module's standard input is all that it can know, and what it writes is all that it can do.
// It does not know where modules come from, who may run one, or what goes in and out.
package wasm

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/memory"
)

// Options bound what modules take. Zero is the default.
type Options struct {
	// MaxModule bounds a module, 16 MiB by default.
	MaxModule int64
	// MaxMemory bounds the memory of one module that runs, 64 MiB by default.
	MaxMemory int64
	// MaxOutput bounds what one run may write, 64 MiB by default.
	MaxOutput int64
	// Timeout bounds one run, ten seconds by default; to compile a module is no part of it.
	Timeout time.Duration
	// KeptBytes bounds what compiled modules take that are kept, 64 MiB by default.
	KeptBytes int64
	// Runs is how many modules are compiled or run at once, one by default; half of them for one namespace.
	Runs int64
	// Memory is what compiling and running draw from; nil means no bound.
	Memory *memory.Budget
}

func (o Options) withDefaults() Options {
	o.MaxModule = cmp.Or(o.MaxModule, 16<<20)
	o.MaxMemory = cmp.Or(o.MaxMemory, 64<<20)
	o.MaxOutput = cmp.Or(o.MaxOutput, 64<<20)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.KeptBytes = cmp.Or(o.KeptBytes, 64<<20)
	o.Runs = cmp.Or(o.Runs, 1)
	return o
}

// Engine compiles and runs modules. It may be used by many at a time.
type Engine struct {
	options Options
	runtime wazero.Runtime
	slots   *fair.Pool
	kept    *kept
}

// New returns an Engine, which has to be closed.
func New(options Options) (*Engine, error) {
	options = options.withDefaults()
	ctx := context.Background()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().
		WithCloseOnContextDone(true). // Or a module that loops would never end.
		WithDebugInfoEnabled(false))
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, runtime); err != nil {
		return nil, fmt.Errorf("offer %s: %w", preview1, err)
	}
	return &Engine{options: options, runtime: runtime, slots: fair.New(options.Runs, 0), kept: newKept(options.KeptBytes)}, nil
}

// Close ends what runs and lets go of all that was compiled.
func (e *Engine) Close() error { return e.runtime.Close(context.Background()) }

// Job is one run of a module.
type Job struct {
	// Module is the digest of the module, and Load brings its bytes; it is asked where the module is not kept.
	Module string
	Load   func(context.Context) ([]byte, error)
	// Namespace is whose turn it is.
	Namespace string
	// Input is what the module reads.
	Input []byte
	// Output is given what the module has written, once it has ended well. What that takes is drawn from the context's account;
	// where there was too little of it, the module is run once more.
	Output func(ctx context.Context, output []byte) error
}

// Run does the job when its turn comes. Nothing of it lasts but what Output does. Errors are ErrModule for a module that can never
// run, ErrTimeout, ErrTooMuch, an *ExitError, and besides those of Load, of Output and of memory, and the cause of the context's
// end.
func (e *Engine) Run(ctx context.Context, job Job) error {
	slot, err := e.slots.Take(ctx, fair.Wish{Namespace: job.Namespace})
	if err != nil {
		return fmt.Errorf("wait for a turn to run a module: %w", err)
	}
	defer slot.Release()
	// Turns are the namespaces', and whose turn it is may have all the memory that those who run have.
	return e.options.Memory.Do(ctx, fair.Wish{}, nil, func(ctx context.Context) error {
		held, err := e.compiled(ctx, job)
		if err != nil {
			return err
		}
		defer e.kept.release(held) //nolint:contextcheck // It gives memory back, which does not fail.
		return e.run(ctx, held, job)
	})
}
