package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"

	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/tree"
)

const (
	// maxMetaBytes bounds commits and trees, which are read as a whole.
	maxMetaBytes = 16 << 20
	// metaCost is what each byte of a commit or a tree comes to at most: itself, and what is made of it.
	metaCost = 5
	// maxNameBytes bounds one name; no file system of Linux takes more.
	maxNameBytes = 255
	// maxLinkBytes bounds the target of a symbolic link; it is Linux's PATH_MAX.
	maxLinkBytes = 4096
)

// emptyTree is the id of a tree without entries.
const emptyTree = "\x4b\x82\x5d\xc6\x42\xcb\x6e\xb9\xa0\x60\xe5\x4b\xf8\xd6\x92\x88\xfb\xee\x49\x04"

// treeLimits bound one tree; see Options.
type treeLimits struct{ depth, files int }

// planter makes the nodes of a commit's tree, and refuses what is unsafe.
type planter struct {
	blobs  blobs
	limits treeLimits
	memo   *memo
	sights *sights
	// repository is whose trees the memo remembers; empty to remember none.
	repository string
	// wanted is what is read of the root.
	wanted Want

	mu    sync.Mutex
	ctx   context.Context // that trees are read in
	files atomic.Int64
}

// plant returns the root of a tree, all of which has been checked, now or before. Directories are listed when they are
// needed.
func (p *planter) plant(ctx context.Context, root plumbing.Hash) (*tree.Node, error) {
	p.ctx = ctx
	top, open := p.directory(tree.Root, root, "", 0, tree.Select(p.wanted.Paths))
	found, err := p.factsOf(top, "", 0, open)
	top.Known = &found.Facts
	p.ctx = p.blobs.reading
	return top, err
}

// listing is what is in a directory.
type listing struct {
	children []*tree.Node
	facts    facts
}

// directory makes a node that is listed once, when it is asked for. One of which not all is wanted has no ID.
func (p *planter) directory(name string, hash plumbing.Hash, at string, depth int, wanted *tree.Selection) (*tree.Node, func() (listing, error)) {
	open := sync.OnceValues(func() (listing, error) { return p.list(hash, at, depth, wanted) })
	list := func() ([]*tree.Node, error) {
		l, err := open()
		return l.children, err
	}
	dir := &tree.Node{Name: name, Mode: fs.ModeDir | 0o755, Lister: list}
	if wanted.Whole() && (at != "" || p.wanted.Keep == nil) {
		dir.ID = string(hash[:])
	}
	return dir, open
}

// factsOf remembers a tree, or looks into it and into all below.
func (p *planter) factsOf(dir *tree.Node, at string, depth int, open func() (listing, error)) (found facts, err error) {
	of := place{p.repository, dir.ID}
	found, known := p.memo.Get(of)
	if !known {
		l, err := open()
		if err != nil {
			return facts{}, err
		}
		if found = l.facts; of.repository != "" && of.tree != "" {
			p.memo.Add(of, found)
		}
	}
	if depth+found.height > p.limits.depth {
		return facts{}, p.tooDeep(at)
	}
	return found, nil
}

func (p *planter) tooDeep(at string) error {
	return limitErrorf("%s is nested deeper than %d directories", transport.PrintableQuoted(at), p.limits.depth)
}

// list reads the entries of a directory. git sorts directories as if their names ended in a slash; here entries are in the
// plain order that fs.ReadDir promises. Directories in which there is nothing but directories are left out, as a checkout
// does not make them.
func (p *planter) list(hash plumbing.Hash, at string, depth int, wanted *tree.Selection) (l listing, err error) {
	if depth > p.limits.depth {
		return l, p.tooDeep(at)
	}
	entries, err := p.read(hash, at, depth, wanted)
	if err != nil {
		return l, describe(at, err)
	}
	l.facts.entries = len(entries)
	for i, child := range entries {
		inside := below(at, child.Name)
		if i > 0 && entries[i-1].Name == child.Name {
			return listing{}, describe(inside, fmt.Errorf("%w: two entries of this name", ErrUnsafeTree))
		}
		found := facts{modules: child.isModule}
		if child.open != nil {
			if found, err = p.factsOf(child.Node, inside, depth+1, child.open); err != nil {
				return listing{}, err
			}
			child.Known = &found.Facts
			l.facts.height = max(l.facts.height, found.height+1)
		}
		l.facts.entries += found.entries
		l.facts.modules = l.facts.modules || found.modules
		if !found.hollow {
			l.children = append(l.children, child.Node)
		}
	}
	if l.facts.entries > p.limits.files {
		return listing{}, describe(at, p.tooMany())
	}
	l.facts.hollow = len(l.children) == 0
	l.facts.Facts, err = tree.Sum(l.children)
	return l, err
}

// admitted is an entry of a directory, and what lists it if it is one itself.
type admitted struct {
	*tree.Node

	open     func() (listing, error)
	isModule bool
}

// read returns the entries of a directory, each checked by itself.
func (p *planter) read(hash plumbing.Hash, at string, depth int, wanted *tree.Selection) (entries []admitted, err error) {
	content, err := p.load(hash)
	if err != nil {
		return nil, err
	}
	err = parseTree(content, func(entry treeEntry) error {
		inside := wanted.In(entry.name)
		if inside == nil || at == "" && p.wanted.leavesOut(entry) {
			return nil
		}
		child, err := p.admit(entry, at, depth, inside)
		if err != nil {
			return describe(below(at, entry.name), err)
		}
		entries = append(entries, child)
		return nil
	})
	slices.SortFunc(entries, func(a, b admitted) int { return tree.Compare(a.Node, b.Node) })
	return entries, err
}

