package variant

import (
	"cmp"
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/kpt"
)

// filler is what fills a point from a source whose content may not be known; not ok leaves the point as it is.
type filler func(kpt.Point, Source) (content map[string]any, ok bool)

// fromSource fills points with what the sources say.
func fromSource(_ kpt.Point, source Source) (content map[string]any, ok bool) {
	return source.Content, true
}

// complete says whether the sources have what they are to fill points with: a configuration that was read from a package has
// not.
func (c Config) complete() error {
	for _, source := range c.Sources {
		if source.Reason == "" && len(source.Content) == 0 {
			return fmt.Errorf("the content of %s %s is missing", source.Kind, source.Name)
		}
	}
	return nil
}

// fromLocal fills points with what they hold in the local package: what is injected is the controller's, and a change of it is
// none that people made.
func fromLocal(local *kpt.Resources) (filler, error) {
	points, err := local.Points()
	if err != nil {
		return nil, err
	}
	held := map[kpt.ID][]kpt.Point{}
	for _, point := range points {
		held[point.Origin()] = append(held[point.Origin()], point)
	}
	return func(point kpt.Point, _ Source) (map[string]any, bool) {
		same := held[point.Origin()]
		i := slices.IndexFunc(same, func(other kpt.Point) bool { return other.File() == point.File() })
		if i < 0 && len(same) != 1 {
			return nil, false
		}
		content, err := same[max(i, 0)].Content()
		return content, err == nil
	}, nil
}

// inject fills the points, and releases those that nothing fills.
func (c Config) inject(resources *kpt.Resources, fill filler) error {
	points, err := resources.Points()
	if err != nil {
		return err
	}
	for _, point := range points {
		i := choose(point, c.Sources)
		if i < 0 || c.Sources[i].Reason != "" {
			point.Release()
			continue
		}
		content, ok := fill(point, c.Sources[i])
		if !ok {
			continue
		}
		if err := point.Inject(c.Sources[i].Name, content); err != nil {
			return err
		}
	}
	return nil
}

// report makes the Kptfile say which points are filled, and wait for those that have to be.
func (c Config) report(resources *kpt.Resources) ([]State, error) {
	points, err := resources.Points()
	if err != nil {
		return nil, err
	}
	types, err := kpt.ConditionTypes(points)
	if err != nil {
		return nil, err
	}
	states := make([]State, len(points))
	gates := []string{}
	for i, point := range points {
		states[i] = c.state(point, types[i])
		if point.Required {
			gates = append(gates, types[i])
		}
	}
	slices.Sort(gates)
	conditions := make([]kpt.Condition, len(states))
	for i, state := range states {
		conditions[i] = state.Condition
	}
	slices.SortFunc(conditions, func(a, b kpt.Condition) int { return cmp.Compare(a.Type, b.Type) })
	kptfile, err := resources.Kptfile("")
	if err != nil {
		return nil, err
	}
	kptfile.SetInjectionStatus(gates, conditions)
	return states, nil
}

func (c Config) state(point kpt.Point, condition string) State {
	state := State{Point: point, Condition: kpt.Condition{Type: condition, Status: "False", Reason: ReasonNoResource}}
	i := choose(point, c.Sources)
	switch {
	case i < 0:
		state.Condition.Message = fmt.Sprintf("no resource %s was found for it", kindOf(point))
	case c.Sources[i].Reason != "":
		state.Condition.Reason, state.Condition.Message = c.Sources[i].Reason, c.Sources[i].Message
	default:
		state.Namespace, state.Name = c.Sources[i].Namespace, c.Sources[i].Name
		state.Condition.Status, state.Condition.Reason = "True", reasonInjected
		state.Condition.Message = fmt.Sprintf("injected resource %q from cluster", state.Name)
	}
	return state
}

func kindOf(point kpt.Point) string {
	if point.ID.Group == "" {
		return point.ID.Kind
	}
	return point.ID.Kind + "." + point.ID.Group
}
