package function

import (
	"slices"

	"sluice.dev/sluice/internal/kpt"
)

// selected are the objects that an entry of a pipeline is for: those that one of its selectors selects, all where there are
// none, without those that are excluded. An exclusion that says nothing excludes nothing.
func selected(objects []*object, entry *kpt.Function) []*object {
	picked := []*object{}
	for _, o := range objects {
		matches := func(s kpt.Selector) bool { return selects(&s, o) }
		excludes := func(s kpt.Selector) bool { return !isEmpty(&s) && selects(&s, o) }
		if (len(entry.Selectors) == 0 || slices.ContainsFunc(entry.Selectors, matches)) &&
			!slices.ContainsFunc(entry.Exclude, excludes) {
			picked = append(picked, o)
		}
	}
	return picked
}

// selects tells whether the object has all that the selector says.
func selects(s *kpt.Selector, o *object) bool {
	return (s.APIVersion == "" || s.APIVersion == kpt.Text(o.root, "apiVersion")) &&
		(s.Kind == "" || s.Kind == o.kind()) &&
		(s.Name == "" || s.Name == o.name()) &&
		(s.Namespace == "" || s.Namespace == o.current()) &&
		holds(texts(o.root, "metadata", "labels"), s.Labels) &&
		holds(texts(o.root, "metadata", "annotations"), s.Annotations)
}

// holds tells whether all of the wanted are there.
func holds(there, wanted map[string]string) bool {
	for key, value := range wanted {
		if found, is := there[key]; !is || found != value {
			return false
		}
	}
	return true
}

func isEmpty(s *kpt.Selector) bool {
	return s.APIVersion+s.Kind+s.Name+s.Namespace == "" && len(s.Labels)+len(s.Annotations) == 0
}
