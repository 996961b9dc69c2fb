package oci

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/opencontainers/go-digest"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/revision"
)

// helmChart is the media type of a Helm chart's layer, https://helm.sh/docs/topics/registries/.
const helmChart = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// maxFilter is the longest regular expression that is compiled, in bytes.
const maxFilter = 1 << 10

// reference is spec.ref, read. Exactly one of digest, bySemver and tag is set.
type reference struct {
	digest digest.Digest
	tag    string

	bySemver bool
	semver   revision.Range
	filter   *regexp.Regexp // nil lets every tag pass
	// charts says that '_' in a tag stands for the '+' of a version, as Helm writes it.
	charts bool
}

// parseReference applies Flux's precedence: digest, then semver, then tag, then the tag "latest". Errors
// have the reason under which Flux reports what it finds out by asking the registry.
func parseReference(ref *sourcev1.OCIRepositoryRef, mediaType string) (reference, error) {
	if ref == nil {
		ref = &sourcev1.OCIRepositoryRef{}
	}
	switch {
	case ref.Digest != "":
		pinned, err := digest.Parse(ref.Digest)
		if err != nil {
			return reference{}, failure.Stall(sourcev1.OCIPullFailedReason,
				fmt.Errorf("spec.ref.digest %.128q is invalid: %w; write it as sha256: and 64 hexadecimal digits", ref.Digest, err))
		}
		return reference{digest: pinned}, nil
	case ref.SemVer != "":
		parsed, err := parseSemver(ref, mediaType)
		if err != nil {
			return reference{}, failure.Stall(sourcev1.ReadOperationFailedReason, err)
		}
		return parsed, nil
	case ref.Tag != "":
		if !registry.IsTag(ref.Tag) {
			return reference{}, failure.Stall(sourcev1.OCIPullFailedReason,
				fmt.Errorf("spec.ref.tag %.128q is no tag: letters, digits, '_', '.' and '-' make up at most 128 characters", ref.Tag))
		}
		return reference{tag: ref.Tag}, nil
	default:
		return reference{tag: sourcev1.DefaultOCITag}, nil
	}
}

func parseSemver(ref *sourcev1.OCIRepositoryRef, mediaType string) (reference, error) {
	selected, err := revision.ParseRange(ref.SemVer)
	if err != nil {
		return reference{}, fmt.Errorf("spec.ref.semver is invalid: %w", err)
	}
	parsed := reference{bySemver: true, semver: selected, charts: mediaType == helmChart}
	if ref.SemverFilter == "" {
		return parsed, nil
	}
	if len(ref.SemverFilter) > maxFilter {
		return reference{}, fmt.Errorf("spec.ref.semverFilter is longer than %d bytes", maxFilter)
	}
	if parsed.filter, err = regexp.Compile(ref.SemverFilter); err != nil {
		return reference{}, fmt.Errorf("spec.ref.semverFilter is invalid: %w", err)
	}
	return parsed, nil
}

// newest finds the tag of the highest version that a reference selects, among all that it sees. Tags that differ only in
// what has no say, a leading 'v' or build metadata, come in lexical order, and the last of them is taken.
type newest struct {
	among   reference
	version revision.Version
	tag     string // empty while there is none
	seen    int
}

func (n *newest) see(tag string) {
	n.seen++
	if n.among.filter != nil && !n.among.filter.MatchString(tag) {
		return
	}
	version, ok := revision.ParseVersion(n.among.spelt(tag))
	if !ok || !n.among.semver.Contains(version) {
		return
	}
	if n.tag != "" {
		order := cmp.Or(version.Compare(n.version), cmp.Compare(n.among.spelt(tag), n.among.spelt(n.tag)))
		if order <= 0 {
			return
		}
	}
	n.version, n.tag = version, tag
}

// spelt is the version that a tag stands for.
func (r reference) spelt(tag string) string {
	if r.charts {
		return strings.ReplaceAll(tag, "_", "+")
	}
	return tag
}
