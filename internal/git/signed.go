package git

import (
	"context"
	"errors"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// maxSignedBytes bounds a commit or a tag whose signature is looked at.
const maxSignedBytes = 1 << 20

// Signed are the objects that signatures are in, byte for byte.
type Signed struct {
	Commit []byte
	// Tag is that of Want; nil without one.
	Tag []byte
}

// Signed fetches the commit and the tag that are wanted, alone where the server can do that. ErrLimit when one of them has
// more than 1 MiB.
func (c *Client) Signed(ctx context.Context, remote Remote, want Want) (Signed, error) {
	return fetchWith(ctx, c, remote, &meter{}, request{Want: want, filter: allButCommits},
		func(ctx context.Context, p *pack, hash plumbing.Hash) (signed Signed, err error) {
			if signed.Commit, err = p.signed(ctx, hash, plumbing.CommitObject); err == nil && want.Tag != "" {
				signed.Tag, err = p.signed(ctx, plumbing.NewHash(strings.ToLower(want.Tag)), plumbing.TagObject)
			}
			return signed, errors.Join(err, p.Close())
		})
}

func (p *pack) signed(ctx context.Context, hash plumbing.Hash, kind plumbing.ObjectType) ([]byte, error) {
	index, err := p.find(hash, kind)
	if err != nil {
		return nil, err
	}
	if p.objects[index].size > maxSignedBytes {
		return nil, limitErrorf("%s %s is larger than the %d bytes whose signature is looked at", kind, hash, maxSignedBytes)
	}
	return p.load(ctx, index)
}
