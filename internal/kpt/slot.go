package kpt

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

const (
	// AnnotationBind marks an object as a slot. The same, with a colon, begins the comment that marks a field as one.
	AnnotationBind = "packages.sluice.dev/bind"

	// maxSlots bounds the slots of a package, and maxSlotNames the names that they have.
	maxSlots     = 10_000
	maxSlotNames = 256
)

// Slot is a field of an object that takes over a value from somewhere else, known by its name. Several may have one name.
type Slot struct {
	// Name is what it is bound by.
	Name string
	// Required says that the package is not ready without a value.
	Required bool

	resource *Resource
	path     []string
	// holder is the map or list that the field is in, and at its place in the content: -1 for one that is not there yet.
	holder *yaml.Node
	at     int
	// isWhole says that it is the object that is marked.
	isWhole bool
}

// Slots are those in the package and its subpackages, in the order of the resources and of the lines in them. The error is a
// *SyntaxError: a mark that cannot be read, in a place that cannot be bound, or on something that is filled already.
func (r *Resources) Slots() ([]Slot, error) {
	all, names := []Slot{}, map[string]bool{}
	for _, item := range r.Items {
		found := slotFinder{resource: item}
		if err := found.object(); err != nil {
			return nil, err
		}
		if all = append(all, found.slots...); len(all) > maxSlots {
			return nil, item.problem(item.Node.YNode(), fmt.Sprintf("the package has more than %d binding points", maxSlots))
		}
		for _, slot := range found.slots {
			if names[slot.Name] = true; len(names) > maxSlotNames {
				return nil, item.problem(item.Node.YNode(), fmt.Sprintf("the binding points of the package have more than %d names", maxSlotNames))
			}
		}
	}
	return all, nil
}

// slotFinder finds the slots of an object.
type slotFinder struct {
	resource *Resource
	slots    []Slot
	path     []string
	// inside says what fills a field above, and with it all that is below.
	inside string
	// aliased are the nodes that aliases of the object stand for; nil as long as it has no slot.
	aliased map[*yaml.Node]bool
}

// object looks at the mark on the object, and at those in it.
func (f *slotFinder) object() error {
	root := f.resource.Node.YNode()
	id, filled := f.resource.ID(), map[string]string{}
	if f.resource.Annotation(annotationPoint) != "" {
		for _, field := range InjectedFields(id.Group, id.Kind) {
			filled[field] = "an injector"
		}
	}
	mark := Lookup(root, "metadata", "annotations", AnnotationBind)
	if mark != nil {
		field := BoundField(id.Group, id.Kind)
		f.inside = filled[field]
		at := keyIndex(root, field)
		if at >= 0 {
			at++
		}
		slot, err := f.slot(mark, mark.Value, root, at, field)
		if err != nil {
			return err
		}
		slot.isWhole = true
		f.inside, f.slots, filled[field] = "", append(f.slots, slot), "the binding point "+slot.Name
	}
	if root.Kind != yaml.MappingNode {
		return nil
	}
	return f.fields(root, filled)
}

// BoundField is the field of an object of the kind that is bound where the object is the slot.
func BoundField(group, kind string) string { return InjectedFields(group, kind)[0] }

// fields looks at the fields of a map. Of those that are filled, nothing else may be.
func (f *slotFinder) fields(node *yaml.Node, filled map[string]string) error {
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if err := f.field(node, i+1, key.Value, filled[key.Value]); err != nil {
			return err
		}
	}
	return nil
}

