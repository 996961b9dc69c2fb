package function

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"sluice.dev/sluice/internal/kpt"
)

// ErrTimeout says that rendering took longer than it may.
var ErrTimeout = errors.New("rendering took too long")

// Options bound what rendering takes. Zero is the default.
type Options struct {
	// Timeout bounds the time in which one package is rendered, 30 seconds by default. Waiting for other packages does not count.
	Timeout time.Duration
	// MaxBytes bounds all contents of a package, before and after, 64 MiB by default.
	MaxBytes int64
	// MaxItems bounds the objects of a package, 20,000 by default.
	MaxItems int
	// CacheBytes bounds the contents of the rendered packages that are kept, 32 MiB by default.
	CacheBytes int64
	// WorkBytes bounds the YAML of all packages that are rendered at a time, 8 MiB by default; in memory it takes some thirty
	// times that. A package with more is rendered when there is no other.
	WorkBytes int64
}

func (o Options) withDefaults() Options {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 64 << 20
	}
	if o.MaxItems == 0 {
		o.MaxItems = 20_000
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 32 << 20
	}
	if o.WorkBytes == 0 {
		o.WorkBytes = 8 << 20
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
	work    *semaphore.Weighted

	mu      sync.Mutex
	kept    *cache
	flights map[string]*flight
}

// New returns a Renderer.
func New(options Options) *Renderer {
	options = options.withDefaults()
	return &Renderer{
		options: options, work: semaphore.NewWeighted(options.WorkBytes),
		kept: newCache(options.CacheBytes), flights: map[string]*flight{},
	}
}

// Render runs the pipelines of the package and of its subpackages, and returns what they make of it; the package that it gets is
// not changed. The result follows from the package alone, and rendering it again changes nothing more, if no function undoes
// what one after it does. Rendered packages are kept; one that several ask for is rendered once.
//
// Errors are ErrUnknownFunction, ErrTooLarge, ErrTimeout, a *kpt.SyntaxError, what else a function has to say, all of them in
// an *Error, and the cause of the context's end.
func (r *Renderer) Render(ctx context.Context, p kpt.Package) (kpt.Package, []Result, error) {
	done, err := r.join(ctx, p.Digest(), p)
	if err != nil {
		return nil, nil, err
	}
	return done.pkg, cloneResults(done.results), nil
}

// rendered is what became of a package.
type rendered struct {
	pkg     kpt.Package
	results []Result
}

// render does it, once there is room for it beside others.
func (r *Renderer) render(ctx context.Context, p kpt.Package) (*rendered, error) {
	total, yamlBytes := weigh(p)
	if total > r.options.MaxBytes {
		return nil, &Error{Err: fmt.Errorf("%w: it has %d bytes, and %d are allowed", ErrTooLarge, total, r.options.MaxBytes)}
	}
	weight := min(yamlBytes, r.options.WorkBytes)
	if err := r.work.Acquire(ctx, weight); err != nil {
		return nil, context.Cause(ctx)
	}
	defer r.work.Release(weight)
	ctx, cancel := context.WithTimeoutCause(ctx, r.options.Timeout, &Error{Err: fmt.Errorf("%w: more than %v", ErrTimeout, r.options.Timeout)})
	defer cancel()
	done, err := r.run(ctx, p, &room{left: r.options.MaxBytes - total, most: r.options.MaxBytes})
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return done, err
}

// weigh counts all bytes, and those that are parsed.
func weigh(p kpt.Package) (total, yamlBytes int64) {
	for name, file := range p {
		bytes := int64(len(name) + len(file.Content))
		total += bytes
		if ext := path.Ext(name); ext == ".yaml" || ext == ".yml" || path.Base(name) == kpt.KptfileName {
			yamlBytes += bytes
		}
	}
	return total, yamlBytes
}
