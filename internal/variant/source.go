package variant

import (
	"cmp"
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/printable"
)

// Injector says which objects of the cluster fill points of injection.
type Injector struct {
	// Group, Version and Kind are those of the points that it is for; nil for any.
	Group, Version, Kind *string
	// Point is the name of the one point that it is for, empty for every point.
	Point string
	// Namespace is where the object is. Name is what it is called, and empty for an object of the point's own name.
	Namespace, Name string
	// Selects says that the object is found by its labels, and not by a name. Which ones, only the caller knows.
	Selects bool
	// AllowSecrets lets it fill points of kind Secret.
	AllowSecrets bool
}

// Lookup is an object that may fill a point, or several objects of which one may.
type Lookup struct {
	// Injector is the place of the injector in the list.
	Injector int
	// Group, Version and Kind are those of the point, and so of the object.
	Group, Version, Kind string
	// Namespace and Name are the object's; the name is empty where its labels select it.
	Namespace, Name string
}

// Found is what a lookup led to.
type Found struct {
	// Objects are those that were found, in any order.
	Objects []Object
	// Refusal says why nobody may look; empty where somebody did.
	Refusal string
}

// Object is one of the cluster's.
type Object struct {
	Namespace, Name string
	// Content is what the object says, as JSON decodes it. Of several objects, none is looked at.
	Content map[string]any
}

// The reasons for which a point is not filled.
const (
	// ReasonNoResource is that there is no object for it.
	ReasonNoResource = "NoResourceSelected"
	// ReasonAmbiguous is that there are several.
	ReasonAmbiguous = "AmbiguousInjection"
	// ReasonForbidden is that nobody may read the object, or write it to git.
	ReasonForbidden = "InjectionForbidden"
	// ReasonPathMissing is that an object has nothing where a binding looks.
	ReasonPathMissing = "PathMissing"
	// ReasonNoBinding is that no binding has the name of a slot, and ReasonNoPoint that no slot has that of a binding.
	ReasonNoBinding = "BindingMissing"
	ReasonNoPoint   = "NoPoint"
	// ReasonInvalid is that a value does not go where it is bound to.
	ReasonInvalid = "BindingInvalid"
	// reasonInjected and reasonBound are that it is filled.
	reasonInjected = "ConfigInjected"
	reasonBound    = "ValueBound"
)

