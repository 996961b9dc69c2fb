package pkgrepo

import (
	"context"
	"fmt"
	"strconv"

	"sluice.dev/sluice/internal/git"
)

// bounds are how much of a repository is known.
type bounds struct {
	refs, packages int
	facts          int64
	// isShrunk says that it is less than the options allow, as there is no memory for more.
	isShrunk bool
}

func (b bounds) said(most int) string {
	if b.isShrunk {
		return fmt.Sprintf("the %d that its share of memory has room for", most)
	}
	return strconv.Itoa(most)
}

// maxFits is how often a snapshot is made anew to take less memory.
const maxFits = 4

// fit has a snapshot of refs take no more memory than there is room for: more of it is left out then.
func (w work) fit(ctx context.Context, s *Snapshot, refs map[string]git.Ref, last bool) (_ *Snapshot, err error) {
	for range maxFits {
		room, needed := w.depot.holdings.room(w.Repository, w.settings.Tenant), s.bytes()
		if needed <= room {
			break
		}
		part := func(of int64) int64 { return max(int64(float64(of)*float64(room)/float64(needed)*7/8), 1) }
		w.bounds = bounds{int(part(int64(len(s.Refs)))), int(part(int64(len(s.Packages)))), part(s.known.bytes), true}
		if s, err = w.describe(ctx, refs, last); err != nil {
			return nil, err
		}
		s.partial = true // There may be more room the next time.
	}
	return s, nil
}
