package git

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"sluice.dev/sluice/internal/transport"
)

// Update moves a ref.
type Update struct {
	// Ref is the full name, refs/heads/main.
	Ref string
	// Old is where the ref has to be for it to be moved; empty where there must be none.
	Old string
	// New is the commit that it is moved to: of Objects, or one that the server has. Empty removes the ref.
	New string
}

// PushRequest is what one push asks for.
type PushRequest struct {
	// Objects have the commits that are new. Nil where the server has all.
	Objects *Objects
	// Updates name each ref once.
	Updates []Update
	// Atomic moves all refs or none. ErrNotAtomic where the server cannot do that for several.
	Atomic bool
	// For is the remote whose fetches find in the cache afterwards what was pushed. Zero stands for the one that is pushed to.
	For Remote
}

// UpdateResult is what became of one Update.
type UpdateResult struct {
	Ref string
	// Found is where the server had the ref instead, with ErrRefMoved; empty where there was none.
	Found string
	// Err is nil when the ref is at New now, whoever moved it there. ErrRefMoved and ErrRejected are the server's verdicts,
	// ErrNotMoved follows another one's in an atomic push. Anything else leaves open whether the ref was moved.
	Err error
}

// Push sends commits and moves refs, in one exchange with the server. There is a result for each update, in their order,
// unless nothing is known of any of them: then there is an error alone, and the refs may have been moved or not. Pushing the
// same again is safe: what is where it should be counts as moved.
func (c *Client) Push(ctx context.Context, remote Remote, request PushRequest) ([]UpdateResult, error) {
	if len(request.Updates) == 0 {
		return nil, nil
	}
	m := &meter{}
	defer func() { c.options.Observe(m.total()) }()
	push, err := newPush(request)
	if err == nil {
		err = c.converseWith(ctx, remote, receivePack, m, func(p peer) error { return push.run(ctx, p) })
	}
	if push != nil && push.sent && (err != nil || push.isRefused()) {
		err = c.settle(ctx, remote, m, push, err)
	}
	if err != nil {
		return nil, conclude(ctx, "push to", remote, err)
	}
	key := request.For.Key()
	if request.For.URL == "" {
		key = remote.Key()
	}
	c.remember(ctx, key, push)
	results := push.results(func(err error) error { return transport.SafeError(err, remote.secrets()...) })
	return results, nil
}

// push is one push on its way.
type push struct {
	PushRequest

	commands []command
	sent     bool
}

// newPush checks the request by itself.
func newPush(request PushRequest) (*push, error) {
	p := &push{PushRequest: request}
	seen := map[string]bool{}
	for _, update := range request.Updates {
		if !validRefName(update.Ref) || !strings.HasPrefix(update.Ref, "refs/") || seen[update.Ref] {
			return nil, protocolErrorf("ref %s is malformed or named twice", transport.PrintableQuoted(update.Ref))
		}
		seen[update.Ref] = true
		for _, id := range []*string{&update.Old, &update.New} {
			if *id == plumbing.ZeroHash.String() {
				*id = ""
			}
			if *id == "" {
				continue
			}
			if _, err := parseHash(*id); err != nil {
				return nil, fmt.Errorf("ref %s: %w", transport.PrintableQuoted(update.Ref), err)
			}
		}
		p.commands = append(p.commands, command{Update: update})
	}
	return p, nil
}

// run has the conversation.
func (p *push) run(ctx context.Context, to peer) error {
	offered := to.advert().caps
	p.compare(to.advert().refs)
	if !offered.has("delete-refs") {
		p.refuseRemovals()
	}
	open := p.open()
	if len(open) == 0 {
		return p.leave(ctx, to)
	}
	chosen, err := p.choose(offered, len(open))
	if err != nil {
		return err
	}
	body, err := p.message(ctx, open, chosen)
	if err != nil {
		return err
	}
	p.sent = true
	in, err := to.send(ctx, body, maxReport)
	if err != nil {
		return err
	}
	said := &opening{}
	banded := offered.has("side-band-64k")
	if banded {
		in = newPacketReader(&sideband{packets: in, said: said})
	}
	r, err := readReport(in, len(open))
	if err == nil {
		err = p.judge(r, said.String())
	}
	if err == nil && banded {
		// Hooks run behind the report, and some servers end them when nobody listens any more.
		_, _ = io.Copy(io.Discard, in.in)
	}
	return err
}

// open are the commands that are to be sent. Of an atomic push none is left when one of them cannot be.
func (p *push) open() []*command {
	var open []*command
	failed := false
	for i := range p.commands {
		c := &p.commands[i]
		failed = failed || c.err != nil
		if !c.settled {
			open = append(open, c)
		}
	}
	if !p.Atomic || !failed {
		return open
	}
	for _, c := range open {
		c.settled, c.err = true, ErrNotMoved
	}
	return nil
}

// leave ends a conversation in which there is nothing to ask for.
func (p *push) leave(ctx context.Context, to peer) error {
	if _, ok := to.(*sshPeer); !ok {
		return nil
	}
	_, err := to.ask(ctx, appendFlush(nil), maxReport)
	return err
}

// choose picks from what the server offers.
func (p *push) choose(offered capabilities, commands int) ([]string, error) {
	var chosen []string
	for _, alternatives := range [][]string{{"report-status-v2", "report-status"}, {"side-band-64k"}, {"quiet"}} {
		for _, capability := range alternatives {
			if offered.has(capability) {
				chosen = append(chosen, capability)
				break
			}
		}
	}
	if len(chosen) == 0 || !strings.HasPrefix(chosen[0], "report-status") {
		return nil, protocolErrorf("server does not report what becomes of a push")
	}
	if p.Atomic && commands > 1 {
		if !offered.has("atomic") {
			return nil, ErrNotAtomic
		}
		chosen = append(chosen, "atomic")
	}
	if offered.has("object-format") {
		chosen = append(chosen, "object-format=sha1")
	}
	if offered.has("agent") {
		chosen = append(chosen, "agent="+agent)
	}
	return chosen, nil
}
