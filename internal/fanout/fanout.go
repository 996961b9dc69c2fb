// Package fanout works out which variants a set wants: one for each of its targets.
// It does not know where targets are found, nor how variants are made.
package fanout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

// Repositories gives what expressions see of a Repository by its name, and whether there is one.
type Repositories func(name string) (map[string]any, bool)

// Set is a set with compiled expressions. It is safe for concurrent use.
type Set struct {
	upstream  packagesv1.Upstream
	templates []*template
	gates     []text
}

// Target is a place that gets a variant.
type Target struct {
	// Index of the target in the spec that led to it.
	Index int
	// Name of what was selected, such as 'Cluster edge-1'.
	Name string
	// Repo and Package are where the variant goes if the template says nothing.
	Repo, Package string
	// Value is what expressions see of it.
	Value map[string]any
	// Labels are those of what was selected. Waves go by them.
	Labels map[string]string
	// Err says that this is less than it should be.
	Err error
}

// Key names the target, wherever it stands in the spec.
func (t Target) Key() string { return t.Name + ", " + t.Package }

// String names the target for people.
func (t Target) String() string { return fmt.Sprintf("targets[%d], %s", t.Index, t.Name) }

// Before tells whether the target comes before another one, wherever they were found.
func (t Target) Before(other Target) bool { return t.compare(other) < 0 }

func (t Target) compare(other Target) int {
	return cmp.Or(cmp.Compare(t.Index, other.Index), cmp.Compare(t.Name, other.Name), cmp.Compare(t.Package, other.Package))
}

// Problem is what keeps a target from having a variant.
type Problem struct {
	Target Target
	Err    error
}

// Wanted are the variants for some targets.
type Wanted struct {
	// Variants are what they are to be, by where they are kept.
	Variants map[packagesv1.Downstream]packagesv1.PackageVariantSpec
	// Targets say which target each of them is for.
	Targets map[packagesv1.Downstream]Target
	// Problems are in the order of the targets.
	Problems []Problem
}

// Variants works out the variants for the targets. Upstream is what expressions see of the package.
func (s *Set) Variants(targets []Target, seen map[string]any, repositories Repositories) Wanted {
	return Gather(targets, func(t Target) (packagesv1.PackageVariantSpec, error) { return s.Variant(t, seen, repositories) })
}

// Variant is what the variant of a target is to be.
func (s *Set) Variant(t Target, seen map[string]any, repositories Repositories) (packagesv1.PackageVariantSpec, error) {
	spec, err := s.templates[t.Index].spec(t.values(seen), repositories)
	spec.Upstream = s.upstream
	return spec, err
}

// values are what expressions see of the target, but for the Repository that it leads to.
func (t Target) values(seen map[string]any) map[string]any {
	return map[string]any{repoDefault: t.Repo, packageDefault: t.Package, upstream: seen, target: t.Value}
}

// Gather puts together what the variants of targets are to be. What is wrong with one keeps no other from its variant. Two that
// lead to the same place both have none: which of them comes first must not matter.
func Gather(targets []Target, variant func(Target) (packagesv1.PackageVariantSpec, error)) Wanted {
	w := Wanted{Variants: map[packagesv1.Downstream]packagesv1.PackageVariantSpec{}, Targets: map[packagesv1.Downstream]Target{}}
	targets = slices.SortedFunc(slices.Values(targets), Target.compare)
	at := map[packagesv1.Downstream][]int{}
	for i, t := range targets {
		spec, err := variant(t)
		if err = cmp.Or(t.Err, err); err != nil {
			w.Problems = append(w.Problems, Problem{t, err})
			continue
		}
		at[spec.Downstream] = append(at[spec.Downstream], i)
		w.Variants[spec.Downstream], w.Targets[spec.Downstream] = spec, t
	}
	for downstream, several := range at {
		if len(several) < 2 {
			continue
		}
		delete(w.Variants, downstream)
		for _, i := range several {
			other := targets[several[0]]
			if i == several[0] {
				other = targets[several[1]]
			}
			w.Problems = append(w.Problems, Problem{targets[i], fmt.Errorf("%s leads to package %s of Repository %s as well", other, downstream.Package, downstream.Repo)})
		}
	}
	slices.SortStableFunc(w.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Target.Index, b.Target.Index), cmp.Compare(a.Target.Name, b.Target.Name))
	})
	return w
}

// Places are where the variants go, in order: what is told of them is the same each time.
func (w Wanted) Places() []packagesv1.Downstream {
	return slices.SortedFunc(maps.Keys(w.Variants), func(a, b packagesv1.Downstream) int {
		return cmp.Or(cmp.Compare(a.Repo, b.Repo), cmp.Compare(a.Package, b.Package))
	})
}

// There is a variant that a set has made before: where it is kept, and for which target.
type There struct {
	packagesv1.Downstream

	Target string
}

// Unwanted tells which variants have no target any more. One whose target has a problem may only seem so.
func (w Wanted) Unwanted() func(There) bool {
	doubtful := make(map[string]bool, len(w.Problems))
	for _, p := range w.Problems {
		doubtful[p.Target.Key()] = true
	}
	return func(there There) bool {
		_, targeted := w.Targets[there.Downstream]
		return !targeted && !doubtful[there.Target]
	}
}

// MayGo tells whether so many of the variants that are there may go: the percentage stays.
func MayGo(there, going, percent int) bool {
	return going == 0 || (there-going)*100 >= there*percent
}

// Seen is what expressions see of an object: its metadata, with texts up to MaxText.
func Seen(name, namespace string, labels, annotations map[string]string) map[string]any {
	return map[string]any{"name": name, "namespace": namespace, "labels": bounded(labels), "annotations": bounded(annotations)}
}

func bounded(texts map[string]string) map[string]any {
	made := make(map[string]any, len(texts))
	for key, value := range maps.All(texts) {
		if len(key) <= MaxText && len(value) <= MaxText {
			made[key] = value
		}
	}
	return made
}
