package git

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/revision"
)

// peeledSuffix asks for what an annotated tag points to, and finds nothing else.
const peeledSuffix = "^{}"

// reference is a spec's ref, parsed: a commit, alone or with the reference that it has to be on, a reference, or a range.
type reference struct {
	commit string         // a pin
	full   string         // a full reference name to look up
	peeled bool           // full has to be an annotated tag
	short  string         // how the revision spells the reference; empty for a bare commit
	semver revision.Range // with bySemver
	// bySemver selects the newest tag in the range.
	bySemver bool
	// branch narrows the search for a commit that cannot be asked for by its id.
	branch string
}

// name is the reference to look up, as it is written.
func (r reference) name() string {
	if r.peeled {
		return r.full + peeledSuffix
	}
	return r.full
}

// isTag tells whether a tag leads to the commit.
func (r reference) isTag() bool {
	return r.commit == "" && (r.bySemver || strings.HasPrefix(r.full, tagPrefix))
}

// parseReference applies Flux's precedence: commit, name, tag, semver, branch. The error names the field.
func parseReference(ref *sourcev1.GitRepositoryRef) (reference, error) {
	if ref == nil {
		ref = &sourcev1.GitRepositoryRef{}
	}
	switch {
	case ref.Commit != "":
		return pinned(ref)
	case ref.Name != "":
		return byName(ref.Name)
	case ref.Tag != "":
		return byTag(ref.Tag)
	case ref.SemVer != "":
		versions, err := revision.ParseRange(ref.SemVer)
		if err != nil {
			return reference{}, fmt.Errorf("spec.ref.semver is no version range: %w", err)
		}
		return reference{semver: versions, bySemver: true}, nil
	default:
		return byBranch(cmp.Or(ref.Branch, sourcev1.DefaultBranch))
	}
}

// pinned is a commit, spelt after the name or the branch given beside it. It has to be on that, or else on the tag.
func pinned(ref *sourcev1.GitRepositoryRef) (want reference, err error) {
	if !plumbing.IsHash(ref.Commit) || len(ref.Commit) != 40 {
		return want, fmt.Errorf("spec.ref.commit %q is no full SHA-1 commit id: give all 40 hexadecimal digits", clip(ref.Commit))
	}
	switch {
	case ref.Name != "":
		want, err = byName(ref.Name)
	case ref.Branch != "":
		want, err = byBranch(ref.Branch)
	case ref.Tag != "":
		want, err = byTag(ref.Tag)
		want.short = "" // Flux's revision does not name a tag beside a commit.
	}
	want.commit, want.branch = strings.ToLower(ref.Commit), ref.Branch
	return want, err
}

func byName(name string) (reference, error) {
	full, peeled := strings.CutSuffix(name, peeledSuffix)
	return reference{full: full, peeled: peeled, short: name}, validName("name", name, full)
}

func byTag(tag string) (reference, error) {
	full := plumbing.NewTagReferenceName(tag).String()
	return reference{full: full, short: tag}, validName("tag", tag, full)
}

func byBranch(branch string) (reference, error) {
	full := plumbing.NewBranchReferenceName(branch).String()
	return reference{full: full, short: branch}, validName("branch", branch, full)
}

var errReference = errors.New("is no valid reference name (see git check-ref-format)")

// validName checks a full reference name by the rules of git check-ref-format.
func validName(field, given, full string) error {
	if full == plumbing.HEAD.String() {
		return nil
	}
	if !strings.HasPrefix(full, "refs/") || plumbing.ReferenceName(full).Validate() != nil {
		return fmt.Errorf("spec.ref.%s %q %w", field, clip(given), errReference)
	}
	return nil
}

// clip keeps what a user wrote short enough for a message.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
