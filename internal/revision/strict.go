package revision

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// MaxVersionLength is the length in bytes beyond which nothing is parsed as a version.
const MaxVersionLength = 256

// ErrInvalidVersion says that a text is no strict semantic version. The error that wraps it says why.
var ErrInvalidVersion = errors.New("invalid semantic version")

// ParseStrict reads a version that a person wrote, where a tag's leading 'v' has no place: major.minor.patch with
// optional prerelease and build metadata, https://semver.org/spec/v2.0.0.html. Numbers that do not fit 64 bits are
// refused, in prereleases too, because they could not be put in order. Errors are ErrInvalidVersion.
func ParseStrict(s string) (Version, error) {
	if len(s) > MaxVersionLength {
		return Version{}, fmt.Errorf("%w: %d bytes are more than %d", ErrInvalidVersion, len(s), MaxVersionLength)
	}
	parsed, err := semver.StrictNewVersion(s)
	if err != nil {
		return Version{}, fmt.Errorf("%w %q: %s", ErrInvalidVersion, s, strictHint(s))
	}
	for identifier := range strings.SplitSeq(parsed.Prerelease(), ".") {
		if _, err := strconv.ParseUint(identifier, 10, 64); err != nil && isNumber(identifier) {
			return Version{}, fmt.Errorf("%w %q: the number %s does not fit 64 bits", ErrInvalidVersion, s, identifier)
		}
	}
	return Version{parsed: *parsed, text: s}, nil
}

// Major is the first number of the version.
func (v Version) Major() uint64 { return v.parsed.Major() }

// Minor is the second number of the version.
func (v Version) Minor() uint64 { return v.parsed.Minor() }

// Patch is the third number of the version.
func (v Version) Patch() uint64 { return v.parsed.Patch() }

// Precedence is the version without what has no say in its order: a leading 'v' and build metadata. Two versions are
// equal in precedence exactly when these texts are equal, provided that ParseStrict read both.
func (v Version) Precedence() string {
	core := fmt.Sprintf("%d.%d.%d", v.Major(), v.Minor(), v.Patch())
	if v.Prerelease() == "" {
		return core
	}
	return core + "-" + v.Prerelease()
}

func strictHint(s string) string {
	if _, err := semver.StrictNewVersion(strings.TrimPrefix(s, "v")); err == nil {
		return "write it without the 'v'"
	}
	return "write three numbers, as in 1.2.3, 1.2.3-rc.1 or 1.2.3+build.5"
}
