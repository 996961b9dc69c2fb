package git

import (
	"context"

	"golang.org/x/sync/semaphore"
)

const (
	// largeObject is the size up to which objects are put together from deltas without asking for room.
	largeObject = 1 << 20
	// deltaShare is which part of Options.MaxObjectBytes an object that takes part in deltas may have: it is held in
	// memory, with its base and its delta, where others are streamed.
	deltaShare = 4
	// framesAtOnce is how many of the largest objects are in memory while a delta is applied: base, delta and result.
	framesAtOnce = 3
)

// room is the memory that all fetches of a Client together have for large objects that deltas are applied to. Nobody
// who holds some asks for more, so that everybody comes to the end.
type room struct {
	size int64
	free *semaphore.Weighted
}

// newRoom makes room for one delta on the largest base.
func newRoom(largest int64) *room {
	size := framesAtOnce * max(largest, largeObject)
	return &room{size: size, free: semaphore.NewWeighted(size)}
}

// acquire waits for so many bytes, or for all there are. The returned function gives them back.
func (r *room) acquire(ctx context.Context, bytes int64) (release func(), err error) {
	bytes = min(bytes, r.size)
	if bytes == 0 {
		return func() {}, nil
	}
	if err := r.free.Acquire(ctx, bytes); err != nil {
		return nil, context.Cause(ctx)
	}
	return func() { r.free.Release(bytes) }, nil
}
