package git

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

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
}

var (
	// errNotWantable says that the server does not give out the object by its id.
	errNotWantable = errors.New("server does not give out this commit by its id")
	// errNoFilter says that the server offers to leave out trees and files, and then does not.
	errNoFilter = errors.New("server does not give out commits alone")
)

// Fetch fetches one commit and its tree, without history where the server can do that.
// ErrRefNotFound when the repository does not have the commit, or not any more.
func (c *Client) Fetch(ctx context.Context, remote Remote, want Want) (*Commit, error) {
	m := &meter{}
	commit, err := fetchWith(ctx, c, remote, m, request{Want: want}, c.openCommit)
	if err != nil {
		return nil, err
	}
	commit.BytesReceived = m.total()
	return commit, nil
}

// CommitTime tells when a commit was made. It fetches the commit alone where the server can do that.
func (c *Client) CommitTime(ctx context.Context, remote Remote, want Want) (time.Time, error) {
	return fetchWith(ctx, c, remote, &meter{}, request{Want: want, commits: true},
		func(ctx context.Context, p *pack, hash plumbing.Hash) (time.Time, error) {
			header, err := p.loadCommit(ctx, hash)
			return header.committer, errors.Join(err, p.Close())
		})
}

// request is a Want on its way: first by id, then, if need be, with the whole history of a branch.
type request struct {
	Want
	hash    plumbing.Hash
	whole   bool
	commits bool // trees and files are left out where the server can do that
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
		again = errors.Is(err, errNotWantable) && !r.whole || errors.Is(err, errNoFilter) && r.commits
		r.whole, r.commits = r.whole || errors.Is(err, errNotWantable), r.commits && !errors.Is(err, errNoFilter)
	}
	return result, conclude(ctx, "fetch "+r.hash.String()+" from", remote, err)
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
	q := question{wants: wants, commits: r.commits, bytes: c.options.MaxPackBytes}
	if !r.whole {
		q.depth = 1
	}
	history, err := c.receive(ctx, p, q, c.options.packLimits())
	if err != nil {
		return nil, explainRemote(p.advert(), *r, err)
	}
	if _, ok := history.byHash[r.hash]; !ok && r.whole {
		_ = history.Close() // It was only read.
		return nil, fmt.Errorf("%w: it is in the history of no branch or tag that was looked at", ErrRefNotFound)
	}
	return history, nil
}

// chooseWants decides which objects to ask for. A server of version 0 gives out what its refs name, and other
// commits only if it says so; it sets r.whole when only a branch's history can hold the commit.
func chooseWants(a *advert, refs []Ref, r *request) ([]string, error) {
	// An annotated tag is asked for by its own id; it brings its commit along.
	asked := cmp.Or(r.Tag, r.hash.String())
	if a.version == 2 && !r.whole {
		return []string{asked}, nil
	}
	if !r.whole {
		for _, ref := range refs {
			if ref.Hash == asked || ref.Name == r.Ref && ref.Target() == r.hash.String() {
				return []string{ref.Hash}, nil
			}
		}
		for _, ref := range refs {
			if ref.Target() == r.hash.String() {
				return []string{ref.Hash}, nil
			}
		}
		if a.caps.has("allow-tip-sha1-in-want") || a.caps.has("allow-reachable-sha1-in-want") {
			return []string{r.hash.String()}, nil
		}
		r.whole = true
	}
	return historyWants(refs, r.Branch)
}

// historyWants are the branch, or all branches and tags.
func historyWants(refs []Ref, branch string) ([]string, error) {
	var wants []string
	for _, ref := range refs {
		if branch == "" && (strings.HasPrefix(ref.Name, "refs/heads/") || strings.HasPrefix(ref.Name, "refs/tags/")) ||
			branch != "" && ref.Name == "refs/heads/"+strings.TrimPrefix(branch, "refs/heads/") {
			wants = append(wants, ref.Hash)
		}
	}
	if len(wants) == 0 && branch != "" {
		return nil, fmt.Errorf("%w: there is no branch %s to look for it", ErrRefNotFound, transport.PrintableQuoted(branch))
	}
	if len(wants) == 0 {
		return nil, fmt.Errorf("%w: there are no branches and tags to look for it", ErrRefNotFound)
	}
	slices.Sort(wants)
	return slices.Compact(wants), nil
}

// explainRemote turns a server's refusal of the wanted object into what it means.
func explainRemote(a *advert, r request, err error) error {
	var refusal *remoteError
	if !errors.As(err, &refusal) {
		return err
	}
	missing := strings.Contains(refusal.message, "not our ref")
	invalid := strings.Contains(refusal.message, "not valid")
	tipsOnly := a.version != 2 && !a.caps.has("allow-reachable-sha1-in-want") && !a.caps.has("allow-any-sha1-in-want")
	switch {
	case r.commits && strings.Contains(refusal.message, "filter"):
		return errNoFilter
	case !r.whole && (invalid || missing && tipsOnly):
		return errNotWantable
	case missing || invalid:
		return fmt.Errorf("%w: %w", ErrRefNotFound, err)
	}
	return err
}

// receive takes the pack of an answer.
func (c *Client) receive(ctx context.Context, p peer, q question, limits packLimits) (*pack, error) {
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
	s, err := fillSpool(ctx, content, c.options.TempDir, q.bytes)
	if err != nil {
		return nil, err
	}
	return indexPack(ctx, s, limits, c.options.TempDir)
}

func (c *Client) openCommit(ctx context.Context, p *pack, hash plumbing.Hash) (*Commit, error) {
	header, err := p.loadCommit(ctx, hash)
	if err != nil {
		return nil, err
	}
	// The files are read after this fetch, until the commit is closed.
	reading, closed := context.WithCancelCause(context.WithoutCancel(ctx))
	limits := treeLimits{depth: c.options.MaxTreeDepth, files: c.options.MaxFiles}
	root, submodules, err := readTree(ctx, blobs{reading, p}, header.tree, limits)
	if err != nil {
		closed(err)
		return nil, err
	}
	return &Commit{
		Hash: hash.String(), Subject: header.subject, CommitterTime: header.committer,
		Submodules: submodules,
		tree:       &tree.Tree{Root: root, Time: header.committer}, pack: p, closed: closed,
	}, nil
}