// field looks at a field, or at an element of a list, and at what is below it.
func (f *slotFinder) field(holder *yaml.Node, at int, called, filled string) error {
	node, outside := holder.Content[at], f.inside
	f.path = append(f.path, called)
	defer func() { f.path, f.inside = f.path[:len(f.path)-1], outside }()
	if filled != "" {
		f.inside = filled
	}
	if _, marked := markIn(node.LineComment); marked && isBlock(node) {
		// That is how a comment behind an anchor of nothing is read, wherever in the block it is.
		return f.resource.problem(node, "the mark "+AnnotationBind+" is behind an anchor without a value: take the anchor out")
	}
	if text, marked := markIn(commentOf(holder, at)); marked {
		slot, err := f.slot(node, text, holder, at, f.path...)
		if err != nil {
			return err
		}
		f.slots, f.inside = append(f.slots, slot), "the binding point "+slot.Name
	}
	switch node.Kind {
	case yaml.MappingNode:
		return f.fields(node, nil)
	case yaml.SequenceNode:
		for i := range node.Content {
			if err := f.field(node, i, strconv.Itoa(i), ""); err != nil {
				return err
			}
		}
	default: // Nothing is below a scalar, and what an alias stands for is elsewhere.
	}
	return nil
}

// markIn is what the comment says of the name, where it is a mark.
func markIn(comment string) (text string, marked bool) {
	return strings.CutPrefix(strings.TrimSpace(strings.TrimLeft(comment, "#")), AnnotationBind+":")
}

// commentOf is the one behind a value. Of what takes several lines, it is beside the key.
func commentOf(holder *yaml.Node, at int) string {
	node := holder.Content[at]
	if holder.Kind == yaml.MappingNode && (node.LineComment == "" || isBlock(node)) {
		return holder.Content[at-1].LineComment
	}
	return node.LineComment
}

// isBlock tells whether the node is a map or list that takes lines of its own.
func isBlock(node *yaml.Node) bool {
	return (node.Kind == yaml.MappingNode || node.Kind == yaml.SequenceNode) && node.Style&yaml.FlowStyle == 0 && len(node.Content) > 0
}

// slotMark is what a mark says: a name, and whether the package can do without a value.
var slotMark = regexp.MustCompile(`^([A-Za-z0-9](?:[-A-Za-z0-9._]{0,61}[A-Za-z0-9])?)( optional| required)?$`)

// slot is what the mark makes of a field, where it may be one.
func (f *slotFinder) slot(mark *yaml.Node, text string, holder *yaml.Node, at int, path ...string) (Slot, error) {
	text = strings.Join(strings.Fields(text), " ")
	read := slotMark.FindStringSubmatch(text)
	refused := ""
	switch {
	case read == nil:
		refused = fmt.Sprintf("%s is %.80q: a name of at most 63 letters, digits, '-', '.' and '_' has to be there, and may be followed by 'optional'",
			AnnotationBind, text)
	case f.resource.IsKptfile():
		refused = "a Kptfile cannot have binding points"
	case f.inside != "":
		refused = fmt.Sprintf("the binding point %s is inside of what %s fills", read[1], f.inside)
	case isKnownBy(path):
		refused = fmt.Sprintf("%s cannot be a binding point: it says which object this is, or what fills it", strings.Join(path, "."))
	case at >= 0 && f.isAliased(holder.Content[at]):
		refused = fmt.Sprintf("the binding point %s has an anchor that aliases refer to, which it would change as well: write out what they stand for", read[1])
	}
	if refused != "" {
		return Slot{}, f.resource.problem(mark, refused)
	}
	return Slot{
		Name: read[1], Required: read[2] != " optional", path: slices.Clone(path), resource: f.resource, holder: holder, at: at,
	}, nil
}

// isAliased tells whether an alias stands for the node, or for one in it. Points are not inside of each other: each node is looked at once.
func (f *slotFinder) isAliased(node *yaml.Node) bool {
	if f.aliased == nil {
		f.aliased = map[*yaml.Node]bool{}
		addAliased(f.aliased, f.resource.Node.YNode())
	}
	return f.aliased[node] || slices.ContainsFunc(node.Content, f.isAliased)
}

func addAliased(all map[*yaml.Node]bool, node *yaml.Node) {
	if node.Kind == yaml.AliasNode {
		all[node.Alias] = true
	}
	for _, child := range node.Content {
		addAliased(all, child)
	}
}

