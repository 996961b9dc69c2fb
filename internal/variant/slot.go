package variant

import (
	"cmp"
	"maps"
	"slices"

	"sluice.dev/sluice/internal/kpt"
)

// Marks are what of a package takes over something from outside of it.
type Marks struct {
	// Points are those of injection.
	Points []kpt.Point
	// Slots are what can be bound, by their names.
	Slots []Slots
}

// Slots are all those of a name.
type Slots struct {
	Name string
	// Required says that the package cannot do without a value.
	Required bool
	// Count is how many there are.
	Count int
}

// markBytes is what a mark takes beside its words.
const markBytes = 256

// Bytes is about what the marks take in memory.
func (m Marks) Bytes() (bytes int) {
	for _, p := range m.Points {
		bytes += len(p.ID.Group) + len(p.ID.Kind) + len(p.ID.Namespace) + len(p.ID.Name) + len(p.Version) + len(p.Injected) + len(p.File()) + markBytes
	}
	for _, s := range m.Slots {
		bytes += len(s.Name) + markBytes
	}
	return bytes
}

// MarksOf are those of the package. They do not hold it in memory.
func MarksOf(p kpt.Package) (Marks, error) {
	resources, err := kpt.Open(p)
	if err != nil {
		return Marks{}, err
	}
	points, err := resources.Points()
	if err != nil {
		return Marks{}, err
	}
	for i := range points {
		points[i] = points[i].Mark()
	}
	slots, err := resources.Slots()
	return Marks{Points: points, Slots: namesOf(slots)}, err
}

// namesOf puts the slots of a name together, in the order of names.
func namesOf(slots []kpt.Slot) []Slots {
	named := map[string]Slots{}
	for _, slot := range slots {
		same := named[slot.Name]
		named[slot.Name] = Slots{slot.Name, same.Required || slot.Required, same.Count + 1}
	}
	return sorted(named)
}

func sorted(named map[string]Slots) []Slots {
	return slices.SortedFunc(maps.Values(named), func(a, b Slots) int { return cmp.Compare(a.Name, b.Name) })
}

// Distinct are the marks of several packages, each once, in order: what people added is filled like upstream's.
func Distinct(all ...Marks) Marks {
	made, named := Marks{}, map[string]Slots{}
	for _, one := range all {
		made.Points = append(made.Points, one.Points...)
		for _, slots := range one.Slots {
			same := named[slots.Name]
			named[slots.Name] = Slots{slots.Name, same.Required || slots.Required, max(same.Count, slots.Count)}
		}
	}
	slices.SortStableFunc(made.Points, comparePoints)
	made.Points = slices.CompactFunc(made.Points, func(a, b kpt.Point) bool { return comparePoints(a, b) == 0 })
	made.Slots = sorted(named)
	return made
}

// held are the slots of the package that is there.
type held struct {
	same map[slotKey]kpt.Slot
	// any are those of a name: one value is bound to all of them.
	any  map[slotName]kpt.Slot
	said said
}

type slotName struct {
	name    string
	isWhole bool
}

type slotKey struct {
	name, file, path string
	origin           kpt.ID
}

func keyOf(s kpt.Slot) slotKey { return slotKey{s.Name, s.File(), s.Path(), s.Origin()} }

// heldBy are the slots of the package, and what its Kptfile says of them.
func heldBy(local *kpt.Resources) (*held, error) {
	slots, err := local.Slots()
	if err != nil {
		return nil, err
	}
	kptfile, err := local.Kptfile("")
	if err != nil {
		return nil, err
	}
	h := &held{same: map[slotKey]kpt.Slot{}, any: map[slotName]kpt.Slot{}, said: said{}}
	for _, slot := range slots {
		h.same[keyOf(slot)], h.any[slotName{slot.Name, slot.IsWhole()}] = slot, slot
	}
	for _, condition := range kptfile.Conditions() {
		if name, ok := kpt.SlotNameOf(condition.Type); ok {
			h.said[name] = condition
		}
	}
	return h, nil
}

// hold makes all slots of a name hold what they do in the package that is there, and says what is said of them there. What nothing
// was bound to stays as it is: if it is something else there, people changed it. Those that are empty there are to be emptied.
func (h *held) hold(slots []kpt.Slot) (condition kpt.Condition, empty []kpt.Slot) {
	condition = h.said[slots[0].Name]
	if condition.Status != "True" {
		return condition, nil
	}
	for _, slot := range slots {
		other, ok := h.same[keyOf(slot)]
		if ok && other.IsEmpty() {
			empty = append(empty, slot)
		}
		if !ok {
			other, ok = h.any[slotName{slot.Name, slot.IsWhole()}]
		}
		if ok {
			slot.Take(other)
		}
	}
	return condition, empty
}

// slotCondition says what became of the slots of a name.
func (c Config) slotCondition(name string, said said) kpt.Condition {
	if condition, ok := said[name]; ok && condition.Type != "" {
		return condition
	}
	condition := refusal(name, ReasonNoBinding, NoBinding)
	if i := slices.IndexFunc(c.Bindings, func(b Bound) bool { return b.Name == name && b.Reason != "" }); i >= 0 {
		condition.Reason, condition.Message = c.Bindings[i].Reason, c.Bindings[i].Message
	}
	return condition
}
