package fanout

import (
	"errors"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"github.com/hashicorp/golang-lru/v2/simplelru"
	"k8s.io/apiserver/pkg/cel/library"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/expression"
)

const (
	// maxBytes is how much text the expressions of a set may have, and maxKeptBytes those of all sets that are kept. Compiled,
	// it takes some two hundred times that: 25 MiB of memory, for hundreds of sets as people write them.
	maxBytes     = 64 << 10
	maxKeptBytes = 128 << 10
	// maxKept is how many sets are kept, however short their expressions are.
	maxKept = 4096
)

// Compiler compiles each set once, and keeps what came of it; the longest unused goes first. It is safe for concurrent use.
type Compiler struct {
	// Compiled is told of each set that is compiled, rather than known from before; nil for nobody.
	Compiled func()

	env *expression.Env

	mu    sync.Mutex
	kept  *simplelru.LRU[string, compiled]
	bytes int
}

// compiled is what came of a set. What is wrong with one is kept as well: it is as much work to find out.
type compiled struct {
	set   *Set
	err   error
	bytes int
}

// NewCompiler makes a Compiler that has compiled nothing yet.
func NewCompiler() (*Compiler, error) {
	env, err := expression.New(maxCost, libraries()...)
	if err != nil {
		return nil, err
	}
	c := &Compiler{env: env}
	// It fails for a size of nothing alone.
	c.kept, _ = simplelru.NewLRU(maxKept, func(_ string, gone compiled) { c.bytes -= gone.bytes })
	return c, nil
}

// libraries are those of Kubernetes' functions whose work the length of what they get bounds. Quantities are not among them: to read
// '1e-10000000' takes seconds.
func libraries() []cel.EnvOption {
	return []cel.EnvOption{
		ext.Strings(ext.StringsVersion(0)), // From 1 on it has format, which makes texts of any length.
		library.Lists(), library.IP(), library.CIDR(), library.URLs(), library.SemverLib(library.SemverVersion(1)), library.Format(),
	}
}

// Compile compiles the expressions of a set. The key says which set it is, and which edit of it: what was compiled under a key
// is not looked at again. The error names all that are wrong by their fields; only an edit helps.
func (c *Compiler) Compile(key string, spec *packagesv1.PackageVariantSetSpec) (*Set, error) {
	c.mu.Lock()
	known, ok := c.kept.Get(key)
	c.mu.Unlock()
	if ok {
		return known.set, known.err
	}
	made := c.compile(spec.DeepCopy())
	if c.Compiled != nil {
		c.Compiled()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept.Remove(key)
	c.bytes += made.bytes
	c.kept.Add(key, made)
	for c.bytes > maxKeptBytes {
		c.kept.RemoveOldest()
	}
	return made.set, made.err
}

func (c *Compiler) compile(spec *packagesv1.PackageVariantSetSpec) compiled {
	each := &compiler{env: c.env}
	s := &Set{upstream: spec.Upstream}
	for i := range spec.Targets {
		s.templates = append(s.templates, each.template(fmt.Sprintf("spec.targets[%d].template", i), spec.Targets[i].Template))
	}
	s.gates = each.gates(spec.Rollout)
	if each.bytes > maxBytes {
		each.problems = append(each.problems, fmt.Errorf("the expressions of the set have %d bytes together; at most %d are allowed: make several sets of it", each.bytes, maxBytes))
	}
	if err := errors.Join(each.problems...); err != nil {
		return compiled{err: err, bytes: min(each.bytes, maxBytes)}
	}
	return compiled{set: s, bytes: min(each.bytes, maxBytes)}
}
