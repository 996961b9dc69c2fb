package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/tree"
)

// maxAnswerExtra is what an answer may hold beside the pack: progress, the framing, shallow commits.
const maxAnswerExtra = 32 << 20

// Want names the commit to fetch.
type Want struct {
	// Hash is the commit, 40 hexadecimal digits.
	Hash string
	// Ref is the full name of the ref that the commit was found under, or empty for a commit by itself.
	Ref string
	// Branch is where to look for the commit on servers that give out no commit by its id: a short name, or
	// empty for all branches and tags. The history of the branch is fetched then.
	Branch string
	// Tag is the id of an annotated tag that leads to the commit and is wanted as well, or empty.
	Tag string
	// Paths lead to all that is needed of the tree; see tree.Select. One that leads nowhere is no error.
	Paths []string
	// Keep tells whether an entry of the root is needed; nil where all are.
	Keep func(name string, isDir bool) bool
}

var (
	// errNotWantable says that the server does not give out the object by its id.
	errNotWantable = errors.New("server does not give out this commit by its id")
	// errNoRoom says that the cache's disk takes no pack. It costs another fetch, and nothing is kept.
	errNoRoom = errors.New("no room in the cache")
	// errHeavy says that a limit is exceeded that may not be without the cache: deltas on what is there are applied in memory.
	errHeavy = errors.New("too much with what is there")
	// errNoFilter says that the server offers to leave out trees and files, and then does not.
	errNoFilter = errors.New("server does not give out commits alone")
)

// Fetch fetches one commit and its tree, without history where the server can do that.
// ErrRefNotFound when the repository does not have the commit, or not any more.
//
// With a cache it fetches what is not there yet, and nothing where all is. Whether the remote still shows the commit to the
// credential is asked all the same, unless Want.Ref says where it was found just now.
func (c *Client) Fetch(ctx context.Context, remote Remote, want Want) (*Commit, error) {
	m := &meter{}
	if _, err := parseEndpoint(remote.URL); err != nil {
		return nil, conclude(ctx, "fetch from", remote, err)
	}
	h, err := c.cache.hold(ctx, remote.Key())
	if err != nil {
		return nil, conclude(ctx, "wait for another fetch from", remote, err)
	}
	defer h.release(ctx)
	var commit *Commit
	if want.Ref != "" {
		commit, _, err = c.recall(ctx, remote, want, h, FromCache)
	}
	if commit == nil && err == nil {
		commit, err = c.fetchNarrow(ctx, remote, m, want, h)
	}
	if commit == nil && err == nil {
		commit, err = fetchWith(ctx, c, remote, m, request{Want: want, held: h},
			func(ctx context.Context, p *pack, hash plumbing.Hash) (*Commit, error) {
				return c.openCommit(ctx, p, hash, h, want)
			})
	}
	if err != nil {
		return nil, err
	}
	commit.BytesReceived = m.total()
	return commit, nil
}

// recall opens a commit that is in the cache; nil when it is not. It returns the files that are missing, where its trees are.
func (c *Client) recall(ctx context.Context, remote Remote, want Want, h *held, how How) (commit *Commit, missing []string, err error) {
	hash, err := parseHash(strings.ToLower(want.Hash))
	if err != nil {
		return nil, nil, nil //nolint:nilerr // The fetch tells what is wrong with it.
	}
	k, err := h.load(ctx)
	if !k.has(hash, want.isNarrow()) {
		k.close(ctx)
		return nil, nil, err
	}
	p := newPack(ctx, k.spool(), k, c.options.packLimits(), c.options.TempDir)
	if !k.has(hash, false) {
		missing, err = p.missing(ctx, hash, want)
	}
	if err == nil && len(missing) == 0 {
		commit, err = c.openCommit(ctx, p, hash, h, want)
	}
	if commit != nil {
		if isTold := how == Selected && k.has(hash, false); !isTold {
			c.options.Fetched(how)
		}
		return commit, nil, nil
	}
	err = errors.Join(err, p.Close())
	if errors.Is(err, errDamaged) {
		h.doubt()
		return nil, nil, nil
	}
	return nil, missing, conclude(ctx, "read "+want.Hash+" of", remote, err)
}

