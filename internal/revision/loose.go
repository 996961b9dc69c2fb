package revision

import "github.com/Masterminds/semver/v3"

// ParseLoose reads a version as Helm does: minor and patch may be missing, and a leading 'v' is passed over. Anything over
// 256 bytes is no version.
func ParseLoose(text string) (version Version, ok bool) {
	parsed, err := semver.NewVersion(text)
	if err != nil {
		return Version{}, false
	}
	return Version{parsed: *parsed, text: text}, true
}
