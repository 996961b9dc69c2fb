package git

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"

	"sluice.dev/sluice/internal/tree"
)

// commitCost is what one of many commits takes in memory as long as they are open, beside what it says and a parentCost for each
// of its parents, of which a commit may name thousands.
const (
	commitCost = 2 << 10
	parentCost = 64
)

// FetchAll fetches up to 65,536 commits and their trees at once: in one request for those that are not in the cache yet, and
// without any where all are and each Want.Ref says where it was found just now. The limits of Options hold for all together,
// MaxFiles and MaxTreeDepth for each.
//
// The commits are in the order of the wants. In the place of one that the repository does not have, or not any more, there is
// nil: a ref that was deleted meanwhile keeps nobody from the others. Each is closed by itself, and what they share is freed with
// the last of them; see CloseAll. What comes first is what a server is told of when it is asked for others: put the branch first.
func (c *Client) FetchAll(ctx context.Context, remote Remote, wants []Want) ([]*Commit, error) {
	if _, err := parseEndpoint(remote.URL); err != nil {
		return nil, conclude(ctx, "fetch from", remote, err)
	}
	verb := fmt.Sprintf("fetch %d commits from", len(wants))
	if len(wants) > maxWants {
		return nil, conclude(ctx, verb, remote, limitErrorf("more than %d commits at once", maxWants))
	}
	h, err := c.cache.hold(ctx, remote.Key())
	if err != nil {
		return nil, conclude(ctx, "wait for another fetch from", remote, err)
	}
	defer h.release(ctx)
	b := newBatch(c, wants, h)
	commits, err := b.recall(ctx)
	if commits == nil && err == nil {
		defer func() { c.options.Observe(b.meter.total()) }()
		commits, err = b.ask(ctx, remote)
	}
	if err != nil {
		return nil, conclude(ctx, verb, remote, err)
	}
	for _, commit := range commits {
		if commit != nil {
			commit.BytesReceived = b.meter.total()
		}
	}
	return commits, nil
}

// CloseAll closes the commits, those of which are nil are none.
func CloseAll(commits []*Commit) error {
	var all error
	for _, commit := range commits {
		if commit != nil {
			all = errors.Join(all, commit.Close())
		}
	}
	return all
}

// batch is many wants on their way.
type batch struct {
	client *Client
	meter  *meter
	held   *held
	wants  []Want
	hashes []plumbing.Hash // of each want; zero where it names none
	gone   map[plumbing.Hash]bool

	thin     bool // the server was told what is there already
	anew     bool // it is not told again
	whole    bool // all history is fetched
	refusals int  // how often the server lacked a commit
}

func newBatch(c *Client, wants []Want, h *held) *batch {
	b := &batch{client: c, meter: &meter{}, held: h, wants: wants, gone: map[plumbing.Hash]bool{plumbing.ZeroHash: true}}
	for _, want := range wants {
		hash, err := parseHash(strings.ToLower(want.Hash))
		if err != nil {
			hash = plumbing.ZeroHash // No repository has it.
		}
		b.hashes = append(b.hashes, hash)
	}
	return b
}

// missing are those that have to be asked for, and present the others, each once.
func (b *batch) missing(k *kept) (missing []Want, present []plumbing.Hash) {
	there, isFound := k.complete(), map[plumbing.Hash]bool{}
	for i, hash := range b.hashes {
		isFound[hash] = isFound[hash] || b.wants[i].Ref != ""
	}
	seen := map[plumbing.Hash]bool{}
	for i, hash := range b.hashes {
		if seen[hash] || b.gone[hash] {
			continue
		}
		seen[hash] = true
		if there[hash] {
			present = append(present, hash)
		}
		if !there[hash] || !isFound[hash] {
			missing = append(missing, b.wants[i])
		}
	}
	return missing, present
}

// recall opens all commits from the cache; nil when one is not there, or has to be asked for.
func (b *batch) recall(ctx context.Context) ([]*Commit, error) {
	k, err := b.held.load(ctx)
	if err != nil {
		return nil, err
	}
	missing, _ := b.missing(k)
	if len(missing) > 0 {
		k.close(ctx)
		return nil, nil
	}
	p := newPack(ctx, k.spool(), k, b.client.options.packLimits(), b.client.options.TempDir)
	commits, err := b.open(ctx, p, k)
	if errors.Is(err, errDamaged) {
		b.held.doubt()
		return nil, nil
	}
	return commits, err
}

// open opens the commits in a pack, and tells how each was had. The pack is closed with the last of them, or with the error.
func (b *batch) open(ctx context.Context, p *pack, earlier *kept) (commits []*Commit, err error) {
	users := &users{pack: p}
	users.left.Store(1)
	defer func() {
		if err != nil {
			_ = CloseAll(commits) // What matters is why they are of no use.
		}
		err = errors.Join(err, users.leave())
	}()
	commits = make([]*Commit, len(b.wants))
	for i, hash := range b.hashes {
		if b.gone[hash] {
			continue
		}
		commit, err := b.client.bareCommit(ctx, p, hash, b.held, b.wants[i])
		if err != nil {
			return commits, err
		}
		if err := p.draw(ctx, commitCost+int64(len(commit.Subject)+len(commit.Message)+parentCost*len(commit.Parents))); err != nil {
			return commits, err
		}
		commit.seed()
		users.left.Add(1)
		commit.release = sync.OnceValue(users.leave)
		commits[i] = commit
	}
	b.tell(earlier)
	if err = b.keep(ctx, p, earlier); err != nil {
		b.client.options.CacheFailed(fmt.Errorf("keep %d commits: %w", len(commits), err))
	}
	return commits, nil
}

// seed makes the tree of a commit that is looked into when it is asked for.
func (c *Commit) seed() {
	root, _ := c.planter.directory(tree.Root, c.root, "", 0, tree.Select(c.planter.wanted.Paths))
	c.tree = &tree.Tree{Root: root, Time: c.CommitterTime}
}

// tell tells how each commit was had.
func (b *batch) tell(earlier *kept) {
	there, told := earlier.complete(), map[plumbing.Hash]bool{}
	for _, hash := range b.hashes {
		isTold := told[hash]
		told[hash] = true
		switch {
		case isTold || b.gone[hash]:
		case there[hash]:
			b.client.options.Fetched(FromCache)
		case b.thin:
			b.client.options.Fetched(Incremental)
		default:
			b.client.options.Fetched(Whole)
		}
	}
}

// keep puts into the cache what is not there.
func (b *batch) keep(ctx context.Context, p *pack, earlier *kept) error {
	var members []member
	for i, hash := range b.hashes {
		if !b.gone[hash] {
			members = append(members, member{hash, refID(b.wants[i].Ref)})
		}
	}
	err := b.held.keepAll(ctx, p, earlier, members)
	if errors.Is(err, errIncomplete) {
		b.held.forget()
	}
	return err
}

// users are the commits that share a pack.
type users struct {
	*pack
	left atomic.Int32
}

// leave closes the pack when nobody uses it any more.
func (u *users) leave() error {
	if u.left.Add(-1) > 0 {
		return nil
	}
	return u.Close()
}