// CommitTime tells when a commit was made. It fetches the commit alone where the server can do that.
func (c *Client) CommitTime(ctx context.Context, remote Remote, want Want) (time.Time, error) {
	return fetchWith(ctx, c, remote, &meter{}, request{Want: want, filter: allButCommits},
		func(ctx context.Context, p *pack, hash plumbing.Hash) (time.Time, error) {
			header, err := p.loadCommit(ctx, hash)
			return header.committer, errors.Join(err, p.Close())
		})
}

// request is a Want on its way: first by id, then, if need be, with the whole history of a branch.
type request struct {
	Want
	hash   plumbing.Hash
	whole  bool
	filter string // is left out where the server can do that
	held   *held
	thin   bool // the server was told what is there already
	anew   bool // it is not told again
}

// fetchWith fetches a commit, in the ways that the server makes necessary, and opens it in its pack.
func fetchWith[T any](
	ctx context.Context, c *Client, remote Remote, m *meter, r request, open func(context.Context, *pack, plumbing.Hash) (T, error),
) (result T, err error) {
	if r.hash, err = parseHash(strings.ToLower(r.Hash)); err != nil {
		err = fmt.Errorf("%w: %s is no commit id of 40 digits", ErrRefNotFound, transport.PrintableQuoted(r.Hash))
		return result, conclude(ctx, "fetch from", remote, err)
	}
	defer func() { c.options.Observe(m.total()) }()
	for again := true; again; {
		err = c.converse(ctx, remote, m, func(p peer) error {
			history, err := c.fetch(ctx, p, &r)
			if err != nil {
				return err
			}
			if result, err = open(ctx, history, r.hash); err != nil {
				_ = history.Close() // What matters is why the pack is of no use.
			}
			return err
		})
		again = r.again(err)
	}
	return result, conclude(ctx, "fetch "+r.hash.String()+" from", remote, err)
}

// again tells whether the fetch is to be tried in another way after the error.
func (r *request) again(err error) bool {
	switch {
	case r.thin && err == nil:
		r.held.folder.doubts = 0
	case r.thin && !r.anew && errors.Is(err, errHeavy):
		r.anew = true // What is in the cache is good for all that.
		return true
	case r.thin && !r.anew && isLeftOut(err):
		r.held.doubt()
		r.anew = true
		return true
	case errors.Is(err, errNoRoom):
		return true
	case errors.Is(err, errNotWantable) && !r.whole:
		r.whole = true
		return true
	case errors.Is(err, errNoFilter) && r.filter != "":
		r.filter = ""
		return true
	}
	return false
}

// fetch brings the pack that has the commit.
func (c *Client) fetch(ctx context.Context, p peer, r *request) (*pack, error) {
	refs := p.advert().refs
	if p.advert().version == 2 && r.whole {
		var err error
		if refs, err = c.lsRefs(ctx, p, []string{"refs/heads/", "refs/tags/"}); err != nil {
			return nil, err
		}
	}
	wants, err := chooseWants(p.advert(), refs, r)
	if err != nil {
		return nil, err
	}
	q := question{wants: wants, filter: r.filter, bytes: c.options.MaxPackBytes}
	if !r.whole {
		q.depth = 1
	}
	var earlier *kept
	if r.held.trusted() && !r.anew && !r.whole {
		if earlier, err = r.held.load(ctx); err != nil {
			return nil, err
		}
	}
	if r.filter == allFiles && (p.advert().version != 2 || !p.advert().caps.fetch("filter")) {
		r.filter, q.filter = "", ""
	}
	q.haves = earlier.haves(r.filter == allFiles)
	q.thin = len(q.haves) > 0
	r.thin = q.thin
	history, err := c.receive(ctx, p, q, c.options.packLimits(), r.held, earlier)
	if r.thin && (errors.Is(err, ErrLimit) || errors.Is(err, memory.ErrBudget)) {
		return nil, fmt.Errorf("%w: %w", errHeavy, err)
	}
	if err != nil {
		return nil, explainRemote(p.advert(), *r, err)
	}
	if _, ok := history.lookUp(r.hash); !ok && r.whole {
		_ = history.Close() // It was only read.
		return nil, fmt.Errorf("%w: it is in the history of no branch or tag that was looked at", ErrRefNotFound)
	}
	if err = c.keep(ctx, r, history, earlier); err != nil {
		_ = history.Close() // What matters is why the pack is of no use.
	}
	return history, err
}

