package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/hashicorp/golang-lru/v2"

	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/tree"
)

// maxSightings is how many answers of LastSeen are remembered. Each takes about three hundred bytes.
const maxSightings = 1 << 12

const (
	// maxHistory is how many commits LastSeen goes back at most.
	maxHistory = 1 << 12
	// firstLook is how many it asks for at first, and furtherLook how many times as many after that.
	firstLook   = 16
	furtherLook = 8
)

// Seen is what a history is looked through for.
type Seen struct {
	// Tip is where the history begins. Its Ref is where it was found just now.
	Tip Want
	// Path leads to the folder, as for Commit.TreeID.
	Path string
	// Tree is Git's id of the folder; empty where there is none.
	Tree string
	// Without are files in it. A commit also counts if its folder has the id without the folders that hold them; see Commit.TreeID.
	Without []string
	// Max is how many commits are looked at, the tip among them: 4,096 at most.
	Max int
}

// sighting is an answer that does not change any more: it follows from the ids.
type sighting struct {
	repository string
	commit     plumbing.Hash
	path, tree string
	without    string
	most       int
}

// sightings remember answers: the commit, or nothing.
type sightings = lru.Cache[sighting, string]

// SeenIn tells whether one of the newest commits of a history has a folder as it is told, see LastSeen: whoever made the tip on
// top of such a commit has seen the folder.
func (c *Client) SeenIn(ctx context.Context, remote Remote, what Seen) (bool, error) {
	commit, err := c.LastSeen(ctx, remote, what)
	return commit != "", err
}

// LastSeen is the newest commit of a history that has a folder as it is told; empty where none of those has that are looked at.
// It follows first parents alone, and ends where the history does. It asks the server for nothing where the cache can tell, and
// else for commits and trees without files, where the server can leave these out. ErrRefNotFound when the tip is not there.
func (c *Client) LastSeen(ctx context.Context, remote Remote, what Seen) (string, error) {
	verb := "look for " + transport.PrintableQuoted(what.Path) + " in the history of " + transport.PrintableQuoted(what.Tip.Hash) + " of"
	hash, err := parseHash(strings.ToLower(what.Tip.Hash))
	if err != nil {
		return "", conclude(ctx, verb, remote, fmt.Errorf("%w: %w", ErrRefNotFound, err))
	}
	if _, err := parseEndpoint(remote.URL); err != nil {
		return "", conclude(ctx, verb, remote, err)
	}
	what.Max = min(what.Max, maxHistory)
	h, err := c.cache.hold(ctx, remote.Key())
	if err != nil {
		return "", conclude(ctx, "wait for another fetch from", remote, err)
	}
	defer h.release(ctx)
	key := sighting{h.repository(), hash, what.Path, what.Tree, strings.Join(what.Without, "\x00"), what.Max}
	if known, ok := c.sightings.Get(key); ok && key.repository != "" && what.Tip.Ref != "" {
		return known, nil
	}
	commit := ""
	l := &lookBack{
		client: c, most: what.Max, depth: min(what.Max, firstLook),
		request: request{Want: what.Tip, hash: hash, filter: allFiles, held: h},
		match: func(ctx context.Context, p *pack, step historical) (bool, error) {
			commit = step.hash.String()
			id, err := p.treeAt(ctx, step.tree, what.Path)
			if err == nil && id != strings.ToLower(what.Tree) && id != "" && len(what.Without) > 0 {
				id, err = p.treeWithout(ctx, plumbing.NewHash(id), what.Without)
			}
			return id == strings.ToLower(what.Tree), err
		},
	}
	err = l.recall(ctx)
	if err == nil && l.end == unknown {
		err = l.ask(ctx, remote)
	}
	if l.end != found || err != nil {
		commit = ""
	}
	if err == nil && l.end != unknown && key.repository != "" {
		c.sightings.Add(key, commit)
	}
	return commit, conclude(ctx, verb, remote, err)
}

// ending is what a look through a history comes to.
type ending int

const (
	// unknown is that more of the history is needed.
	unknown ending = iota
	found
	notFound
)

// lookBack looks through one history.
type lookBack struct {
	request

	client *Client
	most   int // how many commits are looked at
	depth  int // how many commits are asked for
	// match tells whether the look ends with a commit. After another fetch it begins at the tip again.
	match func(ctx context.Context, p *pack, step historical) (bool, error)
	end   ending
}

// historical is a commit in a history, and how many there are in front of it.
type historical struct {
	commitHeader

	hash plumbing.Hash
	at   int
}

// recall looks as far as the cache goes.
func (l *lookBack) recall(ctx context.Context) error {
	if l.Ref == "" {
		return nil
	}
	k, err := l.held.load(ctx)
	if k == nil {
		return err
	}
	p := newPack(ctx, k.spool(), k, l.client.options.packLimits(), l.client.options.TempDir)
	_, err = l.through(ctx, p)
	err = errors.Join(err, p.Close())
	switch {
	case errors.Is(err, errIncomplete):
		return nil
	case errors.Is(err, errDamaged):
		l.held.doubt()
		return nil
	}
	return err
}

