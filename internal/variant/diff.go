package variant

import (
	"cmp"
	"maps"
	"slices"

	"sluice.dev/sluice/internal/kpt"
)

// Change is what became of a file or an object.
type Change string

const (
	// Added is what is new.
	Added Change = "Added"
	// Changed is what is another.
	Changed Change = "Changed"
	// Removed is what is gone.
	Removed Change = "Removed"
)

// Count is how many are new, others and gone.
type Count struct {
	Added, Changed, Removed int
}

func (c *Count) add(change Change) {
	switch change {
	case Added:
		c.Added++
	case Changed:
		c.Changed++
	case Removed:
		c.Removed++
	}
}

// FileChange is a file that differs.
type FileChange struct {
	Change Change
	Path   string
}

// ObjectChange is an object that differs.
type ObjectChange struct {
	Change Change
	ID     kpt.ID
}

// Difference is how a package differs from another. Names are bounded, counts are not.
type Difference struct {
	// Files are all that differ, and FileNames the first of them, in the order of their paths.
	Files     Count
	FileNames []FileChange
	// Objects are those that say something else, whatever they look like and wherever they stand, and ObjectNames the first of
	// them, by kind and name. Kptfiles are none of them. Both are empty where one of the packages cannot be read, and ObjectsErr says why.
	Objects     Count
	ObjectNames []ObjectChange
	ObjectsErr  error
}

// Diff compares two packages, of which either may be nil. At most so many files and objects are named.
func Diff(from, to kpt.Package, names int) Difference {
	difference, files := Difference{}, kpt.Package{}
	maps.Copy(files, from)
	maps.Copy(files, to)
	for _, name := range files.Paths() {
		was, before := from[name]
		is, after := to[name]
		if before == after && was.Mode == is.Mode && string(was.Content) == string(is.Content) {
			continue
		}
		change := changeOf(before, after)
		difference.Files.add(change)
		if len(difference.FileNames) < names {
			difference.FileNames = append(difference.FileNames, FileChange{change, name})
		}
	}
	difference.objects(from, to, names)
	return difference
}

func changeOf(before, after bool) Change {
	switch {
	case !before:
		return Added
	case !after:
		return Removed
	default:
		return Changed
	}
}

// key is what an object is found by in the other package. The same may be in several subpackages.
type key struct {
	id         kpt.ID
	subpackage string
	nth        int
}

func (d *Difference) objects(from, to kpt.Package, names int) {
	was, err := objects(from)
	is, otherErr := objects(to)
	if d.ObjectsErr = cmp.Or(err, otherErr); d.ObjectsErr != nil {
		return
	}
	keys := slices.Collect(maps.Keys(was))
	for key := range is {
		if was[key] == nil {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	for _, key := range keys {
		before, after := was[key], is[key]
		if before != nil && after != nil && kpt.SameValue(before, after) && before.ID() == after.ID() {
			continue
		}
		change := changeOf(before != nil, after != nil)
		d.Objects.add(change)
		if len(d.ObjectNames) < names {
			d.ObjectNames = append(d.ObjectNames, ObjectChange{change, cmp.Or(after, before).ID()})
		}
	}
}

// objects are those of the package, by what they are known by where it comes from.
func objects(p kpt.Package) (found map[key]*kpt.Resource, err error) {
	resources, err := kpt.Open(p)
	if err != nil {
		return nil, err
	}
	found = map[key]*kpt.Resource{}
	for _, item := range resources.Items {
		if item.IsKptfile() {
			continue
		}
		known := key{item.Origin(), item.Subpackage(), 0}
		for found[known] != nil {
			known.nth++
		}
		found[known] = item
	}
	return found, nil
}

func compareKeys(a, b key) int {
	return cmp.Or(cmp.Compare(a.id.Group, b.id.Group), cmp.Compare(a.id.Kind, b.id.Kind), cmp.Compare(a.id.Namespace, b.id.Namespace),
		cmp.Compare(a.id.Name, b.id.Name), cmp.Compare(a.subpackage, b.subpackage), cmp.Compare(a.nth, b.nth))
}
