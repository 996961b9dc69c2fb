package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/transport"
)

// Ref is a ref as a server lists it. Hashes are 40 hexadecimal digits.
type Ref struct {
	// Name is HEAD or the full name, refs/heads/main.
	Name string
	// Hash is the object that the ref names.
	Hash string
	// Peeled is the object that an annotated tag points to, empty for all other refs.
	Peeled string
	// Symref is the full name of the ref that this one stands for, where the server tells; mostly that of HEAD.
	Symref string
}

// Target is the commit behind the ref: what an annotated tag points to, else what the ref names.
func (r Ref) Target() string {
	if r.Peeled != "" {
		return r.Peeled
	}
	return r.Hash
}

// ListRefs lists the refs whose full names begin with one of the prefixes; without prefixes, all refs. The list is
// in the server's order. It may be empty; ErrEmptyRepository says that the repository has no refs at all.
func (c *Client) ListRefs(ctx context.Context, remote Remote, prefixes ...string) ([]Ref, error) {
	var refs []Ref
	m := &meter{}
	defer func() { c.options.Observe(m.total()) }()
	err := c.converse(ctx, remote, m, func(p peer) (err error) {
		refs, err = c.listRefs(ctx, p, prefixes)
		return err
	})
	if err != nil {
		return nil, conclude(ctx, "list refs of", remote, err)
	}
	return refs, nil
}

func (c *Client) listRefs(ctx context.Context, p peer, prefixes []string) ([]Ref, error) {
	advertised := p.advert()
	if advertised.version != 2 {
		if len(advertised.refs) == 0 {
			return nil, ErrEmptyRepository
		}
		return filterRefs(advertised.refs, prefixes), nil
	}
	refs, err := c.lsRefs(ctx, p, prefixes)
	if err != nil || len(refs) > 0 {
		return refs, err
	}
	if len(prefixes) > 0 {
		// Nothing matched. Look whether there is anything at all: an empty repository is another thing to tell.
		if found, err := c.hasRefs(ctx, p); err != nil || found {
			return nil, err
		}
	}
	return nil, ErrEmptyRepository
}

// hasRefs reads only the first line of the list, however long that is.
func (c *Client) hasRefs(ctx context.Context, p peer) (bool, error) {
	in, err := c.askRefs(ctx, p, nil)
	if err != nil {
		return false, err
	}
	kind, _, err := firstLine(in)
	return kind == dataPacket, err
}

func (c *Client) lsRefs(ctx context.Context, p peer, prefixes []string) ([]Ref, error) {
	in, err := c.askRefs(ctx, p, prefixes)
	if err != nil {
		return nil, err
	}
	return readRefs(ctx, in, prefixes, c.options.MaxRefs)
}

// askRefs sends ls-refs, see gitprotocol-v2(5).
func (c *Client) askRefs(ctx context.Context, p peer, prefixes []string) (*packetReader, error) {
	if !p.advert().caps.has("ls-refs") {
		return nil, protocolErrorf("server does not offer ls-refs")
	}
	request := appendCommand(nil, p.advert(), "ls-refs")
	request = appendLine(request, "peel")
	request = appendLine(request, "symrefs")
	for _, prefix := range prefixes {
		if strings.ContainsAny(prefix, "\n\x00") || len(prefix) > maxRefName {
			return nil, fmt.Errorf("ref prefix %s: %w", transport.PrintableQuoted(prefix), ErrRefNotFound)
		}
		request = appendLine(request, "ref-prefix %s", prefix)
	}
	return p.ask(ctx, appendFlush(request), maxAdvertBytes)
}

// appendCommand begins a version 2 request.
func appendCommand(request []byte, to *advert, command string) []byte {
	request = appendLine(request, "command=%s", command)
	if to.caps.has("agent") {
		request = appendLine(request, "agent=%s", agent)
	}
	if to.caps.has("object-format") {
		request = appendLine(request, "object-format=sha1")
	}
	return appendDelim(request)
}

// readRefs reads the answer to ls-refs. To a server prefixes are only a hint: nothing is held of what has none of them.
func readRefs(ctx context.Context, in *packetReader, prefixes []string, maxRefs int) ([]Ref, error) {
	var refs []Ref
	seen := map[string]struct{}{}
	for listed := 0; ; listed++ {
		kind, line, err := in.line()
		switch {
		case errors.Is(err, io.EOF) && listed == 0:
			return nil, unexpected(protocolErrorf("%w", errEmptyAnswer))
		case errors.Is(err, io.EOF):
			return nil, truncated(err)
		case err != nil:
			return nil, err
		case kind == flushPacket:
			return refs, nil
		case kind != dataPacket:
			return nil, protocolErrorf("malformed list of refs")
		case listed == maxRefs:
			return nil, limitErrorf("more than %d refs", maxRefs)
		}
		ref, err := parseRef(line)
		if err != nil {
			return nil, err
		}
		if !isAmong(ref.Name, prefixes) && validRefName(ref.Name) {
			continue
		}
		if err := admitRef(ctx, ref.Name, seen, maxRefs); err != nil {
			return nil, err
		}
		refs = append(refs, ref)
	}
}

// parseRef reads one line of ls-refs: an object id, a name, and attributes.
func parseRef(line string) (Ref, error) {
	id, rest, _ := strings.Cut(line, " ")
	if _, err := parseHash(id); err != nil {
		return Ref{}, unexpected(err)
	}
	name, rest, _ := strings.Cut(rest, " ")
	ref := Ref{Name: name, Hash: id}
	for attribute := range strings.FieldsSeq(rest) {
		key, value, _ := strings.Cut(attribute, ":")
		switch key {
		case "peeled":
			if _, err := parseHash(value); err != nil {
				return Ref{}, err
			}
			ref.Peeled = value
		case "symref-target":
			if !validRefName(value) {
				return Ref{}, protocolErrorf("malformed symbolic ref: %s", transport.PrintableQuoted(value))
			}
			ref.Symref = value
		}
	}
	return ref, nil
}

// filterRefs keeps the refs with one of the prefixes.
func filterRefs(refs []Ref, prefixes []string) []Ref {
	if len(prefixes) == 0 {
		return refs
	}
	var kept []Ref
	for _, ref := range refs {
		if isAmong(ref.Name, prefixes) {
			kept = append(kept, ref)
		}
	}
	return kept
}

// isAmong tells whether a ref has one of the prefixes, or there are none.
func isAmong(name string, prefixes []string) bool {
	return len(prefixes) == 0 || slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