func (p *planter) tooMany() error {
	return limitErrorf("tree has more than %d entries", p.limits.files)
}

// load returns a tree. Memory is drawn by one at a time.
func (p *planter) load(hash plumbing.Hash) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.blobs.pack.loadMeta(p.ctx, hash, plumbing.TreeObject)
}

// admit checks one entry of a directory by itself.
func (p *planter) admit(entry treeEntry, at string, depth int, wanted *tree.Selection) (n admitted, err error) {
	if reason := unsafeName(entry.name); reason != "" {
		return n, fmt.Errorf("%w: %s", ErrUnsafeTree, reason)
	}
	if len(entry.name) > maxNameBytes {
		return n, limitErrorf("name is longer than %d bytes", maxNameBytes)
	}
	if p.files.Add(1) > int64(p.limits.files) {
		return n, p.tooMany()
	}
	switch {
	case entry.mode.IsDir():
		n.Node, n.open = p.directory(entry.name, entry.hash, below(at, entry.name), depth+1, wanted)
		return n, nil
	case entry.mode&fs.ModeIrregular != 0:
		// Of a submodule a checkout has an empty folder.
		n.Node = &tree.Node{Name: entry.name, Mode: fs.ModeDir | 0o755, ID: emptyTree, Source: gitlink{p.blobs, entry.hash}}
		n.isModule = true
		return n, nil
	}
	index, err := p.blobs.pack.find(entry.hash, plumbing.BlobObject)
	if err != nil {
		return n, err
	}
	n.Node = &tree.Node{
		Name: entry.name, Mode: entry.mode, ID: string(entry.hash[:]),
		Source: p.blobs, At: int64(index), Size: p.blobs.pack.objects[index].size,
	}
	if entry.mode&fs.ModeSymlink != 0 && n.Size > maxLinkBytes {
		return n, fmt.Errorf("%w: link target has %d bytes", ErrUnsafeTree, n.Size)
	}
	return n, nil
}

// gitlink marks the folder of a submodule.
type gitlink struct {
	blobs
	hash plumbing.Hash
}

// modules adds the submodules in a directory and below, and stops at one more than MaxSubmodules.
func (p *planter) modules(found []Submodule, n *tree.Node, at string) ([]Submodule, error) {
	if known, ok := p.memo.Get(place{p.repository, n.ID}); ok && !known.modules {
		return found, nil
	}
	children, err := n.List()
	for _, child := range children {
		if link, ok := child.Source.(gitlink); ok {
			found = append(found, Submodule{Path: below(at, child.Name), Hash: link.hash.String()})
		} else if child.Mode.IsDir() && err == nil {
			found, err = p.modules(found, child, below(at, child.Name))
		}
		if err != nil || len(found) > MaxSubmodules {
			break
		}
	}
	return found, err
}

// blobs are the contents of a commit's files.
type blobs struct {
	reading context.Context // ends when the commit is closed; opening a file of an fs.FS gives none
	pack    *pack
}

// Open implements tree.Source.
func (b blobs) Open(n *tree.Node) (io.ReadCloser, error) {
	return b.open(int32(n.At)) //nolint:gosec // The number of objects is limited.
}

// open streams an object until the commit is closed, though others may go on reading the pack.
func (b blobs) open(index int32) (io.ReadCloser, error) {
	if b.reading.Err() != nil {
		return nil, context.Cause(b.reading)
	}
	stream, err := b.pack.open(b.reading, index)
	if err != nil {
		return nil, err
	}
	return &untilClosed{stream, b.reading}, nil
}

// untilClosed fails once the commit is closed.
type untilClosed struct {
	io.ReadCloser
	reading context.Context //nolint:containedctx // It is that of the commit.
}

// Read returns fs.ErrClosed after the commit's Close.
func (u *untilClosed) Read(p []byte) (int, error) {
	if u.reading.Err() != nil {
		return 0, context.Cause(u.reading)
	}
	return u.ReadCloser.Read(p)
}

// below joins without cleaning: an unsafe name must show as it is.
func below(at, name string) string {
	if at == "" {
		return name
	}
	return at + "/" + name
}

// placed is an error that already names its path.
type placed struct{ error }

func (e placed) Unwrap() error { return e.error }

// describe names the path, once.
func describe(at string, err error) error {
	if _, done := errors.AsType[placed](err); done {
		return err
	}
	if at == "" {
		at = "."
	}
	return placed{fmt.Errorf("path %s: %w", transport.PrintableQuoted(at), err)}
}

// loadMeta returns a commit or a tree.
func (p *pack) loadMeta(ctx context.Context, hash plumbing.Hash, kind plumbing.ObjectType) ([]byte, error) {
	index, err := p.find(hash, kind)
	if err != nil {
		return nil, err
	}
	if p.objects[index].size > maxMetaBytes {
		return nil, limitErrorf("%s %s is larger than %d bytes", kind, hash, maxMetaBytes)
	}
	if err := p.draw(ctx, metaCost*p.objects[index].size); err != nil {
		return nil, err
	}
	return p.load(ctx, index)
}
