package pkgrepo

import (
	"context"
	"fmt"
	"strconv"

	"sluice.dev/sluice/internal/git"
)

// bounds limit the part of a repository that a snapshot has.
type bounds struct {
	refs, packages int
	facts          int64
	// isShrunk says that the bounds are lower than the options, because memory is short.
	isShrunk bool
}

func (b bounds) said(most int) string {
	if b.isShrunk {
		return fmt.Sprintf("the %d that fit in its share of memory", most)
	}
	return strconv.Itoa(most)
}

// maxFits is how often a snapshot is recreated to use less memory.
const maxFits = 4

// fit recreates a snapshot with lower bounds until it fits into the available memory.
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
