package git

import "sync"

const (
	// maxKeptBases bounds the bases that one pack keeps.
	maxKeptBases = 16 << 20
	// maxKeptBase is the largest base that is kept.
	maxKeptBase = 4 << 20
)

// baseCache keeps objects that deltas apply to. When it is full it starts anew: a tree is read in order, and what
// was used before is not likely to be used again.
type baseCache struct {
	mu      sync.Mutex
	content map[int32][]byte
	bytes   int
}

func (c *baseCache) find(index int32) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	content, ok := c.content[index]
	return content, ok
}

func (c *baseCache) keep(index int32, content []byte) {
	if len(content) > maxKeptBase {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, kept := c.content[index]; kept {
		return
	}
	if c.content == nil || c.bytes+len(content) > maxKeptBases {
		c.content, c.bytes = map[int32][]byte{}, 0
	}
	c.content[index] = content
	c.bytes += len(content)
}
