package variant

import (
	"cmp"
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/kpt"
)

// filler is what fills points and slots whose sources may not say with what; not ok leaves one as it is.
type filler struct {
	point func(kpt.Point, Source) (content map[string]any, ok bool)
	// slots are nil where the bindings say what there is to hold.
	slots *held
}

// fromSource fills points with what the sources and bindings say.
func fromSource() filler {
	return filler{point: func(_ kpt.Point, source Source) (map[string]any, bool) { return source.Content, true }}
}

// complete says whether the sources have what they are to fill points with: a configuration that was read from a package has
// not.
func (c Config) complete() error {
	for _, source := range c.Sources {
		if source.Reason == "" && len(source.Content) == 0 {
			return fmt.Errorf("the content of %s %s is missing", source.Kind, source.Name)
		}
	}
	for _, bound := range c.Bindings {
		if bound.Reason == "" && bound.Within == nil && bound.Value == nil {
			return fmt.Errorf("the value of the binding %s is missing", bound.Name)
		}
	}
	return nil
}

// fromLocal fills points with what they hold in the local package: what is injected is the controller's, and a change of it is
// none that people made.
func fromLocal(local *kpt.Resources) (filler, error) {
	points, err := local.Points()
	if err != nil {
		return filler{}, err
	}
	slots, err := heldBy(local)
	if err != nil {
		return filler{}, err
	}
	held := map[kpt.ID][]kpt.Point{}
	for _, point := range points {
		held[point.Origin()] = append(held[point.Origin()], point)
	}
	return filler{slots: slots, point: func(point kpt.Point, _ Source) (map[string]any, bool) {
		same := held[point.Origin()]
		i := slices.IndexFunc(same, func(other kpt.Point) bool { return other.File() == point.File() })
		if i < 0 && len(same) != 1 {
			return nil, false
		}
		content, err := same[max(i, 0)].Content()
		return content, err == nil
	}}, nil
}

// inject fills the points, and releases those that nothing fills.
func (c Config) inject(resources *kpt.Resources, fill filler) error {
	points, err := resources.Points()
	if err != nil {
		return err
	}
	for _, point := range points {
		source := SourceOf(point, c.Sources)
		if source == nil || source.Reason != "" {
			point.Release()
			continue
		}
		content, ok := fill.point(point, *source)
		if !ok {
			continue
		}
		if err := point.Inject(source.Name, content); err != nil {
			return err
		}
	}
	return nil
}

// report makes the Kptfile say which points are filled, and wait for those that have to be.
func (c Config) report(resources *kpt.Resources, said said) error {
	points, err := resources.Points()
	if err != nil {
		return err
	}
	types, err := kpt.ConditionTypes(points)
	if err != nil {
		return err
	}
	conditions, gates := []kpt.Condition{}, []string{}
	for i, point := range points {
		conditions = append(conditions, c.condition(point, types[i]))
		if point.Required {
			gates = append(gates, types[i])
		}
	}
	slots, err := resources.Slots()
	if err != nil {
		return err
	}
	for _, named := range namesOf(slots) {
		conditions = append(conditions, c.slotCondition(named.Name, said))
		if named.Required {
			gates = append(gates, kpt.SlotConditionType(named.Name))
		}
	}
	slices.Sort(gates)
	slices.SortFunc(conditions, func(a, b kpt.Condition) int { return cmp.Compare(a.Type, b.Type) })
	kptfile, err := resources.Kptfile("")
	if err != nil {
		return err
	}
	kptfile.SetInjectionStatus(gates, conditions)
	return nil
}

// condition says what became of a point.
func (c Config) condition(point kpt.Point, called string) kpt.Condition {
	condition := kpt.Condition{Type: called, Status: "False", Reason: ReasonNoResource}
	source := SourceOf(point, c.Sources)
	switch {
	case source == nil:
		condition.Message = fmt.Sprintf("no resource %s was found for it", kindOf(point))
	case source.Reason != "":
		condition.Reason, condition.Message = source.Reason, source.Message
	default:
		condition.Status, condition.Reason = "True", reasonInjected
		condition.Message = fmt.Sprintf("injected resource %q from cluster", source.Name)
	}
	return condition
}

func kindOf(point kpt.Point) string {
	if point.ID.Group == "" {
		return point.ID.Kind
	}
	return point.ID.Kind + "." + point.ID.Group
}
