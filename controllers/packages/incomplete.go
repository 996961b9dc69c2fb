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

// fewProblems is the number of names that a message has for each cause.
const fewProblems = 6

// checkKnown returns a waiting error if a bound leaves the package out of the snapshot: its absence then proves nothing.
func (m *mirror) checkKnown(pkg string) error {
	if err := m.Snapshot().CheckKnown(pkg); err != nil {
		return failure.Wait(packagesv1.LimitExceededReason, 0, fmt.Errorf("repository %s: %w", m.key.Name, err))
	}
	return nil
}

// incomplete returns the condition Incomplete for a snapshot that lacks a part of the repository. The most severe cause is the reason.
func incomplete(s *pkgrepo.Snapshot) []status.Fact {
	var reason string
	var said []string
	for _, cause := range []struct {
		of           pkgrepo.Cause
		reason, text string
	}{
		{pkgrepo.OverLimit, packagesv1.LimitExceededReason, "Too many packages or refs; left out: %s. Remove branches, tags or packages."},
		{pkgrepo.InTheWay, packagesv1.RefInTheWayReason, "Git cannot create refs of packages: %s. Rename or remove them."},
		{pkgrepo.Unproven, packagesv1.BranchUnknownReason, "Tags not used, because the server did not say whether the branch has their commits: %s. Check the server."},
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

// disregarded names refs and folders that look like packages and are none.
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
