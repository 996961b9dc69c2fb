package fanout

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

// gates compiles the expressions of gates.
func (c *compiler) gates(rollout *packagesv1.Rollout) (all []text) {
	if rollout == nil {
		return nil
	}
	for i, gate := range rollout.Gates {
		if gate.ReadyExpr != "" {
			all = append(all, c.expression(fmt.Sprintf("spec.rollout.gates[%d].readyExpr", i), gate.ReadyExpr, cel.BoolType))
		}
	}
	return all
}

// Ready tells whether the target is as the gates of the set's rollout want it; nil if it is. Repo is where its variant is.
func (s *Set) Ready(t Target, seen map[string]any, repositories Repositories, repo string) error {
	values := t.values(seen)
	values[repository], _ = repositories(repo)
	for _, gate := range s.gates {
		result, _, err := gate.program.Eval(values)
		if err != nil {
			return fmt.Errorf("%s: the expression %q: %w", gate.field, gate.program.Text, err)
		}
		if holds, ok := result.(types.Bool); !ok || !bool(holds) {
			return fmt.Errorf("%s: the expression %q does not hold", gate.field, gate.program.Text)
		}
	}
	return nil
}
