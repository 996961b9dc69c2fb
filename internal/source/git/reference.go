package git

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/revision"
)

// reference is a spec's ref, parsed. Exactly one of its ways to select is set.
type reference struct {
	commit string         // a pin: nothing has to be asked
	full   string         // a full reference name to look up
	short  string         // how the revision spells the reference; empty for a bare commit
	semver revision.Range // with bySemver
	// bySemver selects the newest tag in the range.
	bySemver bool
	// branch narrows the search for a commit that cannot be asked for by its id.
	branch string
}

// parseReference applies Flux's precedence: commit, name, tag, semver, branch. The error names the field.
func parseReference(ref *sourcev1.GitRepositoryRef) (reference, error) {
	if ref == nil {
		ref = &sourcev1.GitRepositoryRef{}
	}
	branch := ref.Branch
	if branch == "" {
		branch = sourcev1.DefaultBranch
	}
	switch {
	case ref.Commit != "":
		return pinned(ref)
	case ref.Name != "":
		if err := validName("name", ref.Name, ref.Name); err != nil {
			return reference{}, err
		}
		return reference{full: ref.Name, short: ref.Name}, nil
	case ref.Tag != "":
		full := plumbing.NewTagReferenceName(ref.Tag).String()
		return reference{full: full, short: ref.Tag}, validName("tag", ref.Tag, full)
	case ref.SemVer != "":
		versions, err := revision.ParseRange(ref.SemVer)
		if err != nil {
			return reference{}, fmt.Errorf("spec.ref.semver is no version range: %w", err)
		}
		return reference{semver: versions, bySemver: true}, nil
	default:
		full := plumbing.NewBranchReferenceName(branch).String()
		return reference{full: full, short: branch}, validName("branch", branch, full)
	}
}

// pinned is a commit, spelt after the name or the branch given beside it.
func pinned(ref *sourcev1.GitRepositoryRef) (reference, error) {
	if !plumbing.IsHash(ref.Commit) || len(ref.Commit) != 40 {
		return reference{}, fmt.Errorf("spec.ref.commit %q is no full SHA-1 commit id: give all 40 hexadecimal digits", clip(ref.Commit))
	}
	want := reference{commit: strings.ToLower(ref.Commit), branch: ref.Branch, short: ref.Branch}
	if ref.Name != "" {
		if err := validName("name", ref.Name, ref.Name); err != nil {
			return reference{}, err
		}
		want.short = ref.Name
		return want, nil
	}
	if ref.Branch != "" {
		return want, validName("branch", ref.Branch, plumbing.NewBranchReferenceName(ref.Branch).String())
	}
	return want, nil
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
