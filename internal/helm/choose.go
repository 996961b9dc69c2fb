package helm

import (
	"cmp"
	"errors"
	"fmt"

	"sluice.dev/sluice/internal/helm/index"
	"sluice.dev/sluice/internal/revision"
)

// ErrNoVersion says that a chart has no version of those that are wanted.
var ErrNoVersion = errors.New("no chart version found")

// anyVersion is what an empty range stands for: releases, and no prereleases.
const anyVersion = "*"

// Choose picks a version of a chart as Flux does from an index: the one whose text is just what is wanted, else the highest
// in the range, and of such as differ in build metadata alone the one that was created last. Texts that are no versions are
// passed over. ErrNoVersion without any, revision.ErrInvalidRange for what is no range.
func Choose(versions []index.Version, wanted string) (index.Version, error) {
	for _, v := range versions {
		if wanted != "" && v.Version == wanted {
			return v, nil
		}
	}
	best, err := NewBest(wanted)
	if err != nil {
		return index.Version{}, err
	}
	at := -1
	for i := range versions {
		if best.isBetter(versions[i].Version, func() bool { return versions[i].Created.After(versions[at].Created) }) {
			at = i
		}
	}
	if _, err := best.Version(); err != nil {
		return index.Version{}, err
	}
	return versions[at], nil
}

// Best is the highest version in a range, of those that it sees.
type Best struct {
	wanted  string
	among   revision.Range
	highest revision.Version
	version string
	seen    int
}

// NewBest returns a Best of a version or range; an empty one stands for all releases. revision.ErrInvalidRange for what is none.
func NewBest(wanted string) (*Best, error) {
	wanted = cmp.Or(wanted, anyVersion)
	among, err := revision.ParseRange(wanted)
	return &Best{wanted: wanted, among: among}, err
}

// See looks at a version. One whose text is just what is wanted is the best there is.
func (b *Best) See(version string) {
	if b.version != "" && b.version == b.wanted {
		return
	}
	b.isBetter(version, func() bool { return version > b.version })
}

// isBetter takes a version that is better than the best one until now; where both are equal, but for build metadata, the function
// decides.
func (b *Best) isBetter(version string, decide func() bool) bool {
	b.seen++
	parsed, ok := revision.ParseLoose(version)
	isExact := version == b.wanted
	if !isExact && (!ok || !b.among.Contains(parsed)) {
		return false
	}
	if b.version != "" && !isExact {
		if order := parsed.Compare(b.highest); order < 0 || order == 0 && !decide() {
			return false
		}
	}
	b.version, b.highest = version, parsed
	return true
}

// Version is the best one; ErrNoVersion without any.
func (b *Best) Version() (string, error) {
	if b.version == "" {
		return "", fmt.Errorf("%w: none of %d is in the range %q", ErrNoVersion, b.seen, b.wanted)
	}
	return b.version, nil
}
