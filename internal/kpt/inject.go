package kpt

import "fmt"

const (
	// annotationPoint marks an object as a point of injection, "required" or "optional".
	annotationPoint = "kpt.dev/config-injection"
	// annotationInjected says of a point what was injected last.
	annotationInjected = "kpt.dev/injected-resource"
)

// Point is an object of a package that takes over fields of an object of a cluster.
type Point struct {
	// ID and Version are the point's own; the object of the cluster is of the same kind.
	ID      ID
	Version string
	// Required says that the package is not ready without an object.
	Required bool
	// Injected is the name of the object that was injected last, empty for none.
	Injected string

	resource *Resource
}

// maxPoints bounds the points of injection of a package. For each of them, an object of the cluster may be read.
const maxPoints = 1_000

// Points are the points of injection in the package and its subpackages, in the order of the resources. The error is a
// *SyntaxError where the mark is neither "required" nor "optional", or on a Kptfile, and where there are too many.
func (r *Resources) Points() ([]Point, error) {
	points := []Point{}
	for _, item := range r.Items {
		mark := Lookup(item.Node.YNode(), "metadata", "annotations", annotationPoint)
		if mark == nil {
			continue
		}
		switch {
		case item.IsKptfile():
			return nil, item.problem(mark, "a Kptfile cannot be a point of injection")
		case mark.Value != "required" && mark.Value != "optional":
			return nil, item.problem(mark, fmt.Sprintf("%s is %.40q, and neither required nor optional", annotationPoint, mark.Value))
		}
		if len(points) == maxPoints {
			return nil, item.problem(mark, fmt.Sprintf("the package has more than %d points of injection", maxPoints))
		}
		_, version := item.GroupVersion()
		points = append(points, Point{
			ID: item.ID(), Version: version, Required: mark.Value == "required",
			Injected: item.Annotation(annotationInjected), resource: item,
		})
	}
	return points, nil
}

// Mark is the point without its object: it is small, and nothing can be injected into it.
func (p Point) Mark() Point {
	p.resource = &Resource{File: p.resource.File}
	return p
}

// File is where the point is, below the package's root.
func (p Point) File() string { return p.resource.File }

// InjectedFields are the fields at the top of an object of the kind that are injected: what it holds, never what it is called.
func InjectedFields(group, kind string) []string {
	switch {
	case group == "" && kind == "ConfigMap":
		return []string{"data", "binaryData"}
	case IsSecret(group, kind):
		return []string{"data", "type"}
	default:
		return []string{"spec"}
	}
}

// IsSecret tells whether what objects of the kind hold is secret.
func IsSecret(group, kind string) bool { return group == "" && kind == "Secret" }

// Inject makes the point hold what the object of the name does. The content is the object's, as JSON decodes it; of it those
// fields are taken that InjectedFields names, and those that it has not leave the point.
func (p Point) Inject(name string, content map[string]any) error {
	content, err := asJSON(content)
	if err != nil {
		return fmt.Errorf("inject into %s: %w", p.ID, err)
	}
	root := p.resource.Node.YNode()
	for _, field := range InjectedFields(p.ID.Group, p.ID.Kind) {
		value, found := content[field]
		switch i := keyIndex(root, field); {
		case !found:
			remove(root, field)
		case i >= 0:
			root.Content[i+1] = become(root.Content[i+1], value)
		default:
			setNode(root, field, become(nil, value))
		}
	}
	setScalar(sure(root, "metadata", "annotations"), annotationInjected, name)
	return nil
}

// Content are the fields of the point that are injected, as JSON has them.
func (p Point) Content() (map[string]any, error) {
	content := map[string]any{}
	for _, field := range InjectedFields(p.ID.Group, p.ID.Kind) {
		node := lookup(p.resource.Node.YNode(), field)
		if node == nil {
			continue
		}
		var value any
		if err := node.Decode(&value); err != nil {
			return nil, p.resource.problem(node, err.Error())
		}
		content[field] = value
	}
	return asJSON(content)
}

// Release says that nothing is injected into the point; its fields stay as they are.
func (p Point) Release() {
	if p.Injected == "" && p.resource.Annotation(annotationInjected) == "" {
		return
	}
	remove(sure(p.resource.Node.YNode(), "metadata", "annotations"), annotationInjected)
}

// asJSON is Plain for an object.
func asJSON(content map[string]any) (map[string]any, error) {
	plain, _, err := Plain(content)
	made, _ := plain.(map[string]any) // It is null where there is none.
	return made, err
}

// Origin is what the point is known by where its package comes from; see Resource.Origin.
func (p Point) Origin() ID { return p.resource.Origin() }
