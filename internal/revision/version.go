package revision

import (
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Version is a semantic version, https://semver.org/spec/v2.0.0.html, together with the text it was read from.
type Version struct {
	parsed semver.Version
	text   string
}

// ParseVersion reads a tag as a version: strictly major.minor.patch with optional prerelease and build metadata,
// behind at most one 'v'. Tags such as v1, 1.2 and 01.2.3 are no versions; nor is anything over 256 bytes, or with
// a number that does not fit 64 bits.
func ParseVersion(tag string) (version Version, ok bool) {
	parsed, err := semver.StrictNewVersion(strings.TrimPrefix(tag, "v"))
	if err != nil {
		return Version{}, false
	}
	return Version{parsed: *parsed, text: tag}, true
}

// String is the text that the version was read from.
func (v Version) String() string { return v.text }

// Prerelease is what follows the dash; empty for a release.
func (v Version) Prerelease() string { return v.parsed.Prerelease() }

// Compare orders versions by precedence: -1 when v is lower than other, 1 when it is higher, and 0 when they differ
// at most in a leading 'v' and in build metadata, which have no say.
func (v Version) Compare(other Version) int { return v.parsed.Compare(&other.parsed) }
