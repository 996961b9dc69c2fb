package registry

import (
	"context"
	"fmt"
	"io"
	"sync"

	"sluice.dev/sluice/internal/fair"
)

const (
	// freeBytes is how much every Allowance covers unasked: more than ordinary manifests and signatures take.
	freeBytes = 256 << 10
	// documentsHeld is how many documents of the largest size one caller may hold at once, raw and read: say, an index and
	// a manifest of it.
	documentsHeld = 4
)

// LeastHeldBytes is the least that Options.MaxHeldBytes may be, with documents of at most so many bytes: callers of two
// namespaces have room.
func LeastHeldBytes(maxManifestBytes int64) int64 { return 2 * documentsHeld * maxManifestBytes }

// Allowance is what one caller may hold of answers that are in memory as a whole: manifests, indexes, lists of referrers
// and small blobs. The little that most answers are is free. Beyond it, a call waits until few enough others hold as much,
// and what it took is held until Release, so that no caller waits for more while holding something.
//
// The zero value is no Allowance. One caller at a time may use it.
type Allowance struct {
	shared *fair.Pool
	wish   fair.Wish

	mu    sync.Mutex
	bytes int64
	taken *fair.Share
}

// Allowance makes one that has taken nothing. The callers of one namespace have half of the room at most.
func (c *Client) Allowance(namespace string) *Allowance {
	return &Allowance{shared: c.held, wish: fair.Wish{Namespace: namespace, Weight: documentsHeld * c.options.MaxManifestBytes}}
}

// Release gives back what was taken, and says whether that was anything: then the caller must not hold on to the answers
// that it got. The Allowance can be used again.
func (a *Allowance) Release() (taken bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken = a.taken != nil
	a.taken.Release()
	a.bytes, a.taken = 0, nil
	return taken
}

// count waits before more bytes are held than are free.
func (a *Allowance) count(ctx context.Context, bytes int) (err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bytes += int64(bytes); a.taken != nil || a.bytes <= freeBytes {
		return nil
	}
	if a.taken, err = a.shared.Take(ctx, a.wish); err != nil {
		return fmt.Errorf("wait until fewer large answers of registries are in memory: %w", err)
	}
	return nil
}

// allowed reads a body that is going to be held.
type allowed struct {
	//nolint:containedctx // It belongs to the one call that reads.
	ctx       context.Context
	body      io.Reader
	allowance *Allowance
}

func (r allowed) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	if waited := r.allowance.count(r.ctx, n); waited != nil {
		return 0, waited
	}
	return n, err
}
