// Package extension has functions for packages beside those of this program: WebAssembly modules in registries, which run if
// operators allow their repository, and somebody has signed them whom the operators trust for it.
// It does not know what packages are, or where operators write down what they allow.
package extension

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/kpt/wasm"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/verify"
)

// Credentials reads what registries ask for from Secrets.
type Credentials interface {
	Registry(ctx context.Context, request auth.RegistryRequest) (credential.Registry, error)
}

// Options are what Functions work with. All are required but MaxSignatures and Memory.
type Options struct {
	Client      *registry.Client
	Credentials Credentials
	// Roots are the public authorities and logs behind keyless signatures.
	Roots *verify.TUFRoots
	// Namespace is where the Secrets are that the policy names, and Where what errors call the policy.
	Namespace, Where string
	// Engine runs modules. MaxModule bounds them, as it does in there.
	Engine    *wasm.Engine
	MaxModule int64
	// MaxSignatures is how many signatures of one artifact are looked at, 50 by default.
	MaxSignatures int
	// Dir is the folder that modules are kept in.
	Dir string
	// Memory is what fetching draws from; nil means no bound.
	Memory *memory.Budget
}

// Functions are those that operators allow. They may be used by many at a time, and implement function.Custom.
type Functions struct {
	options Options
	store   *store
	policy  atomic.Pointer[policy]
}

var _ function.Custom = (*Functions)(nil)

// New returns Functions none of which may run before Allow says which.
func New(options Options) *Functions {
	options.MaxSignatures = cmp.Or(options.MaxSignatures, 50)
	return &Functions{options: options, store: newStore(options.Dir)}
}

// Allow makes the text the policy. While one cannot be read, nothing is allowed; the error says why, and so does that of each
// function.
func (f *Functions) Allow(text string) error {
	made := f.parse(text)
	f.policy.Store(made)
	return made.broken
}

// Fingerprint implements function.Custom.
func (f *Functions) Fingerprint() string {
	if p := f.policy.Load(); p != nil {
		return p.fingerprint
	}
	return ""
}

// Check implements function.Custom.
func (f *Functions) Check(image string) error {
	_, _, err := f.find(image)
	return err
}

// find is the artifact, and what is asked for where it is kept.
func (f *Functions) find(image string) (artifact, *rule, error) {
	p := f.policy.Load()
	if p == nil {
		return artifact{}, nil, fmt.Errorf("%w: %s, which says what functions may run, was not read yet", function.ErrUnavailable, f.options.Where)
	}
	if p.broken != nil {
		return artifact{}, nil, fmt.Errorf("%w: %q: %s: %w", function.ErrUnknownFunction, image, f.options.Where, p.broken)
	}
	of, err := parseImage(image)
	if err != nil {
		return artifact{}, nil, fmt.Errorf("%w: %q: %w", function.ErrUnknownFunction, image, err)
	}
	if found := p.match(of.repository()); found != nil {
		return of, found, nil
	}
	return artifact{}, nil, fmt.Errorf("%w: %q: operators have to allow %s in %s", function.ErrUnknownFunction, image, of.repository(), f.options.Where)
}

// Run implements function.Custom. A module that is kept, and was proved to whom the policy trusts now, is run without asking the
// registry.
func (f *Functions) Run(ctx context.Context, call function.Call) error {
	of, by, err := f.find(call.Image)
	if err != nil {
		return err
	}
	module, err := f.module(ctx, of, by)
	if err != nil {
		return err
	}
	err = f.options.Engine.Run(ctx, wasm.Job{
		Module: module.Module, Namespace: memory.Namespace(ctx), Input: call.Input, Output: call.Output,
		Load: func(ctx context.Context) ([]byte, error) {
			if err := memory.Draw(ctx, module.Size); err != nil {
				return nil, err
			}
			content, err := f.store.read(key(of, by))
			if err != nil {
				return nil, fmt.Errorf("%w: read the module: %w", function.ErrUnavailable, err)
			}
			return content, nil
		},
	})
	if errors.Is(err, wasm.ErrTimeout) {
		return fmt.Errorf("%w: %w", function.ErrTimeout, err)
	}
	return err
}