// ask fetches the history, in the ways that the server makes necessary.
func (l *lookBack) ask(ctx context.Context, remote Remote) (err error) {
	m := &meter{}
	defer func() { l.client.options.Observe(m.total()) }()
	for again := true; again; {
		var steps int
		err = l.client.converse(ctx, remote, m, func(p peer) error {
			history, err := l.fetch(ctx, p)
			if err != nil {
				return err
			}
			steps, err = l.through(ctx, history)
			return errors.Join(err, history.Close())
		})
		again = l.again(steps, err)
	}
	if errors.Is(err, errIncomplete) {
		err = protocolErrorf("server leaves out what the history leads to: %w", err)
	}
	return err
}

// again tells whether to fetch in another way, or more, after so many commits.
func (l *lookBack) again(steps int, err error) bool {
	leftOut := err == nil && l.end == unknown && steps < l.depth
	switch {
	case l.thin && (isLeftOut(err) || leftOut):
		l.anew = true // What is in the cache may be good for all that.
	case errors.Is(err, errNotWantable) && !l.whole:
		l.whole = true
	case errors.Is(err, errNoFilter) && l.filter != "":
		l.filter = ""
	case err == nil && l.end == unknown && !leftOut && !l.whole:
		l.depth = min(l.depth*furtherLook, l.most)
	default:
		return false
	}
	return true
}

// fetch brings commits and trees.
func (l *lookBack) fetch(ctx context.Context, p peer) (*pack, error) {
	refs := p.advert().refs
	if p.advert().version == 2 && l.whole {
		var err error
		if refs, err = l.client.lsRefs(ctx, p, []string{"refs/heads/", "refs/tags/"}); err != nil {
			return nil, err
		}
	}
	wants, err := chooseWants(p.advert(), refs, &l.request)
	if err != nil {
		return nil, err
	}
	q := question{wants: wants, filter: l.filter, bytes: l.client.options.MaxPackBytes}
	var earlier *kept
	if !l.whole {
		q.depth = l.depth
		if l.held.trusted() && !l.anew {
			if earlier, err = l.held.load(ctx); err != nil {
				return nil, err
			}
			q.haves = earlier.near([]Want{l.Want}, nil)
		}
	}
	l.thin = len(q.haves) > 0
	q.thin = l.thin
	history, err := l.client.receive(ctx, p, q, l.client.options.packLimits(), nil, earlier)
	return history, explainRemote(p.advert(), l.request, err)
}

// through follows first parents to the end of the history, or to the most commits that are looked at, and counts those that it
// came past before one was not there.
func (l *lookBack) through(ctx context.Context, p *pack) (steps int, err error) {
	next := l.hash
	for ; steps < l.most; steps++ {
		_, isThere := p.lookUp(next)
		if !isThere && steps > 0 {
			return steps, nil
		}
		if !isThere && l.whole {
			return 0, fmt.Errorf("%w: it is in the history of no branch or tag that was looked at", ErrRefNotFound)
		}
		if !isThere {
			return 0, errIncomplete
		}
		header, err := p.loadCommit(ctx, next)
		if err != nil {
			return steps, err
		}
		isMatch, err := l.match(ctx, p, historical{header, next, steps})
		if err != nil {
			return steps, err
		}
		if isMatch {
			l.end = found
			return steps, nil
		}
		if len(header.parents) == 0 {
			break
		}
		next = header.parents[0]
	}
	l.end = notFound
	return steps, nil
}

// treeAt is the id of a folder in a tree; empty where there is none. What is missing may be so because it was not asked for.
func (p *pack) treeAt(ctx context.Context, root plumbing.Hash, path string) (string, error) {
	if path == "" || path == tree.Root {
		return root.String(), nil
	}
	reading := blobs{ctx, p}
	for name := range strings.SplitSeq(path, "/") {
		if _, isThere := p.lookUp(root); !isThere {
			return "", errIncomplete
		}
		entry, err := reading.entry(root, name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !entry.mode.IsDir() {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		root = entry.hash
	}
	return root.String(), nil
}

// treeWithout is the id of a folder without those in it that hold the files; empty if nothing is left.
func (p *pack) treeWithout(ctx context.Context, root plumbing.Hash, files []string) (string, error) {
	reader := treeReader(func(hash plumbing.Hash, use func([]byte) error) error {
		if _, isThere := p.lookUp(hash); !isThere {
			return errIncomplete
		}
		return blobs{ctx, p}.withTree(hash, use)
	})
	left, err := reader.without(root, files)
	if err != nil || left.IsZero() {
		return "", err
	}
	return left.String(), nil
}
