package git

import (
	"github.com/hashicorp/golang-lru/v2"

	"sluice.dev/sluice/internal/tree"
)

// maxFacts is how many trees are remembered. Each takes about two hundred bytes.
const maxFacts = 1 << 16

// facts are about a tree that was found to be whole and safe, with everything below.
type facts struct {
	tree.Facts

	entries int  // of all kinds
	height  int  // how many directories are nested in it
	hollow  bool // nothing is in it but directories
	modules bool // a submodule is in it
}

// place is a tree in a repository, as one identity sees it.
type place struct{ repository, tree string }

// memo remembers facts, so that of a new commit only the trees are read that have changed.
type memo = lru.Cache[place, facts]
