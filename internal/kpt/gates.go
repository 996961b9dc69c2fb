package kpt

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

const (
	// injectionCondition begins the types of the conditions of points of injection, and bindingCondition those of slots.
	injectionCondition = "config.injection."
	bindingCondition   = "config.binding."
)

// SlotConditionType is the type of the condition of the slots of a name.
func SlotConditionType(name string) string { return bindingCondition + name }

// SlotNameOf is the name of the slots that a condition of the type is about.
func SlotNameOf(conditionType string) (name string, ok bool) {
	return strings.CutPrefix(conditionType, bindingCondition)
}

// ConditionTypes are the types of the conditions of the points, one each, in their order: config.injection.<Kind>.<name>.
// Points that would share one have their group, namespace and file behind it, between slashes, which no name has in it.
// An error says that two are the same object.
func ConditionTypes(points []Point) ([]string, error) {
	short := map[string]int{}
	types := make([]string, len(points))
	for i, point := range points {
		types[i] = injectionCondition + point.ID.Kind + "." + point.ID.Name
		short[types[i]]++
	}
	seen := map[string]bool{}
	for i, point := range points {
		if short[types[i]] > 1 {
			types[i] = strings.Join([]string{types[i], point.ID.Group, point.ID.Namespace, point.File()}, "/")
		}
		if seen[types[i]] {
			return nil, point.resource.problem(point.resource.Node.YNode(), fmt.Sprintf("there are two points of injection %s", point.ID))
		}
		seen[types[i]] = true
	}
	return types, nil
}

// SetInjectionStatus makes the conditions of points of injection and of slots, and the gates that wait for them, exactly these. Those that
// are there are changed in their places, new ones stand at the end, and what others report stays.
func (k *Kptfile) SetInjectionStatus(gates []string, conditions []Condition) {
	wait, tell := make([]reported, len(gates)), make([]reported, len(conditions))
	for i, gate := range gates {
		wait[i] = reported{gate, func(node *yaml.Node) { setScalar(node, "conditionType", gate) }}
	}
	for i, condition := range conditions {
		tell[i] = reported{condition.Type, condition.write}
	}
	k.setReported(partInfo, "readinessGates", "conditionType", wait)
	k.setReported(partStatus, "conditions", "type", tell)
}

// reported is an element of a list of the Kptfile that speaks of a point: the type that it has, and what else it says.
type reported struct {
	called string
	write  func(*yaml.Node)
}

// setReported makes the elements that speak of points exactly these. A list that becomes empty goes, and its part as well.
func (k *Kptfile) setReported(part, field, key string, left []reported) {
	there := Elements(Lookup(k.root(), part, field))
	wanted := []*yaml.Node{}
	for _, node := range there {
		called := Text(node, key)
		i := slices.IndexFunc(left, func(r reported) bool { return r.called == called })
		switch {
		case i >= 0:
			left[i].write(node)
			left = slices.Delete(left, i, i+1)
		case strings.HasPrefix(called, injectionCondition), strings.HasPrefix(called, bindingCondition):
			continue
		}
		wanted = append(wanted, node)
	}
	for _, r := range left {
		node := newMap()
		r.write(node)
		wanted = append(wanted, node)
	}
	if slices.Equal(there, wanted) {
		return
	}
	sureList(k.part(part), field).Content = wanted
	prune(k.root(), part, field)
}

// write makes the node say the condition.
func (c Condition) write(node *yaml.Node) {
	setScalar(node, "type", c.Type)
	setScalar(node, "status", c.Status)
	for _, field := range [][2]string{{"reason", c.Reason}, {"message", c.Message}} {
		if key, text := field[0], field[1]; text != "" {
			setScalar(node, key, text)
		} else {
			remove(node, key)
		}
	}
}
