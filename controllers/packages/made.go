package packages

import (
	"fmt"
	"math"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/kpt/merge"
	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/variant"
)

// maxText bounds what one field of a report takes over from a package; the others bound what a status has less room for.
const (
	maxText  = 256
	maxName  = 253
	maxLabel = 63
	// maxMessage leaves room for a few bytes a character, as the field counts those.
	maxMessage = 512
)

// fit makes text from outside fit a field that has room for so many characters: one more, and the status could not be written.
func fit(text string, room int) string { return printable.Line(text, room-1) } // An ellipsis may follow.

// made is what an order made of a package, as far as it is told.
type made struct {
	// listed are the conflicts, with those that the open change had before.
	listed  conflictList
	results []function.Result
	// difference is what it changes of what is on the branch, and branch names the tree that the package has there.
	difference variant.Difference
	branch     string
	// adopted is the package that is there, where it needed nothing to be taken over; else nil.
	adopted *packagesv1.AdoptedStatus
	// conditions are those that what was made has.
	conditions []kpt.Condition
	// content names what was made, where it is made for the preview of a set.
	content string
	// isComputed says that it was made of the blueprint, the spec and what is on the branch alone, so that nothing of it is from the
	// draft, to which others may push.
	isComputed bool
	// isPreview says that it was not written.
	isPreview bool
	// isUnchanged says that the package was as it should be: what was said of it before stays right.
	isUnchanged bool
}

// show tells of it in a status.
func (m *made) show(s *packagesv1.ChangeStatus) {
	m.showDifference(s)
	m.listed.show(s)
	m.showResults(s)
}

// showDifference tells of nothing else.
func (m *made) showDifference(s *packagesv1.ChangeStatus) {
	s.Files, s.Objects = m.differs()
	if err := m.difference.ObjectsErr; err != nil {
		s.Objects, s.Message = nil, fit("Cannot list the changed objects: "+err.Error(), maxMessage)
	}
}

// showResults tells of nothing else.
func (m *made) showResults(s *packagesv1.ChangeStatus) {
	s.RenderResults = nil
	for _, r := range m.results[:min(len(m.results), packagesv1.MaxRenderResults)] {
		result := packagesv1.RenderResult{
			Package: fit(r.Package, maxText), Function: fit(r.Function, maxText), Entry: fit(r.Entry, maxText),
			Validator: r.Validator, Changed: capped(r.Changed),
		}
		for _, note := range r.Notes[:min(len(r.Notes), packagesv1.MaxRenderNotes)] {
			result.Notes = append(result.Notes, fit(note, maxText))
		}
		s.RenderResults = append(s.RenderResults, result)
	}
}

// differs are the files and objects that differ from what is on the branch.
func (m *made) differs() (*packagesv1.FileChanges, *packagesv1.ObjectChanges) {
	d := m.difference
	files := &packagesv1.FileChanges{Added: capped(d.Files.Added), Changed: capped(d.Files.Changed), Removed: capped(d.Files.Removed)}
	for _, f := range d.FileNames {
		files.Names = append(files.Names, packagesv1.FileChange{Change: packagesv1.Difference(f.Change), Path: fit(f.Path, maxText)})
	}
	objects := &packagesv1.ObjectChanges{Added: capped(d.Objects.Added), Changed: capped(d.Objects.Changed), Removed: capped(d.Objects.Removed)}
	for _, o := range d.ObjectNames {
		objects.Names = append(objects.Names, packagesv1.ObjectChange{
			Change: packagesv1.Difference(o.Change), Group: fit(o.ID.Group, maxName), Kind: fit(o.ID.Kind, maxLabel),
			Namespace: fit(o.ID.Namespace, maxLabel), Name: fit(o.ID.Name, maxName),
		})
	}
	return files, objects
}

// conflicted are conflicts as a status has them.
func conflicted(conflicts []merge.Conflict) (listed []packagesv1.Conflict) {
	for _, c := range conflicts {
		listed = append(listed, packagesv1.Conflict{
			File: fit(c.File, maxText), Resource: fit(c.Resource, maxText), Path: fit(c.Path, maxText),
			Base: fit(c.Base, packagesv1.MaxConflictValue), Upstream: fit(c.Upstream, packagesv1.MaxConflictValue), Local: fit(c.Local, packagesv1.MaxConflictValue),
		})
	}
	return listed
}

func capped(n int) int32 { return int32(min(n, math.MaxInt32)) } //nolint:gosec // It is bounded.

// counted says how many there are of something that takes an s.
func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// conflictsSaid says how many there are, and how they are approved.
func conflictsSaid(change *packagesv1.ChangeStatus, where string) string {
	where = "status." + where + " lists them"
	if len(change.Conflicts) == 0 {
		where = "the message of the draft's commit lists them"
	}
	said := fmt.Sprintf("Upstream and people changed the same value in %s; %s", counted(int(change.ConflictCount), "place"), where)
	if change.PackageRevision != "" {
		said += fmt.Sprintf(". To publish the change, set spec.approvedConflicts of PackageRevision %s to %s", change.PackageRevision, change.ConflictDigest)
	}
	return said
}
