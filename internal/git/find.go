package git

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/hashicorp/golang-lru/v2"

	"sluice.dev/sluice/internal/tree"
)

// maxSights is how many trees are remembered for what is found in them. Each takes about two hundred bytes.
const maxSights = 1 << 16

// Found is a folder that holds a file of the name that was looked for.
type Found struct {
	// Dir is the folder's path, "." for the root.
	Dir string
	// Tree and File are Git's ids of the folder and of the file.
	Tree, File string
}

// errEnded says that whoever is told of what was found wants to hear no more.
var errEnded = errors.New("ended by visit")

// Find visits all folders that hold a plain file of the name, each before those in it, in Git's order. It reads trees alone,
// and none twice that the client remembers. What visit returns ends it and is returned, but for fs.SkipAll, which is no error.
// ErrUnsafeTree when a folder has a name that leads elsewhere, ErrLimit as for Tree.
func (c *Commit) Find(name string, visit func(Found) error) error {
	l := &finding{planter: c.planter, name: name, visit: visit}
	_, err := l.into(c.root, tree.Root, 0)
	switch {
	case !errors.Is(err, errEnded):
		return err
	case errors.Is(l.ended, fs.SkipAll):
		return nil
	}
	return l.ended
}

// sight is what is known of a tree.
type sight struct {
	file    plumbing.Hash // with the name; zero without one
	below   bool          // there is one in a folder of it
	entries int           // in it and below
	height  int           // how many folders are nested in it
}

// sightKey is a tree in a repository, as one identity sees it, and the name of the file.
type sightKey struct {
	repository, name string
	tree             plumbing.Hash
}

// sights remembers what is found in trees, so that of a new commit only the trees are read that have changed.
type sights = lru.Cache[sightKey, sight]

// finding goes through one commit.
type finding struct {
	*planter

	name  string
	visit func(Found) error
	ended error // what visit returned
}

// into looks into a folder.
func (l *finding) into(hash plumbing.Hash, at string, depth int) (known sight, err error) {
	if known, err = l.look(hash, at, depth); err == nil && depth+known.height > l.limits.depth {
		err = l.tooDeep(at)
	}
	return known, err
}

// look is into for a folder that may be nested too deep with what is in it.
func (l *finding) look(hash plumbing.Hash, at string, depth int) (sight, error) {
	if depth > l.limits.depth {
		return sight{}, l.tooDeep(at)
	}
	key := sightKey{l.repository, l.name, hash}
	known, isKnown := l.sights.Get(key)
	if isKnown && !known.below {
		return known, l.found(known, hash, at)
	}
	known = sight{}
	err := l.blobs.withTree(hash, func(content []byte) error {
		entry, err := findEntry(content, l.name)
		if err == nil && entry.mode.IsRegular() {
			known.file = entry.hash
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := l.found(known, hash, at); err != nil {
			return err
		}
		return l.through(content, &known, at, depth)
	})
	if err == nil && !isKnown && l.repository != "" {
		l.sights.Add(key, known)
	}
	if err != nil {
		err = describe(at, err)
	}
	return known, err
}

// found tells of a folder with the file.
func (l *finding) found(known sight, hash plumbing.Hash, at string) error {
	if known.file.IsZero() {
		return nil
	}
	if l.ended = l.visit(Found{Dir: at, Tree: hash.String(), File: known.file.String()}); l.ended != nil {
		return errEnded
	}
	return nil
}

// through looks into all folders of a folder.
func (l *finding) through(content []byte, known *sight, at string, depth int) error {
	var last []byte
	for len(content) > 0 {
		line, rest, err := cutEntry(content)
		if err != nil {
			return err
		}
		content = rest
		mode, err := parseMode(string(line.mode))
		if err != nil {
			return err
		}
		var inside sight
		if mode.IsDir() {
			if inside, err = l.folder(line, last, at, depth); err != nil {
				return err
			}
			last = line.name
			known.below = known.below || inside.below || !inside.file.IsZero()
			known.height = max(known.height, inside.height+1)
		}
		if known.entries += 1 + inside.entries; known.entries > l.limits.files {
			return l.tooMany()
		}
	}
	return nil
}

// folder looks into one folder of another, the one before which has the last name.
func (l *finding) folder(line treeLine, last []byte, at string, depth int) (sight, error) {
	inside := string(line.name)
	if at != tree.Root {
		inside = at + "/" + inside
	}
	reason := unsafeName(string(line.name))
	if bytes.Equal(line.name, last) {
		reason = "two entries of this name"
	}
	if reason != "" {
		return sight{}, describe(inside, fmt.Errorf("%w: %s", ErrUnsafeTree, reason))
	}
	return l.into(line.hash, inside, depth+1)
}
