package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

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
}

// errNotWantable says that the server does not give out the object by its id.
var errNotWantable = errors.New("server does not give out this commit by its id")

// Fetch fetches one commit and its tree, without history where the server can do that.
// ErrRefNotFound when the repository does not have the commit, or not any more.
func (c *Client) Fetch(ctx context.Context, remote Remote, want Want) (*Commit, error) {
	hash, err := parseHash(strings.ToLower(want.Hash))
	if err != nil {
		err = fmt.Errorf("%w: %s is no commit id of 40 digits", ErrRefNotFound, transport.PrintableQuoted(want.Hash))
		return nil, conclude(ctx, "fetch from", remote, err)
	}
	var commit *Commit
	m := &meter{}
	defer func() { c.options.Observe(m.total()) }()
	for _, whole := range []bool{false, true} {
		err = c.converse(ctx, remote, m, func(p peer) (err error) {
			commit, err = c.fetch(ctx, p, request{Want: want, hash: hash, whole: whole})
			return err
		})
		if !errors.Is(err, errNotWantable) {
			break
		}
	}
	if err != nil {
		return nil, conclude(ctx, "fetch "+hash.String()+" from", remote, err)
	}
	commit.BytesReceived = m.total()
	return commit, nil
}

// request is a Want on its way: first by id, then, if need be, with the whole history of a branch.
type request struct {
	Want
	hash  plumbing.Hash
	whole bool
}

func (c *Client) fetch(ctx context.Context, p peer, r request) (*Commit, error) {
	version2 := p.advert().version == 2
	refs := p.advert().refs
	if version2 && !p.advert().caps.has("fetch") {
		return nil, protocolErrorf("server does not offer fetch")
	}
	if version2 && r.whole {
		var err error
		if refs, err = c.lsRefs(ctx, p, []string{"refs/heads/", "refs/tags/"}); err != nil {
			return nil, err
		}
	}
	wants, err := chooseWants(p.advert(), refs, &r)
	if err != nil {
		return nil, err
	}
	var stream io.Reader
	if version2 {
		stream, err = c.requestV2(ctx, p, wants, r)
	} else {
		stream, err = c.requestV0(ctx, p, wants, r)
	}
	if err != nil {
		return nil, explainRemote(p.advert(), r, err)
	}
	return c.ingest(ctx, stream, r)
}

// chooseWants decides which objects to ask for. A server of version 0 gives out what its refs name, and other
// commits only if it says so; it sets r.whole when only a branch's history can hold the commit.
func chooseWants(a *advert, refs []Ref, r *request) ([]string, error) {
	if a.version == 2 && !r.whole {
		return []string{r.hash.String()}, nil
	}
	if !r.whole {
		for _, ref := range refs {
			// An annotated tag is asked for by its own id; it brings its commit along.
			if ref.Hash == r.hash.String() || ref.Name == r.Ref && ref.Target() == r.hash.String() {
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
	case !r.whole && (invalid || missing && tipsOnly):
		return errNotWantable
	case missing || invalid:
		return fmt.Errorf("%w: %w", ErrRefNotFound, err)
	}
	return err
}

// ingest takes the pack and opens the commit in it.
func (c *Client) ingest(ctx context.Context, stream io.Reader, r request) (*Commit, error) {
	s, err := fillSpool(ctx, stream, c.options.TempDir, c.options.MaxPackBytes)
	if err != nil {
		return nil, err
	}
	commit, err := c.openCommit(ctx, s, r)
	if err != nil {
		_ = s.Close() // What matters is why the pack is of no use.
		return nil, err
	}
	return commit, nil
}

func (c *Client) openCommit(ctx context.Context, s *spool, r request) (*Commit, error) {
	o := c.options
	p, err := indexPack(ctx, s, packLimits{
		objects: o.MaxObjects, object: o.MaxObjectBytes, delta: o.MaxObjectBytes / deltaShare, unpacked: o.MaxUnpackedBytes,
	}, c.room, o.TempDir)
	if err != nil {
		return nil, err
	}
	if _, ok := p.byHash[r.hash]; !ok && r.whole {
		return nil, fmt.Errorf("%w: it is in the history of no branch or tag that was looked at", ErrRefNotFound)
	}
	content, err := p.loadMeta(ctx, r.hash, plumbing.CommitObject)
	if err != nil {
		return nil, err
	}
	header, err := parseCommit(content)
	if err != nil {
		return nil, err
	}
	// The files are read after this fetch, until the commit is closed.
	reading, closed := context.WithCancelCause(context.WithoutCancel(ctx))
	root, err := readTree(ctx, blobs{reading, p}, header.tree, treeLimits{depth: o.MaxTreeDepth, files: o.MaxFiles})
	if err != nil {
		closed(err)
		return nil, err
	}
	return &Commit{
		Hash: r.hash.String(), Message: header.message, CommitterTime: header.committer,
		tree: &tree.Tree{Root: root, Time: header.committer}, pack: p, closed: closed,
	}, nil
}