// keep sees to it that a commit is there with all its files, and puts it into the cache. What cannot be kept is fetched again.
func (c *Client) keep(ctx context.Context, r *request, p *pack, earlier *kept) error {
	if r.filter == allButCommits {
		return nil
	}
	t := tip{r.hash, r.filter == allFiles}
	if err := p.connect(ctx, earlier, t); err != nil {
		return err
	}
	if err := r.held.keep(ctx, p, earlier, t); err != nil {
		if errors.Is(err, errIncomplete) {
			r.held.forget()
		}
		c.options.CacheFailed(fmt.Errorf("keep commit %s: %w", r.hash, err))
	}
	switch {
	case t.bare:
	case !r.thin:
		c.options.Fetched(Whole)
	case len(p.objects) > p.kept:
		c.options.Fetched(Incremental)
	default:
		c.options.Fetched(FromCache)
	}
	return nil
}

// isLeftOut tells whether an error may come from what the server was told to be there.
func isLeftOut(err error) bool {
	var refusal *remoteError
	return errors.Is(err, errIncomplete) || errors.Is(err, errDamaged) ||
		errors.As(err, &refusal) && !errors.Is(err, ErrRefNotFound)
}

// receive takes the pack of an answer, behind what is there already, of which it takes hold in any case.
func (c *Client) receive(ctx context.Context, p peer, q question, limits packLimits, h *held, earlier *kept) (_ *pack, err error) {
	received := newPack(ctx, earlier.spool(), earlier, limits, c.options.TempDir)
	defer func() {
		if err != nil {
			_ = received.Close() // What matters is why the pack is of no use.
		}
	}()
	stream, err := c.request(ctx, p, q)
	if err != nil {
		return nil, err
	}
	content := bufio.NewReaderSize(stream, packHeader)
	head, err := content.Peek(packHeader)
	if err == nil {
		_, err = countObjects(head, limits)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	dir := c.options.TempDir
	if earlier == nil && q.filter != allButCommits {
		dir, received.spool.named = h.room(dir)
	}
	if err := received.spool.fill(ctx, content, dir, q.bytes); err != nil {
		if _, isDisk := errors.AsType[*fs.PathError](err); isDisk && received.spool.named {
			h.full = true
			err = fmt.Errorf("%w: %w", errNoRoom, err)
		}
		return nil, err
	}
	return received, received.index(ctx, limits)
}

// openCommit gives what is wanted of the commit's tree: what else there is depends on what others fetched.
func (c *Client) openCommit(ctx context.Context, p *pack, hash plumbing.Hash, h *held, wanted Want) (*Commit, error) {
	commit, err := c.bareCommit(ctx, p, hash, h, wanted)
	if err != nil {
		return nil, err
	}
	root, err := commit.planter.plant(ctx, commit.root)
	if err != nil {
		commit.closed(err)
		return nil, err
	}
	commit.tree = &tree.Tree{Root: root, Time: commit.CommitterTime}
	return commit, nil
}

// bareCommit is a commit into whose tree nobody has looked.
func (c *Client) bareCommit(ctx context.Context, p *pack, hash plumbing.Hash, h *held, wanted Want) (*Commit, error) {
	header, err := p.loadCommit(ctx, hash)
	if err != nil {
		return nil, err
	}
	// The files are read after this fetch, until the commit is closed.
	reading, closed := context.WithCancelCause(context.WithoutCancel(ctx))
	commit := &Commit{
		Hash: hash.String(), Subject: strings.Clone(header.subject), Message: strings.Clone(header.message), CommitterTime: header.committer,
		root: header.tree, pack: p, parts: h.parts(), closed: closed, release: p.Close,
		planter: &planter{
			blobs: blobs{reading, p}, limits: treeLimits{depth: c.options.MaxTreeDepth, files: c.options.MaxFiles},
			memo: c.memo, sights: c.sights, repository: h.repository(), wanted: wanted, ctx: reading,
		},
	}
	for _, parent := range header.parents {
		commit.Parents = append(commit.Parents, parent.String())
	}
	return commit, nil
}
