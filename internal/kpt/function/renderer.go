package function

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/memory"
)

// ErrTimeout says that rendering took longer than it may.
var ErrTimeout = errors.New("rendering took too long")

// Options bound what rendering takes. Zero is the default.
type Options struct {
	// Timeout bounds the time in which one package is rendered, 30 seconds by default.
	Timeout time.Duration
	// MaxBytes bounds all contents of a package, before and after, 64 MiB by default.
	MaxBytes int64
	// MaxItems bounds the objects of a package, 20,000 by default.
	MaxItems int
	// MaxNodes bounds the values in all of a package's YAML, two million by default: two bytes can be a value, which takes a
	// hundred times that in memory.
	MaxNodes int64
	// CacheBytes bounds the contents of the rendered packages that are kept, 32 MiB by default.
	CacheBytes int64
	// Custom has more functions. Nil means that there are none but Names.
	Custom Custom
	// Schemas are those that kubeconform validates by. Without them it has those alone that are in a package.
	Schemas Schemas
	// Observe is told of each rendering, and where isKnown of each time that a package was kept. Nil means nobody.
	Observe func(isKnown bool, err error)
}

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.MaxBytes = cmp.Or(o.MaxBytes, 64<<20)
	o.MaxItems = cmp.Or(o.MaxItems, 20_000)
	o.MaxNodes = cmp.Or(o.MaxNodes, 2_000_000)
	o.CacheBytes = cmp.Or(o.CacheBytes, 32<<20)
	if o.Observe == nil {
		o.Observe = func(bool, error) {}
	}
	return o
}

// Result is what one function did.
type Result struct {
	// Package is the folder of the package whose pipeline the function is in, "" for the root.
	Package string
	// Function is what the function is called, and Entry the name that its entry in the pipeline has.
	Function, Entry string
	// Validator says that the function was run to see whether it fails; what it changed was thrown away.
	Validator bool
	// Changed counts the values that were set, and Notes are remarks for people.
	Changed int
	Notes   []string
}

// Renderer renders packages. It may be used by many at a time.
type Renderer struct {
	options Options
	shared  *sharing
}

// New returns a Renderer.
func New(options Options) *Renderer {
	options = options.withDefaults()
	r := &Renderer{options: options}
	r.shared = &sharing{render: r.render, observe: options.Observe, kept: newCache(options.CacheBytes), flights: map[string]*flight{}}
	return r
}

// unvalidatedKey is that of WithoutValidators.
type unvalidatedKey struct{}

// WithoutValidators has Render run mutators alone: what is made once more was good when it was made first.
func WithoutValidators(ctx context.Context) context.Context {
	return context.WithValue(ctx, unvalidatedKey{}, true)
}

func unvalidated(ctx context.Context) bool { return ctx.Value(unvalidatedKey{}) != nil }

// Render runs the pipelines of the package and of its subpackages, and returns what they make of it; the package that it gets is
// not changed. The result follows from the package, and from the schemas that it is validated by, and rendering it again changes nothing more, if no function undoes
// what one after it does. Rendered packages are kept; one that several ask for is rendered once. What rendering takes is drawn
// from the account of memory in the context.
//
// Errors are ErrUnknownFunction, ErrTooLarge, ErrTimeout, a *kpt.SyntaxError, what else a function has to say, all of them in
// an *Error, and besides those of memory and the cause of the context's end.
func (r *Renderer) Render(ctx context.Context, p kpt.Package) (kpt.Package, []Result, error) {
	key := p.Digest()
	if r.options.Custom != nil {
		// What may not run any more is not known any more either.
		key += " " + r.options.Custom.Fingerprint()
	}
	done, found := r.shared.known(key)
	switch {
	case unvalidated(ctx):
		if key += " unvalidated"; !found {
			done, found = r.shared.known(key)
		}
	case found:
		same, err := done.schemas.same(ctx, r.options.Schemas)
		if err != nil {
			return nil, nil, err
		}
		if !same {
			r.shared.drop(key, done)
			found = false
		}
	}
	if !found {
		var err error
		if done, err = r.anew(ctx, key, p); err != nil {
			return nil, nil, err
		}
	} else {
		r.options.Observe(true, nil)
	}
	return done.pkg, cloneResults(done.results), nil
}

// rendered is what became of a package.
type rendered struct {
	pkg     kpt.Package
	results []Result
	// schemas are those that it was validated by. What is kept is good as long as they are the same.
	schemas usedSchemas
}

// perNode is about what a value takes in memory, beside its text.
const perNode = 200

// anew renders a package that is not kept, or waits for who does.
func (r *Renderer) anew(ctx context.Context, key string, p kpt.Package) (*rendered, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	total, nodes := weigh(p)
	switch {
	case total > r.options.MaxBytes:
		return nil, &Error{Err: fmt.Errorf("%w: it has %d bytes, and %d are allowed", ErrTooLarge, total, r.options.MaxBytes)}
	case nodes > r.options.MaxNodes:
		return nil, &Error{Err: fmt.Errorf("%w: it has some %d values, and %d are allowed", ErrTooLarge, nodes, r.options.MaxNodes)}
	}
	cost := 2*total + perNode*nodes
	if err := memory.Draw(ctx, cost); err != nil {
		return nil, err
	}
	defer memory.Return(ctx, cost)
	return r.shared.join(ctx, key, p)
}

// render does it, in its time.
func (r *Renderer) render(ctx context.Context, p kpt.Package) (*rendered, error) {
	late := &Error{Err: fmt.Errorf("%w: more than %v", ErrTimeout, r.options.Timeout)}
	ctx, cancel := context.WithTimeoutCause(ctx, r.options.Timeout, late)
	defer cancel()
	total, nodes := weigh(p)
	room := &room{
		left: r.options.MaxBytes - total, most: r.options.MaxBytes, values: r.options.MaxNodes - nodes,
		draw: func(bytes int64) error { return memory.Draw(ctx, bytes) },
	}
	defer func() { memory.Return(ctx, perNode*room.drawn) }()
	done, err := r.run(ctx, p, room)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return done, err
}
