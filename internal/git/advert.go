package git

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/transport"
)

const (
	// maxAdvertBytes bounds an advertisement, which in version 0 lists all refs, and an answer to ls-refs.
	maxAdvertBytes = 64 << 20
	// maxCapabilities bounds the lines of a version 2 advertisement, which is remembered, maxCapabilityBytes all of them: servers
	// send a few hundred bytes.
	maxCapabilities    = 256
	maxCapabilityBytes = 8 << 10
	// peeledSuffix marks what an annotated tag points to, in version 0.
	peeledSuffix = "^{}"
	// otherHave stands for a ref of another repository that shares its objects; receive-pack tells of these.
	otherHave = ".have"
)

// capabilities are what a server offers; a capability without a value has the empty one.
type capabilities map[string]string

func (c capabilities) has(name string) bool {
	_, ok := c[name]
	return ok
}

// fetch tells whether a fetch can do what the word says, as in "fetch=shallow filter".
func (c capabilities) fetch(word string) bool {
	return slices.Contains(strings.Fields(c["fetch"]), word)
}

// checkObjectFormat refuses repositories whose objects are not named by SHA-1.
func (c capabilities) checkObjectFormat() error {
	format, ok := c["object-format"]
	if format == "sha256" {
		return protocolErrorf(notSHA256)
	}
	if ok && format != "sha1" {
		return protocolErrorf("object format %s is not supported", transport.PrintableQuoted(format))
	}
	return nil
}

// advert is a server's first answer. Only in version 0 does it list the refs.
type advert struct {
	version int
	caps    capabilities
	refs    []Ref
}

// readAdvert reads an advertisement, with or without the line that smart HTTP puts before it.
func readAdvert(ctx context.Context, in *packetReader, of service, maxRefs int) (*advert, error) {
	kind, line, err := firstLine(in)
	if err != nil {
		return nil, err
	}
	if kind == dataPacket && strings.HasPrefix(line, "# service=") {
		if line != "# service="+string(of) {
			return nil, protocolErrorf("advertisement of another service: %s", transport.PrintableQuoted(line))
		}
		if kind, _, err = in.line(); err != nil || kind != flushPacket {
			return nil, errors.Join(protocolErrorf("no flush packet after the service line"), err)
		}
		if kind, line, err = firstLine(in); err != nil {
			return nil, err
		}
	}
	switch {
	case kind == dataPacket && line == "version 2":
		return readAdvertV2(in)
	case kind == dataPacket && line == "version 1":
		if kind, line, err = firstLine(in); err != nil {
			return nil, err
		}
	}
	return readAdvertV0(ctx, in, kind, line, maxRefs)
}

// errEmptyAnswer says that the stream ended where an answer should have begun or gone on.
var errEmptyAnswer = errors.New("empty answer")

// firstLine is line for places where the end of the stream is a surprise.
func firstLine(in *packetReader) (packetKind, string, error) {
	kind, line, err := in.line()
	if errors.Is(err, io.EOF) {
		return 0, "", unexpected(protocolErrorf("%w", errEmptyAnswer))
	}
	return kind, line, err
}

func readAdvertV2(in *packetReader) (*advert, error) {
	a := &advert{version: 2, caps: capabilities{}}
	left := maxCapabilityBytes
	for {
		kind, line, err := firstLine(in)
		left -= len(line)
		switch {
		case err != nil:
			return nil, err
		case kind == flushPacket:
			return a, a.caps.checkObjectFormat()
		case kind != dataPacket || line == "":
			return nil, protocolErrorf("malformed capability advertisement")
		case len(a.caps) == maxCapabilities:
			return nil, limitErrorf("more than %d capabilities", maxCapabilities)
		case left < 0:
			return nil, limitErrorf("capabilities of more than %d bytes", maxCapabilityBytes)
		}
		name, value, _ := strings.Cut(line, "=")
		a.caps[name] = value
	}
}

func readAdvertV0(ctx context.Context, in *packetReader, kind packetKind, line string, maxRefs int) (*advert, error) {
	a := &advert{caps: capabilities{}}
	symrefs := map[string]string{}
	seen := map[string]struct{}{}
	for first := true; kind != flushPacket; first = false {
		if kind != dataPacket {
			return nil, protocolErrorf("malformed ref advertisement")
		}
		if first {
			var list string
			line, list, _ = strings.Cut(line, "\x00")
			a.caps, symrefs = parseCapabilitiesV0(list)
			if err := a.caps.checkObjectFormat(); err != nil {
				return nil, err
			}
		}
		if err := a.add(ctx, line, seen, maxRefs); err != nil {
			return nil, err
		}
		var err error
		if kind, line, err = firstLine(in); err != nil {
			return nil, err
		}
	}
	for i, ref := range a.refs {
		a.refs[i].Symref = symrefs[ref.Name]
	}
	return a, nil
}

// add takes one line of a version 0 advertisement: a ref, a peeled tag, the stand-in of an empty repository, or a
// shallow commit of a repository that is shallow itself.
func (a *advert) add(ctx context.Context, line string, seen map[string]struct{}, maxRefs int) error {
	if strings.HasPrefix(line, "shallow ") {
		return nil
	}
	id, name, _ := strings.Cut(line, " ")
	if _, err := parseHash(id); err != nil {
		return unexpected(err)
	}
	if name == "capabilities"+peeledSuffix || name == otherHave {
		return nil
	}
	if tag, peeled := strings.CutSuffix(name, peeledSuffix); peeled {
		if len(a.refs) == 0 || a.refs[len(a.refs)-1].Name != tag {
			return protocolErrorf("peeled tag %s does not follow its tag", transport.PrintableQuoted(tag))
		}
		a.refs[len(a.refs)-1].Peeled = id
		return nil
	}
	if err := admitRef(ctx, name, seen, maxRefs); err != nil {
		return err
	}
	a.refs = append(a.refs, Ref{Name: name, Hash: id})
	return nil
}

// refCost is what a ref takes in memory beside its name while a list of them is read.
const refCost = 300

// admitRef refuses names that no ref may have, names that came before, and more names than allowed. It draws what a ref takes.
func admitRef(ctx context.Context, name string, seen map[string]struct{}, maxRefs int) error {
	if !validRefName(name) {
		return protocolErrorf("server lists a malformed ref name: %s", transport.PrintableQuoted(name))
	}
	if len(seen) >= maxRefs {
		return limitErrorf("more than %d refs", maxRefs)
	}
	if _, taken := seen[name]; taken {
		return protocolErrorf("server lists ref %s twice", transport.PrintableQuoted(name))
	}
	seen[name] = struct{}{}
	return memory.Draw(ctx, refCost+int64(len(name)))
}

func parseCapabilitiesV0(list string) (capabilities, map[string]string) {
	caps, symrefs := capabilities{}, map[string]string{}
	for word := range strings.FieldsSeq(list) {
		name, value, _ := strings.Cut(word, "=")
		caps[name] = value
		if from, to, ok := strings.Cut(value, ":"); ok && name == "symref" && validRefName(to) {
			symrefs[from] = to
		}
	}
	return caps, symrefs
}
