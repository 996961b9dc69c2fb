package variant

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/printable"
)

// maxBoundTotal is how much all slots of a package may take over, in bytes of JSON.
const maxBoundTotal = 8 << 20

// said is what became of the slots of a name.
type said map[string]kpt.Condition

// binder binds values to the slots of a package.
type binder struct {
	resources *kpt.Resources
	slots     map[string][]kpt.Slot
	// within are the bindings of what the package itself has.
	within []Bound
	// contents are what objects of the package said that something is bound to. What is bound since is not in there.
	contents map[*kpt.Resource]any
	said     said
	left     int
}

// bindsWithin tells whether something of the package is bound to something else in it.
func (c Config) bindsWithin() bool {
	return slices.ContainsFunc(c.Bindings, func(b Bound) bool { return b.Reason == "" && b.Within != nil })
}

// bind makes the slots hold what is bound to them. What cannot be bound leaves its slots as they are, and everything else goes on.
func (c Config) bind(resources *kpt.Resources, fill filler) (said, error) {
	if len(c.Bindings) == 0 {
		return nil, nil
	}
	all, err := resources.Slots()
	if err != nil {
		return nil, err
	}
	b := &binder{resources: resources, slots: map[string][]kpt.Slot{}, contents: map[*kpt.Resource]any{}, said: said{}, left: maxBoundTotal}
	for _, slot := range all {
		b.slots[slot.Name] = append(b.slots[slot.Name], slot)
	}
	var empty []kpt.Slot
	for _, bound := range c.Bindings {
		switch {
		case bound.Reason != "" || len(b.slots[bound.Name]) == 0:
		case fill.slots != nil:
			var more []kpt.Slot
			b.said[bound.Name], more = fill.slots.hold(b.slots[bound.Name])
			empty = append(empty, more...)
		case bound.Within != nil:
			b.within = append(b.within, bound)
		default:
			b.set(bound, bound.Value)
		}
	}
	for _, bound := range b.within {
		b.follow(bound, nil)
	}
	for _, slot := range empty {
		slot.Empty()
	}
	return b.said, nil
}

// follow binds what an object of the package has, once that holds what is bound to it in turn. Those of the chain wait for it.
func (b *binder) follow(bound Bound, chain []string) {
	if at := slices.Index(chain, bound.Name); at >= 0 {
		way := strings.Join(append(chain[at:], bound.Name), " -> ")
		for _, name := range chain[at:] {
			b.refuse(name, ReasonInvalid, "these bindings wait for each other: "+way+"; let one of them read something else")
		}
		return
	}
	if _, done := b.said[bound.Name]; done {
		return
	}
	object, err := bound.object(b.resources)
	if err != nil {
		b.refuse(bound.Name, ReasonPathMissing, fmt.Sprintf("%s: %v", bound.From(), err))
		return
	}
	id := object.ID()
	if kpt.IsSecret(id.Group, id.Kind) && !bound.AllowSecrets {
		b.refuse(bound.Name, ReasonForbidden, noSecrets(bound.From()+" is in a Secret"))
		return
	}
	value, at, err := b.read(bound, object)
	for _, other := range b.within {
		if slices.ContainsFunc(b.slots[other.Name], func(s kpt.Slot) bool { return s.Overlaps(object, at) }) {
			b.follow(other, append(slices.Clip(chain), bound.Name))
			delete(b.contents, object)
		}
	}
	if _, done := b.said[bound.Name]; done {
		return
	}
	if _, isSame := b.contents[object]; !isSame {
		value, _, err = b.read(bound, object)
	}
	if err != nil {
		b.refuse(bound.Name, reasonOf(err), fmt.Sprintf("%s: %v", bound.From(), err))
		return
	}
	b.set(bound, value)
}

// read is what the binding reads of an object of the package, and the keys that lead there.
func (b *binder) read(bound Bound, object *kpt.Resource) (value any, at []string, err error) {
	content, isKnown := b.contents[object]
	if !isKnown {
		if content, err = object.Value(); err != nil {
			return nil, nil, err
		}
		b.contents[object] = content
	}
	id := object.ID()
	return valueIn(content, cmp.Or(bound.Path, kpt.BoundField(id.Group, id.Kind)))
}

// set makes all slots of the name hold the value, or none of them where one cannot.
func (b *binder) set(bound Bound, value any) {
	made := make([]any, len(b.slots[bound.Name]))
	for i, slot := range b.slots[bound.Name] {
		var wrong string
		if made[i], wrong = bound.fit(slot, value); wrong != "" {
			b.refuse(bound.Name, ReasonInvalid, fmt.Sprintf("%s: %s", slot, wrong))
			return
		}
		if slot.IsSecret() && !bound.AllowSecrets {
			b.refuse(bound.Name, ReasonForbidden, noSecrets(slot.String()+" is in a Secret"))
			return
		}
	}
	_, length, err := kpt.Plain(value)
	if length *= len(made); err != nil || length > b.left {
		b.refuse(bound.Name, ReasonInvalid, fmt.Sprintf("more than %d bytes are bound in all; bind less", maxBoundTotal))
		return
	}
	b.left -= length
	for i, slot := range b.slots[bound.Name] {
		slot.Set(made[i])
	}
	b.said[bound.Name] = kpt.Condition{
		Type: kpt.SlotConditionType(bound.Name), Status: "True", Reason: reasonBound, Message: printable.Line("bound to "+bound.From(), maxMessage),
	}
}

// fit is the value as the slot takes it, or what is wrong with it.
func (b Bound) fit(slot kpt.Slot, value any) (made any, wrong string) {
	holds := slot.Type()
	if made = value; b.Type != "" {
		var ok bool
		if made, ok = kpt.Convert(value, b.Type); !ok {
			return nil, fmt.Sprintf("the binding's type is %s, and %s is %s that says none", b.Type, b.From(), words(value))
		}
		if !slot.IsWhole() {
			return made, ""
		}
	}
	if !kpt.Fits(made, holds) {
		return nil, fmt.Sprintf("it takes %s, and %s is %s; bind another value, or set the binding's type", article(holds), b.From(), words(made))
	}
	return made, ""
}

// refuse says why nothing is bound.
func (b *binder) refuse(name, reason, why string) {
	b.said[name] = refusal(name, reason, why)
}

func refusal(name, reason, why string) kpt.Condition {
	return kpt.Condition{Type: kpt.SlotConditionType(name), Status: "False", Reason: reason, Message: printable.Line(why, maxMessage)}
}

func noSecrets(what string) string {
	return what + "; set allowSecrets on the binding where that is meant"
}

// words says of which type a value is, and never what it is.
func words(value any) string { return article(kpt.TypeOf(value)) }

func article(t kpt.Type) string {
	if t == kpt.Integer {
		return "an " + string(t)
	}
	return "a " + string(t)
}
