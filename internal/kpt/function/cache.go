package function

import (
	"slices"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// cache keeps rendered packages by the digests of those that they were made of; the longest unused goes first.
type cache struct {
	most, bytes int64
	lru         *simplelru.LRU[string, *rendered]
}

// maxKept bounds how many packages are kept, however small they are.
const maxKept = 10_000

func newCache(most int64) *cache {
	c := &cache{most: most}
	// It fails for a size of nothing alone.
	c.lru, _ = simplelru.NewLRU(maxKept, func(_ string, gone *rendered) { c.bytes -= gone.bytes() })
	return c
}

func (c *cache) get(key string) (*rendered, bool) { return c.lru.Get(key) }

// drop takes it out, unless there is another one by now.
func (c *cache) drop(key string, stale *rendered) {
	if kept, found := c.lru.Peek(key); found && kept == stale {
		c.lru.Remove(key)
	}
}

func (c *cache) add(key string, made *rendered) {
	bytes := made.bytes()
	if bytes > c.most {
		return
	}
	c.lru.Remove(key)
	c.bytes += bytes
	c.lru.Add(key, made)
	for c.bytes > c.most {
		c.lru.RemoveOldest()
	}
}

// perFile is about what a file takes beside its name and content.
const perFile = 128

// bytes is about what the package takes in memory.
func (r *rendered) bytes() int64 {
	total, _ := weigh(r.pkg)
	for _, result := range r.results {
		for _, note := range result.Notes {
			total += int64(len(note))
		}
	}
	return total + int64(perFile*(1+len(r.pkg)+len(r.results)))
}

// cloneResults copies them for someone who may change them.
func cloneResults(results []Result) []Result {
	cloned := slices.Clone(results)
	for i := range cloned {
		cloned[i].Notes = slices.Clone(cloned[i].Notes)
	}
	return cloned
}
