package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"sluice.dev/sluice/internal/memory"
)

// maxRefusals is how often a server may lack one of many commits before it is not asked any more. After the first time it is
// asked for its refs, so that those that are gone with them are not found out one by one.
const maxRefusals = 16

// namedIDs are the ids in the words of a server.
var namedIDs = regexp.MustCompile(`\b[0-9a-f]{40}\b`)

// errRefused says that the server lacks some of many commits, which are known now.
var errRefused = errors.New("server lacks some of the commits")

// ask fetches what is missing, in the ways that the server makes necessary, and opens all.
func (b *batch) ask(ctx context.Context, remote Remote) (commits []*Commit, err error) {
	for again := true; again; {
		err = b.client.converse(ctx, remote, b.meter, func(p peer) error {
			history, earlier, err := b.fetch(ctx, p)
			if err == nil {
				commits, err = b.open(ctx, history, earlier)
			}
			return err
		})
		again = b.again(err)
	}
	return commits, err
}

// again tells whether the fetch is to be tried in another way after the error.
func (b *batch) again(err error) bool {
	switch {
	case b.thin && err == nil:
		b.held.folder.doubts = 0
	case errors.Is(err, errRefused):
		return true
	case b.thin && !b.anew && errors.Is(err, errHeavy):
		b.anew = true // What is in the cache is good for all that.
		return true
	case !b.anew && (b.thin && isLeftOut(err) || errors.Is(err, errDamaged)):
		b.held.doubt()
		b.anew = true
		return true
	case errors.Is(err, errNoRoom):
		return true
	case errors.Is(err, errNotWantable) && !b.whole:
		b.whole = true
		return true
	}
	return false
}

// fetch brings the pack that has the commits, behind what is in the cache.
func (b *batch) fetch(ctx context.Context, p peer) (*pack, *kept, error) {
	c := b.client
	refs, err := b.refs(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	earlier, err := b.held.load(ctx)
	if err != nil {
		return nil, nil, err
	}
	missing, present := b.missing(earlier)
	if b.refusals > 0 {
		b.drop(refs, missing)
		missing, present = b.missing(earlier)
	}
	wants, err := b.choose(p.advert(), refs, missing)
	if err == nil && len(wants) == 0 {
		return newPack(ctx, earlier.spool(), earlier, c.options.packLimits(), c.options.TempDir), earlier, nil
	}
	q := question{wants: wants, bytes: c.options.MaxPackBytes}
	if !b.whole {
		q.depth = 1
		if b.held.trusted() && !b.anew {
			q.haves = earlier.near(missing, present)
		}
	}
	q.thin, b.thin = len(q.haves) > 0, len(q.haves) > 0
	asking := askBytes * int64(len(q.wants)+len(q.haves))
	err = errors.Join(err, memory.Draw(ctx, asking))
	if err != nil {
		earlier.close(ctx)
		return nil, nil, err
	}
	defer memory.Return(ctx, asking)
	history, err := c.receive(ctx, p, q, c.options.packLimits(), b.held, earlier)
	if b.thin && (errors.Is(err, ErrLimit) || errors.Is(err, memory.ErrBudget)) {
		err = fmt.Errorf("%w: %w", errHeavy, err)
	}
	if err != nil {
		return nil, nil, b.explain(p.advert(), err)
	}
	if err = b.connect(ctx, history, earlier, missing); err != nil {
		_ = history.Close() // What matters is why the pack is of no use.
	}
	return history, earlier, err
}

// refs are those of the server, where it is necessary to know them.
func (b *batch) refs(ctx context.Context, p peer) ([]Ref, error) {
	if p.advert().version == 2 && (b.whole || b.refusals > 0) {
		return b.client.lsRefs(ctx, p, nil)
	}
	return p.advert().refs, nil
}

// drop takes those for gone whose refs are.
func (b *batch) drop(refs []Ref, missing []Want) {
	there := map[string]bool{}
	for _, ref := range refs {
		there[ref.Name] = true
	}
	held := map[plumbing.Hash]bool{} // by a ref that is there, or by none
	for i, want := range b.wants {
		held[b.hashes[i]] = held[b.hashes[i]] || want.Ref == "" || there[want.Ref]
	}
	for _, want := range missing {
		if hash := plumbing.NewHash(want.Hash); !held[hash] {
			b.gone[hash] = true
		}
	}
}

// choose decides which objects to ask for, see chooseWants. A commit that was on a ref, and is not any more, is gone where a
// server gives out only what its refs name.
func (b *batch) choose(a *advert, refs []Ref, missing []Want) (wants []string, err error) {
	if b.whole {
		return historyWants(refs, "")
	}
	byTarget := map[string]string{}
	for _, ref := range refs {
		byTarget[ref.Target()] = ref.Hash
	}
	for _, ref := range refs {
		byTarget[ref.Hash] = ref.Hash
	}
	reaches := a.version == 2 || a.caps.has("allow-tip-sha1-in-want") || a.caps.has("allow-reachable-sha1-in-want")
	for _, want := range missing {
		hash := plumbing.NewHash(want.Hash)
		// An annotated tag is asked for by its own id; it brings its commit along.
		asked := cmp.Or(strings.ToLower(want.Tag), hash.String())
		named, isNamed := byTarget[asked]
		switch {
		case a.version == 2:
			wants = append(wants, asked)
		case isNamed:
			wants = append(wants, named)
		case reaches:
			wants = append(wants, hash.String())
		case want.Ref != "":
			b.gone[hash] = true
		default:
			b.whole = true
			return historyWants(refs, "")
		}
	}
	return wants, nil
}

// connect sees to it that what was missing is there, with all that it leads to. In a whole history it may not be.
func (b *batch) connect(ctx context.Context, p *pack, earlier *kept, missing []Want) error {
	var tips []tip
	for _, want := range missing {
		t := tip{plumbing.NewHash(want.Hash), false}
		switch _, isThere := p.lookUp(t.commit); {
		case b.gone[t.commit]:
		case !isThere && b.whole:
			b.gone[t.commit] = true
		default:
			tips = append(tips, t)
		}
	}
	return p.connect(ctx, earlier, tips...)
}

// explain turns a refusal into what it means. The commits that it names are gone, unless they may be in the history of others.
func (b *batch) explain(a *advert, err error) error {
	err = explainRemote(a, request{whole: b.whole}, err)
	var refusal *remoteError
	if !errors.As(err, &refusal) || !errors.Is(err, ErrRefNotFound) && !errors.Is(err, errNotWantable) {
		return err
	}
	named := map[string]bool{}
	for _, id := range namedIDs.FindAllString(refusal.message, maxWants) {
		named[id] = true
	}
	isTold := false
	for i, want := range b.wants {
		if !named[b.hashes[i].String()] && !named[strings.ToLower(want.Tag)] {
			continue
		}
		if want.Ref == "" && errors.Is(err, errNotWantable) {
			return err
		}
		b.gone[b.hashes[i]], isTold = true, true
	}
	b.refusals++
	if isTold && b.refusals <= maxRefusals || b.refusals == 1 {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return err
}