// isKnownBy tells whether a field is one that an object, or its mark, is known by.
func isKnownBy(path []string) bool {
	known := [][]string{
		{"apiVersion"},
		{"kind"},
		{"metadata"},
		{"metadata", "name"},
		{"metadata", "namespace"},
		{"metadata", "annotations"},
		{"metadata", "annotations", AnnotationBind},
		{"metadata", "annotations", annotationPoint},
		{"metadata", "annotations", annotationInjected},
	}
	return slices.ContainsFunc(known, func(one []string) bool { return slices.Equal(one, path) })
}

// Origin is what the object that the slot is in is known by where its package comes from.
func (s Slot) Origin() ID { return s.resource.Origin() }

// Path is that of the field: spec.containers.0.image.
func (s Slot) Path() string { return strings.Join(s.path, ".") }

// Overlaps tells whether the slot is where the keys lead in the object, or above or below of that.
func (s Slot) Overlaps(object *Resource, keys []string) bool {
	shared := min(len(keys), len(s.path))
	return s.resource == object && slices.Equal(keys[:shared], s.path[:shared])
}

// File is where that object is, below the package's root.
func (s Slot) File() string { return s.resource.File }

// IsWhole tells whether it is the object that is marked, which takes a map.
func (s Slot) IsWhole() bool { return s.isWhole }

// IsSecret tells whether what the slot holds is.
func (s Slot) IsSecret() bool {
	id := s.resource.ID()
	return IsSecret(id.Group, id.Kind)
}

// String says where the slot is.
func (s Slot) String() string {
	return fmt.Sprintf("binding point %s, %s of %s in %s", s.Name, s.Path(), s.resource.ID(), s.resource.File)
}

// Type is that of what the slot holds, Anything where that is nothing, and Map where the object is the slot.
func (s Slot) Type() Type {
	if s.isWhole {
		return Map
	}
	node := resolve(s.holder.Content[s.at])
	switch node.Kind {
	case yaml.MappingNode:
		return Map
	case yaml.SequenceNode:
		return List
	default:
	}
	switch node.ShortTag() {
	case yaml.NodeTagNull:
		return Anything
	case yaml.NodeTagBool:
		return Boolean
	case yaml.NodeTagInt:
		return Integer
	case yaml.NodeTagFloat:
		return Number
	}
	return String
}

// Set makes the slot hold the value, one of JSON's. What of it is there already stays as it is.
func (s Slot) Set(value any) {
	if s.at < 0 {
		setNode(s.holder, s.path[0], become(nil, value))
		return
	}
	s.put(become(s.holder.Content[s.at], value))
}

// IsEmpty tells whether the field is not there, which an object that is marked as a whole may lack.
func (s Slot) IsEmpty() bool { return s.at < 0 }

// Empty takes the field out of an object that is marked as a whole. No slot that was found before is good for anything then.
func (s Slot) Empty() {
	if s.isWhole {
		remove(s.holder, s.path[0])
	}
}

// Take makes the slot hold what another one does, to the letter. Where that is empty, it stays as it is.
func (s Slot) Take(other Slot) {
	if other.at < 0 {
		return
	}
	left := maxNodes
	held := withoutAliases(other.holder.Content[other.at], &left)
	if s.at < 0 {
		setNode(s.holder, s.path[0], held)
		return
	}
	s.put(held)
}

// put replaces what the slot holds. The comment that marks it stays, and is beside the key of what takes several lines.
func (s Slot) put(node *yaml.Node) {
	have, mark := s.holder.Content[s.at], commentOf(s.holder, s.at)
	if s.holder.Content[s.at] = node; have.Kind != yaml.AliasNode && !isBlock(node) { // A block's mark would be behind the anchor.
		node.Anchor = have.Anchor // No alias refers to it, and it is no reason to write the file.
	}
	if node.LineComment = mark; s.holder.Kind != yaml.MappingNode {
		if isBlock(node) {
			node.Style |= yaml.FlowStyle // An element of several lines has no place for the comment.
		}
		return
	}
	key := s.holder.Content[s.at-1]
	if key.LineComment = ""; isBlock(node) {
		node.LineComment, key.LineComment = "", mark
	}
}
