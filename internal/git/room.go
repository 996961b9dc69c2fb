package git

import (
	"context"

	"sluice.dev/sluice/internal/fair"
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
type room struct{ *fair.Pool }

// newRoom makes room for one delta on the largest base.
func newRoom(largest int64) room { return room{fair.New(framesAtOnce*max(largest, largeObject), 0)} }

// take waits for so many bytes, or until nobody has any.
func (r room) take(ctx context.Context, bytes int64) (*fair.Share, error) {
	if bytes == 0 {
		return nil, nil
	}
	return r.Take(ctx, fair.Wish{Weight: bytes})
}
