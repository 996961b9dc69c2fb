package health

import (
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sluice.dev/sluice/internal/transport"
)

// Readiness judges whether a dependency is ready. It is immutable.
type Readiness struct {
	// program is nil where the conventions of status tell.
	program *program
}

// Readiness compiles the expression of a dependency, over dep and self; "" means the conventions of status. Only an
// edit helps against the error.
func (l *Library) Readiness(expression string) (*Readiness, error) {
	if expression == "" {
		return &Readiness{}, nil
	}
	compiled, err := l.compile(source{expression, true})
	if err != nil {
		return nil, fmt.Errorf("readyExpr: %w", err)
	}
	return &Readiness{program: compiled}, nil
}

// Ready judges the dependency dep of the installation self; dep is nil when it does not exist, and self may be nil. The
// message says in one bounded, printable line why it is not ready, and quotes nothing of a Secret.
func (r *Readiness) Ready(dep, self *unstructured.Unstructured) (ready bool, message string) {
	ready, message = r.ready(dep, self)
	return ready, transport.Printable(message)
}

func (r *Readiness) ready(dep, self *unstructured.Unstructured) (ready bool, message string) {
	if dep == nil {
		return false, "it does not exist"
	}
	if r.program == nil {
		status, message := conventional(dep)
		return status == Current, message
	}
	values := map[string]any{"dep": dep.Object}
	if self != nil {
		values["self"] = self.Object
	}
	holds, err := r.program.holds(values, &atomic.Uint64{}) // Dependencies are few.
	switch {
	case holds:
		return true, ""
	case err != nil:
		return false, r.program.excuse(err, dep, self)
	}
	return false, fmt.Sprintf("the expression %q does not hold", r.program.Text) + because(dep)
}
