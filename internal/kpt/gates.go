package kpt

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// injectionCondition begins the types of the conditions of points of injection.
const injectionCondition = "config.injection."

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
			return nil, &SyntaxError{
				File: point.File(), Line: lineIn(point.resource, point.resource.Node.YNode()),
				Problem: fmt.Sprintf("there are two points of injection %s", point.ID),
			}
		}
		seen[types[i]] = true
	}
	return types, nil
}

// SetInjectionStatus makes the conditions of points of injection, and the gates that wait for them, exactly these. Those that
// are there are changed in their places, new ones stand at the end, and what others report stays.
func (k *Kptfile) SetInjectionStatus(gates []string, conditions []Condition) {
	k.setGates(gates)
	k.setConditions(conditions)
}

func (k *Kptfile) setGates(gates []string) {
	left := slices.Clone(gates)
	stay := func(gate *yaml.Node) bool {
		called := scalarAt(gate, "conditionType")
		if !strings.HasPrefix(called, injectionCondition) {
			return true
		}
		i := slices.Index(left, called)
		if i >= 0 {
			left = slices.Delete(left, i, i+1)
		}
		return i >= 0
	}
	k.setList(partInfo, "readinessGates", stay, func() []*yaml.Node {
		added := []*yaml.Node{}
		for _, gate := range left {
			node := newMap()
			setScalar(node, "conditionType", gate)
			added = append(added, node)
		}
		return added
	})
}

func (k *Kptfile) setConditions(conditions []Condition) {
	left := slices.Clone(conditions)
	stay := func(node *yaml.Node) bool {
		called := scalarAt(node, "type")
		if !strings.HasPrefix(called, injectionCondition) {
			return true
		}
		i := slices.IndexFunc(left, func(c Condition) bool { return c.Type == called })
		if i >= 0 {
			left[i].write(node)
			left = slices.Delete(left, i, i+1)
		}
		return i >= 0
	}
	k.setList(partStatus, "conditions", stay, func() []*yaml.Node {
		added := []*yaml.Node{}
		for _, condition := range left {
			node := newMap()
			condition.write(node)
			added = append(added, node)
		}
		return added
	})
}

// setList keeps the elements that stay, and adds others behind them. A list that becomes empty goes, and its part as well.
func (k *Kptfile) setList(part, field string, stay func(*yaml.Node) bool, more func() []*yaml.Node) {
	there := elements(lookupPath(k.root(), part, field))
	wanted := []*yaml.Node{}
	for _, element := range there {
		if stay(element) {
			wanted = append(wanted, element)
		}
	}
	wanted = append(wanted, more()...)
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
	for key, text := range map[string]string{"reason": c.Reason, "message": c.Message} {
		if text == "" {
			remove(node, key)
		}
	}
	if c.Reason != "" {
		setScalar(node, "reason", c.Reason)
	}
	if c.Message != "" {
		setScalar(node, "message", c.Message)
	}
}
