package git

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/transport"
)

// chooseWants decides which objects to ask for. A server of version 0 gives out what its refs name, and other
// commits only if it says so; it sets r.whole when only a branch's history can hold the commit.
func chooseWants(a *advert, refs []Ref, r *request) ([]string, error) {
	// An annotated tag is asked for by its own id; it brings its commit along.
	asked := cmp.Or(r.Tag, r.hash.String())
	if a.version == 2 && !r.whole {
		return []string{asked}, nil
	}
	if !r.whole {
		for _, ref := range refs {
			if ref.Hash == asked || ref.Name == r.Ref && ref.Target() == r.hash.String() {
				return []string{ref.Hash}, nil
			}
		}
		for _, ref := range refs {
			if ref.Target() == r.hash.String() {
				return []string{ref.Hash}, nil
			}
		}
		if a.caps.has("allow-tip-sha1-in-want") || a.caps.has("allow-reachable-sha1-in-want") {
			return []string{r.hash.String()}, nil
		}
		r.whole = true
	}
	return historyWants(refs, r.Branch)
}

// historyWants are the branch, or all branches and tags.
func historyWants(refs []Ref, branch string) ([]string, error) {
	var wants []string
	for _, ref := range refs {
		if branch == "" && (strings.HasPrefix(ref.Name, "refs/heads/") || strings.HasPrefix(ref.Name, "refs/tags/")) ||
			branch != "" && ref.Name == "refs/heads/"+strings.TrimPrefix(branch, "refs/heads/") {
			wants = append(wants, ref.Hash)
		}
	}
	if len(wants) == 0 && branch != "" {
		return nil, fmt.Errorf("%w: there is no branch %s to look for it", ErrRefNotFound, transport.PrintableQuoted(branch))
	}
	if len(wants) == 0 {
		return nil, fmt.Errorf("%w: there are no branches and tags to look for it", ErrRefNotFound)
	}
	slices.Sort(wants)
	return slices.Compact(wants), nil
}

// explainRemote turns a server's refusal of the wanted object into what it means.
func explainRemote(a *advert, r request, err error) error {
	var refusal *remoteError
	if !errors.As(err, &refusal) {
		return err
	}
	missing := strings.Contains(refusal.message, "not our ref")
	invalid := strings.Contains(refusal.message, "not valid")
	tipsOnly := a.version != 2 && !a.caps.has("allow-reachable-sha1-in-want") && !a.caps.has("allow-any-sha1-in-want")
	switch {
	case r.filter != "" && strings.Contains(refusal.message, "filter"):
		return errNoFilter
	case !r.whole && (invalid || missing && tipsOnly):
		return errNotWantable
	case missing || invalid:
		return fmt.Errorf("%w: %w", ErrRefNotFound, err)
	}
	return err
}
