package git

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/klauspost/compress/zlib"
)

// Objects are new commits on top of fetched ones, with what is new in their trees. It is safe for concurrent use; one commit
// is made at a time.
type Objects struct {
	options Options
	limits  packLimits

	mu    sync.Mutex
	bases []*basis
	// tips are the commits that are built upon, and where they are.
	tips map[plumbing.Hash]*basis
	// fresh are the new objects, none of them a delta, and places where they are among these.
	fresh    *pack
	places   map[plumbing.Hash]int32
	unpacked int64
	deflater *zlib.Writer
	// held is drawn for what one call has read.
	held int64
}

// basis is a pack with commits that the server has.
type basis struct {
	*pack

	commits []plumbing.Hash
	// reached are the objects that the commits before unwalked lead to: others may lie there since a fetch long ago, and the
	// server may have forgotten them.
	reached  []bool
	unwalked int
}

// Compose begins new commits on top of the bases, which the server to push to is known to have and which stay open until
// Close. What is new takes memory of the context's account, or temporary files, until then. Limits are those of a fetch.
func (c *Client) Compose(ctx context.Context, bases ...*Commit) *Objects {
	o := &Objects{
		options: c.options, limits: c.options.packLimits(),
		fresh: newPack(ctx, &spool{}, nil, c.options.packLimits(), c.options.TempDir), places: map[plumbing.Hash]int32{},
		tips: map[plumbing.Hash]*basis{},
	}
	byPack := map[*pack]*basis{}
	for _, commit := range bases {
		b := byPack[commit.pack]
		if b == nil {
			b = &basis{pack: commit.pack}
			byPack[commit.pack] = b
			o.bases = append(o.bases, b)
		}
		hash := plumbing.NewHash(commit.Hash)
		b.commits = append(b.commits, hash)
		o.tips[hash] = b
	}
	return o
}

// Close frees what the objects take. They cannot be pushed any more.
func (o *Objects) Close() error { return o.fresh.Close() }

// Commit makes a commit and returns its id. Nothing is kept of one that is not made.
// ErrUnsafeTree where a path or a mode is refused, ErrIdentity where author or committer cannot be written, ErrRefNotFound
// where Base is unknown, ErrLimit where it is too large; what Signer returns otherwise.
func (o *Objects) Commit(ctx context.Context, n NewCommit) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.forget(ctx)
	before := o.now()
	content, err := o.compose(ctx, n)
	var hash plumbing.Hash
	if err == nil {
		hash, err = o.store(ctx, plumbing.CommitObject, content)
	}
	if err != nil {
		o.undo(ctx, before)
		return "", fmt.Errorf("make commit: %w", err)
	}
	return hash.String(), nil
}

// compose writes the trees of a commit, and returns the commit itself.
func (o *Objects) compose(ctx context.Context, n NewCommit) ([]byte, error) {
	root := &editedTree{entries: map[string]entry{}}
	if n.Base != "" {
		top, err := o.rootOf(ctx, n.Base)
		if err != nil {
			return nil, err
		}
		if root, err = o.openTree(ctx, top); err != nil {
			return nil, err
		}
	}
	for _, e := range n.Edits {
		if err := o.edit(ctx, root, e); err != nil {
			return nil, err
		}
	}
	top, err := o.writeTree(ctx, root)
	if err != nil {
		return nil, err
	}
	return n.encode(top)
}

// TreeAt is the id of the tree that a commit has at the path: one of the bases, or one made here. The empty path is the root.
// fs.ErrNotExist where there is no folder. Folders in it are left out as by Commit.TreeID.
func (o *Objects) TreeAt(ctx context.Context, commit, path string, without ...string) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.forget(ctx)
	at, err := o.rootOf(ctx, commit)
	if err != nil {
		return "", err
	}
	steps, err := o.split(path)
	if err != nil {
		return "", err
	}
	for _, name := range steps {
		f, err := o.openTree(ctx, at)
		if err != nil {
			return "", err
		}
		found, ok := f.entries[name]
		if !ok || !found.isDir() {
			return "", describe(path, fs.ErrNotExist)
		}
		at = found.hash
	}
	reader := treeReader(func(hash plumbing.Hash, use func([]byte) error) error {
		content, err := o.read(ctx, hash, plumbing.TreeObject)
		if err != nil {
			return err
		}
		return use(content)
	})
	if at, err = reader.without(at, without); err == nil && at.IsZero() {
		err = describe(path, fs.ErrNotExist)
	}
	if err != nil {
		return "", err
	}
	return at.String(), nil
}

// rootOf is the tree of a commit.
func (o *Objects) rootOf(ctx context.Context, commit string) (plumbing.Hash, error) {
	hash, err := parseHash(commit)
	if err != nil {
		return hash, fmt.Errorf("%w: %w", ErrRefNotFound, err)
	}
	if _, ok := o.places[hash]; ok {
		content, err := o.read(ctx, hash, plumbing.CommitObject)
		if err != nil {
			return hash, err
		}
		header, err := parseCommit(string(content))
		return header.tree, err
	}
	if b := o.tips[hash]; b != nil {
		header, err := b.loadCommit(ctx, hash)
		return header.tree, err
	}
	return hash, fmt.Errorf("%w: %s is no commit that is built upon", ErrRefNotFound, commit)
}

// split takes a path apart, and refuses what may not be in a tree.
func (o *Objects) split(path string) ([]string, error) {
	if path == "" || path == "." {
		return nil, nil
	}
	return o.steps(path)
}

// steps is split for what may not be the root.
func (o *Objects) steps(path string) ([]string, error) {
	steps := strings.Split(path, "/")
	if len(steps) > o.options.MaxTreeDepth {
		return nil, describe(path, limitErrorf("nested deeper than %d directories", o.options.MaxTreeDepth))
	}
	for _, name := range steps {
		if reason := unsafeName(name); reason != "" {
			return nil, describe(path, fmt.Errorf("%w: %s", ErrUnsafeTree, reason))
		}
		if len(name) > maxNameBytes {
			return nil, describe(path, limitErrorf("name is longer than %d bytes", maxNameBytes))
		}
	}
	return steps, nil
}