// Source fills points of injection, or says why it cannot.
type Source struct {
	// Group, Version and Kind are those of the points that it fills, and Point the name of the only one; empty for all.
	Group   string `json:"group,omitempty"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Point   string `json:"point,omitempty"`
	// Namespace and Name are the object's.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Content is what is injected, those fields alone that are.
	Content map[string]any `json:"content,omitempty"`
	// Reason says in one word why nothing is injected, and Message in a sentence; empty where something is.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// comparePoints goes by what decides about sources.
func comparePoints(a, b kpt.Point) int {
	return cmp.Or(cmp.Compare(a.ID.Group, b.ID.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.ID.Kind, b.ID.Kind),
		cmp.Compare(a.ID.Name, b.ID.Name))
}

// Lookups are what has to be looked up for the points, each once, in the order of the injectors. For Secrets, nothing is looked
// up by injectors that do not allow them.
func Lookups(points []kpt.Point, injectors []Injector) []Lookup {
	lookups := []Lookup{}
	for i, injector := range injectors {
		for _, point := range points {
			lookup := injector.lookup(i, point)
			if injector.fits(point) && !injector.forbids(point) && !slices.Contains(lookups, lookup) {
				lookups = append(lookups, lookup)
			}
		}
	}
	return lookups
}

// fits tells whether the injector is for the point.
func (i Injector) fits(point kpt.Point) bool {
	return (i.Group == nil || *i.Group == point.ID.Group) && (i.Version == nil || *i.Version == point.Version) &&
		(i.Kind == nil || *i.Kind == point.ID.Kind) && (i.Point == "" || i.Point == point.ID.Name)
}

// forbids tells whether the injector is not to fill the point although it fits.
func (i Injector) forbids(point kpt.Point) bool {
	return kpt.IsSecret(point.ID.Group, point.ID.Kind) && !i.AllowSecrets
}

func (i Injector) lookup(place int, point kpt.Point) Lookup {
	name := i.Name
	switch {
	case i.Selects:
		name = ""
	case name == "":
		name = point.ID.Name
	}
	return Lookup{
		Injector: place, Group: point.ID.Group, Version: point.Version, Kind: point.ID.Kind, Namespace: i.Namespace, Name: name,
	}
}

// Sources are what fills the points, given what the lookups led to; a lookup that was not made is one that found nothing. What
// fills no point is left out, so that it cannot change what is made. The first injector that fits a point and has an object for
// it fills it, but for this: one that names the point, or whose object has the point's name, goes before those that would fill
// any other point as well.
func Sources(points []kpt.Point, injectors []Injector, found map[Lookup]Found) []Source {
	all := []Source{}
	for i, injector := range injectors {
		for _, point := range points {
			if !injector.fits(point) || injector.forbids(point) {
				continue
			}
			if source, ok := injector.source(i, point, found); ok && !slices.ContainsFunc(all, source.same) {
				all = append(all, source)
			}
		}
	}
	for _, point := range points {
		forbids := func(i Injector) bool { return i.fits(point) && i.forbids(point) }
		if choose(point, all) < 0 && slices.ContainsFunc(injectors, forbids) {
			all = append(all, Source{
				Version: point.Version, Kind: point.ID.Kind, Point: point.ID.Name,
				Reason: ReasonForbidden, Message: "no injector that allows Secrets has one for it",
			})
		}
	}
	return used(points, all)
}

// used are the sources that fill a point.
func used(points []kpt.Point, all []Source) []Source {
	fills := make([]bool, len(all))
	for _, point := range points {
		if i := choose(point, all); i >= 0 {
			fills[i] = true
		}
	}
	kept := []Source{}
	for i, source := range all {
		if fills[i] {
			kept = append(kept, source)
		}
	}
	return kept
}

// same tells whether both are for the same points and have the same to say.
func (s Source) same(other Source) bool {
	return s.Group == other.Group && s.Version == other.Version && s.Kind == other.Kind && s.Point == other.Point &&
		s.Namespace == other.Namespace && s.Name == other.Name && s.Reason == other.Reason && s.Message == other.Message
}

// source is what the injector has for the point; not ok for nothing.
func (i Injector) source(place int, point kpt.Point, found map[Lookup]Found) (source Source, ok bool) {
	source = Source{Group: point.ID.Group, Version: point.Version, Kind: point.ID.Kind, Point: i.Point}
	if i.Name == "" && !i.Selects {
		source.Point = point.ID.Name
	}
	result := found[i.lookup(place, point)]
	switch {
	case result.Refusal != "":
		source.Reason, source.Message = ReasonForbidden, printable.Line(result.Refusal, maxMessage)
	case len(result.Objects) == 0:
		return Source{}, false
	case len(result.Objects) > 1:
		source.Reason, source.Message = ReasonAmbiguous, ambiguous(result.Objects)
	default:
		object := result.Objects[0]
		source.Namespace, source.Name = object.Namespace, object.Name
		source.Content = injected(point, object.Content)
		if len(source.Content) == 0 {
			source.Reason = ReasonNoResource
			source.Message = fmt.Sprintf("resource %q has none of the fields %v", object.Name, kpt.InjectedFields(point.ID.Group, point.ID.Kind))
		}
	}
	return source, true
}

// maxMessage bounds what a condition says, in bytes.
const maxMessage = 512

func ambiguous(objects []Object) string {
	names := make([]string, len(objects))
	for i, object := range objects {
		names[i] = object.Name
	}
	slices.Sort(names)
	return printable.Line(fmt.Sprintf("%d resources are selected: %s", len(names), printable.List(names, 5)), maxMessage)
}

// injected are the fields of the object that the point takes.
func injected(point kpt.Point, content map[string]any) map[string]any {
	fields := map[string]any{}
	for _, field := range kpt.InjectedFields(point.ID.Group, point.ID.Kind) {
		if value, found := content[field]; found && value != nil {
			fields[field] = value
		}
	}
	return fields
}

// choose is the place of the source that fills the point, -1 for none.
func choose(point kpt.Point, sources []Source) int {
	first := -1
	for i, source := range sources {
		switch {
		case source.Group != point.ID.Group || source.Version != point.Version || source.Kind != point.ID.Kind:
		case source.Point != "" && source.Point != point.ID.Name:
		case source.Point != "" || source.Name == point.ID.Name:
			return i
		case first < 0:
			first = i
		}
	}
	return first
}

// SourceOf is what fills the point; nil if nothing does.
func SourceOf(point kpt.Point, sources []Source) *Source {
	if i := choose(point, sources); i >= 0 {
		return &sources[i]
	}
	return nil
}
