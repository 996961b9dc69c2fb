package revision

import (
	"errors"
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
)

// MaxRangeLength is the length in bytes beyond which nothing is parsed as a range.
const MaxRangeLength = 512

// ErrInvalidRange says that a text is no range of versions. The error that wraps it says why.
var ErrInvalidRange = errors.New("invalid range of semantic versions")

// Range selects versions: comparisons (>=1.2.0 <2.0.0, or with a comma), carets (^1.2.0), tildes (~1.2.0),
// wildcards (1.2.x, *), spans (1.2 - 2.3), and alternatives (1.x || 3.x). Versions in it may be short and may have a
// leading 'v'. Prereleases are selected only by alternatives that name one themselves, as in >=1.0.0-0.
type Range struct {
	constraints *semver.Constraints
}

// ParseRange reads a range. Errors are ErrInvalidRange.
func ParseRange(s string) (Range, error) {
	if len(s) > MaxRangeLength {
		return Range{}, fmt.Errorf("%w: %d bytes are more than %d", ErrInvalidRange, len(s), MaxRangeLength)
	}
	constraints, err := semver.NewConstraint(s)
	if err != nil {
		return Range{}, fmt.Errorf("%w %q: write it like '1.2.x', '>=1.2.0 <2.0.0' or '^1.2.0'", ErrInvalidRange, s)
	}
	return Range{constraints: constraints}, nil
}

// Contains says whether the version is in the range. The zero Range contains nothing.
func (r Range) Contains(v Version) bool {
	return r.constraints != nil && r.constraints.Check(&v.parsed)
}

// Latest returns the tags of the highest version in the range, sorted and without duplicates: more than one when
// tags differ only in build metadata or a leading 'v', where the range has no say and the caller has to choose.
// Tags that are no versions are passed over. Nothing is returned when no tag is in the range.
func (r Range) Latest(tags []string) []string {
	var highest Version
	var latest []string
	for _, tag := range tags {
		version, ok := ParseVersion(tag)
		if !ok || !r.Contains(version) {
			continue
		}
		order := 1
		if latest != nil {
			order = version.Compare(highest)
		}
		switch {
		case order > 0:
			highest, latest = version, []string{tag}
		case order == 0:
			latest = append(latest, tag)
		}
	}
	slices.Sort(latest)
	return slices.Compact(latest)
}
