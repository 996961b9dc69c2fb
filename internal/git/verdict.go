package git

import (
	"context"
	"errors"
	"fmt"

	"sluice.dev/sluice/internal/transport"
)

// command is an update and what is known of it.
type command struct {
	Update

	settled bool // the verdict is final
	found   string
	err     error
}

// compare settles what is done already, and what cannot be done because the ref is elsewhere.
func (p *push) compare(refs []Ref) {
	at := idsOf(refs)
	for i := range p.commands {
		c := &p.commands[i]
		c.found = at[c.Ref]
		switch c.found {
		case c.New:
			c.settled, c.err = true, nil
		case c.Old:
		default:
			c.settled, c.err = true, moved(c)
		}
	}
}

// idsOf are the ids of refs by their names.
func idsOf(refs []Ref) map[string]string {
	at := make(map[string]string, len(refs))
	for _, ref := range refs {
		at[ref.Name] = ref.Hash
	}
	return at
}

// refuseRemovals settles what the server does not do for anybody.
func (p *push) refuseRemovals() {
	for i := range p.commands {
		if c := &p.commands[i]; !c.settled && c.New == "" {
			c.settled, c.err = true, fmt.Errorf("%w: it removes no refs", ErrRejected)
		}
	}
}

func moved(c *command) error {
	where := "there is none any more"
	if c.found != "" {
		where = "it is at " + c.found
	}
	if c.Old == "" {
		return fmt.Errorf("%w: %s", ErrRefMoved, where)
	}
	return fmt.Errorf("%w from %s: %s", ErrRefMoved, c.Old, where)
}

// judge takes over what the server reports.
func (p *push) judge(r report, said string) error {
	for i := range p.commands {
		c := &p.commands[i]
		if c.settled {
			continue
		}
		v, ok := r.verdicts[c.Ref]
		switch {
		case ok && v.ok && r.unpack == "" && v.moved(c.Update):
			c.settled, c.err = true, nil
		case ok && v.ok && r.unpack == "":
			c.settled, c.err = true, fmt.Errorf("%w: it moved another ref, or to another commit", ErrRejected)
		case ok || r.unpack != "":
			c.err = &rejection{unpack: r.unpack, reason: v.reason, said: said}
		default:
			return protocolErrorf("server does not report what became of ref %s", transport.PrintableQuoted(c.Ref))
		}
		delete(r.verdicts, c.Ref)
	}
	for ref := range r.verdicts {
		return protocolErrorf("server reports on ref %s, which was not pushed", transport.PrintableQuoted(ref))
	}
	return nil
}

// isRefused tells whether the server refused a command.
func (p *push) isRefused() bool {
	for i := range p.commands {
		if !p.commands[i].settled {
			return true
		}
	}
	return false
}

// settle looks where the refs are after something went wrong: the answer may have been lost when all was done, and a
// refusal is one thing where the ref has moved, another where it has not. What went wrong stays where that shows nothing.
func (c *Client) settle(ctx context.Context, remote Remote, m *meter, p *push, wrong error) error {
	if ctx.Err() != nil {
		return wrong
	}
	var refs []Ref
	looked := c.converseWith(ctx, remote, receivePack, m, func(to peer) error {
		refs = to.advert().refs
		return p.leave(ctx, to)
	})
	at := idsOf(refs)
	done := 0
	for i := range p.commands {
		if p.commands[i].settled {
			continue
		}
		p.commands[i].settle(refs, at, looked == nil, wrong)
		if p.commands[i].err == nil {
			done++
		}
	}
	if wrong != nil && done == 0 {
		return wrong
	}
	p.withdraw()
	return nil
}

// settle gives the final verdict on a command that the server refused, or on which there is no verdict because of what went
// wrong.
func (c *command) settle(refs []Ref, at map[string]string, looked bool, wrong error) {
	c.settled = true
	refused, _ := errors.AsType[*rejection](c.err)
	if looked {
		c.found = at[c.Ref]
	}
	switch {
	case looked && c.found == c.New:
		c.err = nil
	case wrong != nil:
		c.err = wrong
	case looked && c.found != c.Old:
		c.err = moved(c)
	case refused.isRace() && !conflicts(c.Ref, refs):
		c.err = fmt.Errorf("%w: %w", ErrRefMoved, refused)
	default:
		c.err = fmt.Errorf("%w: %w", ErrRejected, refused)
	}
}

// withdraw blames the others of an atomic push on the one that could not be moved.
func (p *push) withdraw() {
	if !p.Atomic {
		return
	}
	blamed := false
	for i := range p.commands {
		blamed = blamed || p.commands[i].err != nil && !p.commands[i].isWithdrawn()
	}
	for i := range p.commands {
		if blamed && p.commands[i].isWithdrawn() {
			p.commands[i].err = ErrNotMoved
		}
	}
}

func (c *command) isWithdrawn() bool {
	refused, ok := errors.AsType[*rejection](c.err)
	return ok && refused.isWithdrawn()
}

func (p *push) results(safe func(error) error) []UpdateResult {
	results := make([]UpdateResult, len(p.commands))
	for i, c := range p.commands {
		results[i] = UpdateResult{Ref: c.Ref, Err: safe(c.err)}
		if errors.Is(c.err, ErrRefMoved) {
			results[i].Found = c.found
		}
	}
	return results
}
