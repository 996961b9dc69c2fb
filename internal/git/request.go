package git

import (
	"context"
	"errors"
	"io"
	"strings"

	"sluice.dev/sluice/internal/transport"
)

// What a server may leave out.
const (
	allButCommits = "tree:0"
	allFiles      = "blob:none"
)

// question is what is asked of a server in one go. Where the server cannot narrow its answer, the answer is larger.
type question struct {
	wants []string
	// haves are commits whose history is left out.
	haves []string
	// thin says that the haves lack their own history, and that deltas may apply to what they lead to.
	thin bool
	// depth is how many commits deep the history goes, zero for all of it.
	depth int
	// filter is what is left out, see "--filter" in git-rev-list(1); empty for nothing.
	filter string
	// bytes bound the pack.
	bytes int64
}

// request asks, and reads up to the pack.
func (c *Client) request(ctx context.Context, p peer, q question) (io.Reader, error) {
	if p.advert().version == 2 {
		return requestV2(ctx, p, q)
	}
	return requestV0(ctx, p, q)
}

// requestV2 asks in version 2; see "fetch" in gitprotocol-v2(5).
func requestV2(ctx context.Context, p peer, q question) (io.Reader, error) {
	caps := p.advert().caps
	if !caps.has("fetch") {
		return nil, protocolErrorf("server does not offer fetch")
	}
	question := appendCommand(nil, p.advert(), "fetch")
	question = appendLine(question, "no-progress")
	question = appendLine(question, "ofs-delta")
	if q.thin {
		question = appendLine(question, "thin-pack")
	}
	if q.thin && caps.fetch("shallow") {
		question = appendEach(question, "shallow", q.haves)
	}
	if q.depth > 0 && caps.fetch("shallow") {
		question = appendLine(question, "deepen %d", q.depth)
	}
	if q.filter != "" && caps.fetch("filter") {
		question = appendLine(question, "filter %s", q.filter)
	}
	question = appendEach(question, "want", q.wants)
	question = appendEach(question, "have", q.haves)
	question = appendLine(question, "done")
	in, err := p.ask(ctx, appendFlush(question), q.bytes+maxAnswerExtra)
	if err != nil {
		return nil, err
	}
	for {
		kind, section, err := firstLine(in)
		switch {
		case err != nil:
			return nil, err
		case kind == dataPacket && section == "packfile":
			return &sideband{packets: in}, nil
		case kind != dataPacket || section != "shallow-info" && section != "acknowledgments":
			return nil, unexpected(protocolErrorf("unknown section %s", transport.PrintableQuoted(section)))
		}
		if err := skipSection(in); err != nil {
			return nil, err
		}
	}
}

// appendEach appends a line for each of the ids.
func appendEach(question []byte, word string, ids []string) []byte {
	for _, id := range ids {
		question = appendLine(question, "%s %s", word, id)
	}
	return question
}

// skipSection reads up to the next delimiter.
func skipSection(in *packetReader) error {
	for {
		kind, _, err := in.line()
		switch {
		case errors.Is(err, io.EOF):
			return truncated(err)
		case err != nil:
			return err
		case kind == delimPacket:
			return nil
		case kind != dataPacket:
			return protocolErrorf("answer holds no pack")
		}
	}
}

// requestV0 asks in version 0; see "Packfile Negotiation" in gitprotocol-pack(5).
func requestV0(ctx context.Context, p peer, q question) (io.Reader, error) {
	caps := p.advert().caps
	chosen, banded := chooseCapabilities(caps, q.thin)
	filtered := q.filter != "" && caps.has("filter")
	if filtered {
		chosen = append(chosen, "filter")
	}
	var question []byte
	for i, want := range q.wants {
		if i == 0 {
			want += " " + strings.Join(chosen, " ")
		}
		question = appendLine(question, "want %s", want)
	}
	if q.thin && caps.has("shallow") {
		question = appendEach(question, "shallow", q.haves)
	}
	shallow := q.depth > 0 && caps.has("shallow")
	if shallow {
		question = appendLine(question, "deepen %d", q.depth)
	}
	if filtered {
		question = appendLine(question, "filter %s", q.filter)
	}
	question = appendEach(appendFlush(question), "have", q.haves)
	question = appendLine(question, "done")
	in, err := p.ask(ctx, question, q.bytes+maxAnswerExtra)
	if err != nil {
		return nil, err
	}
	if err := skipNegotiation(in, shallow); err != nil {
		return nil, err
	}
	if banded {
		return &sideband{packets: in}, nil
	}
	return in.in, nil
}

// chooseCapabilities picks from what a version 0 server offers. multi_ack changes nothing without haves, but
// Azure DevOps answers only to clients that ask for it.
func chooseCapabilities(offered capabilities, thin bool) (chosen []string, banded bool) {
	known := [][]string{{"multi_ack_detailed", "multi_ack"}, {"side-band-64k", "side-band"}, {"ofs-delta"}, {"no-progress"}}
	if thin {
		known = append(known, []string{"thin-pack"})
	}
	for _, alternatives := range known {
		for _, capability := range alternatives {
			if offered.has(capability) {
				chosen = append(chosen, capability)
				banded = banded || strings.HasPrefix(capability, "side-band")
				break
			}
		}
	}
	if offered.has("agent") {
		chosen = append(chosen, "agent="+agent)
	}
	return chosen, banded
}

// skipNegotiation reads the list of shallow commits, which a flush packet ends, and the final NAK, or the final ACK of
// the commit that we have, which others with a word behind them may precede.
func skipNegotiation(in *packetReader, shallow bool) error {
	for {
		kind, line, err := firstLine(in)
		switch {
		case err != nil:
			return err
		case kind == flushPacket && shallow:
			shallow = false
		case kind == dataPacket && !shallow && (line == "NAK" || strings.HasPrefix(line, "ACK ") && strings.Count(line, " ") == 1):
			return nil
		case kind == dataPacket && !shallow && strings.HasPrefix(line, "ACK "):
		case kind == dataPacket && shallow && (strings.HasPrefix(line, "shallow ") || strings.HasPrefix(line, "unshallow ")):
		default:
			return unexpected(protocolErrorf("answer holds no pack: %s", transport.PrintableQuoted(line)))
		}
	}
}
