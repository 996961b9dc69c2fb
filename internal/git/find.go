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
	return (&Finder{name: name}).Find(c, visit)
}

// Finder finds folders in many commits of a repository, each once: of the next commit it looks into those folders alone that
// were not in one before, at the same path. It is for one goroutine.
type Finder struct {
	name string
	root *spot // nil to find everything anew
}

// NewFinder returns a Finder of folders that hold a plain file of the name.
func NewFinder(name string) *Finder { return &Finder{name: name, root: &spot{}} }

// spot is a folder, and what was seen there.
type spot struct {
	seen map[plumbing.Hash]sight
	in   map[string]*spot
}

// at is a folder in the spot.
func (s *spot) at(name []byte) *spot {
	if s == nil {
		return nil
	}
	next := s.in[string(name)]
	if next == nil {
		if s.in == nil {
			s.in = map[string]*spot{}
		}
		next = &spot{}
		s.in[string(name)] = next
	}
	return next
}

// look tells what was seen of a tree in the spot.
func (s *spot) look(tree plumbing.Hash) (known sight, ok bool) {
	if s != nil {
		known, ok = s.seen[tree]
	}
	return known, ok
}

// note remembers what was seen of a tree in the spot.
func (s *spot) note(tree plumbing.Hash, seen sight) {
	switch {
	case s == nil:
	case s.seen == nil:
		s.seen = map[plumbing.Hash]sight{tree: seen}
	default:
		s.seen[tree] = seen
	}
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

// Find is Commit.Find for what was not found before. After an error it may be that not all of it is found again.
func (f *Finder) Find(c *Commit, visit func(Found) error) error {
	l := &finding{finder: f, planter: c.planter, visit: visit}
	_, err := l.into(c.root, f.root, tree.Root, 0)
	switch {
	case !errors.Is(err, errEnded):
		return err
	case errors.Is(l.ended, fs.SkipAll):
		return nil
	}
	return l.ended
}

// finding goes through one commit.
type finding struct {
	*planter

	finder *Finder
	visit  func(Found) error
	ended  error // what visit returned
}

// into looks into a folder.
func (l *finding) into(hash plumbing.Hash, s *spot, at string, depth int) (known sight, err error) {
	known, isSeen := s.look(hash)
	if !isSeen {
		if known, err = l.fresh(hash, s, at, depth); err != nil {
			return known, err
		}
		s.note(hash, known)
	}
	if depth+known.height > l.limits.depth {
		return known, l.tooDeep(at)
	}
	return known, nil
}

// fresh looks into a folder that was not there before.
func (l *finding) fresh(hash plumbing.Hash, s *spot, at string, depth int) (sight, error) {
	if depth > l.limits.depth {
		return sight{}, l.tooDeep(at)
	}
	key := sightKey{l.repository, l.finder.name, hash}
	known, isKnown := l.sights.Get(key)
	if isKnown && !known.below {
		return known, l.found(known, hash, at)
	}
	known = sight{}
	err := l.blobs.withTree(hash, func(content []byte) error {
		entry, err := findEntry(content, l.finder.name)
		if err == nil && entry.mode.IsRegular() {
			known.file = entry.hash
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := l.found(known, hash, at); err != nil {
			return err
		}
		return l.through(content, &known, s, at, depth)
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
func (l *finding) through(content []byte, known *sight, s *spot, at string, depth int) error {
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
			if inside, err = l.folder(line, last, s.at(line.name), at, depth); err != nil {
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
func (l *finding) folder(line treeLine, last []byte, s *spot, at string, depth int) (sight, error) {
	isTwice := bytes.Equal(line.name, last)
	if known, isSeen := s.look(line.hash); isSeen && !isTwice && depth+1+known.height <= l.limits.depth {
		return known, nil
	}
	inside := string(line.name)
	if at != tree.Root {
		inside = at + "/" + inside
	}
	reason := unsafeName(string(line.name))
	if isTwice {
		reason = "two entries of this name"
	}
	if reason != "" {
		return sight{}, describe(inside, fmt.Errorf("%w: %s", ErrUnsafeTree, reason))
	}
	return l.into(line.hash, s, inside, depth+1)
}
