package helm

import (
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
	if wanted == "" {
		wanted = anyVersion
	}
	among, err := revision.ParseRange(wanted)
	if err != nil {
		return index.Version{}, err
	}
	var best *index.Version
	var highest revision.Version
	for i := range versions {
		parsed, ok := revision.ParseLoose(versions[i].Version)
		if !ok || !among.Contains(parsed) {
			continue
		}
		order := 1
		if best != nil {
			if order = parsed.Compare(highest); order == 0 {
				order = versions[i].Created.Compare(best.Created)
			}
		}
		if order > 0 {
			best, highest = &versions[i], parsed
		}
	}
	if best == nil {
		return index.Version{}, fmt.Errorf("%w: none of %d is in the range %q", ErrNoVersion, len(versions), wanted)
	}
	return *best, nil
}
