package packages

import (
	"fmt"
	"strings"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/status"
)

// fewProblems is how many names of a cause a message has.
const fewProblems = 6

// checkKnown returns an error that waits where a bound leaves the package out of what is known of a Repository: its absence means nothing.
func (m *mirror) checkKnown(pkg string) error {
	if err := m.Snapshot().CheckKnown(pkg); err != nil {
		return failure.Wait(packagesv1.LimitExceededReason, 0, fmt.Errorf("repository %s: %w", m.key.Name, err))
	}
	return nil
}

// incomplete are the conditions that name what is left out of the snapshot, or cannot be used. The gravest cause gives the reason.
func incomplete(s *pkgrepo.Snapshot) []status.Fact {
	var reason string
	var said []string
	for _, cause := range []struct {
		of           pkgrepo.Cause
		reason, text string
	}{
		{pkgrepo.OverLimit, packagesv1.LimitExceededReason, "Left out, as there are too many: %s. Remove branches, tags or packages."},
		{pkgrepo.InTheWay, packagesv1.RefInTheWayReason, "Rename or remove: %s."},
		{pkgrepo.Unproven, packagesv1.BranchUnknownReason, "Not used until the server says whether the branch has them: %s."},
		{pkgrepo.Unreadable, packagesv1.InvalidPackageReason, "Cannot be read: %s. Correct or remove them in Git."},
	} {
		if p := s.Problems[cause.of]; p.Count > 0 {
			if reason == "" {
				reason = cause.reason
			}
			said = append(said, fmt.Sprintf(cause.text, firstOf(p)))
		}
	}
	if reason == "" {
		return nil
	}
	return []status.Fact{status.True(packagesv1.IncompleteCondition, reason, printable.Line(strings.Join(said, " "), maxConditionWords))}
}

// firstOf are the first few names of a problem, and how many more there are.
func firstOf(p pkgrepo.Problem) string {
	few := p.Names[:min(len(p.Names), fewProblems)]
	text := strings.Join(few, ", ")
	if more := p.Count - len(few); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// disregarded says what has the shape of packages, and is none.
func disregarded(s *pkgrepo.Snapshot) (said string) {
	for _, cause := range []struct {
		of   pkgrepo.Cause
		text string
	}{{pkgrepo.Unsafe, "; ignored, as the names cannot be used: %s"}, {pkgrepo.OfNoPackage, "; tags of no package: %s"}} {
		if p := s.Problems[cause.of]; p.Count > 0 {
			said += fmt.Sprintf(cause.text, firstOf(p))
		}
	}
	return said
}
