package git

import (
	"context"
	"errors"
	"io"
	"strings"

	"sluice.dev/sluice/internal/transport"
)

// requestV2 asks for the wants in version 2 and reads up to the pack; see "fetch" in gitprotocol-v2(5).
func (c *Client) requestV2(ctx context.Context, p peer, wants []string, r request) (io.Reader, error) {
	question := appendCommand(nil, p.advert(), "fetch")
	question = appendLine(question, "no-progress")
	question = appendLine(question, "ofs-delta")
	if !r.whole && p.advert().caps.feature("fetch", "shallow") {
		question = appendLine(question, "deepen 1")
	}
	for _, want := range wants {
		question = appendLine(question, "want %s", want)
	}
	question = appendLine(question, "done")
	in, err := p.ask(ctx, appendFlush(question), c.options.MaxPackBytes+maxAnswerExtra)
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

// requestV0 asks for the wants in version 0 and reads up to the pack; see "Packfile Negotiation" in
// gitprotocol-pack(5).
func (c *Client) requestV0(ctx context.Context, p peer, wants []string, r request) (io.Reader, error) {
	caps := p.advert().caps
	chosen, banded := chooseCapabilities(caps)
	var question []byte
	for i, want := range wants {
		if i == 0 {
			want += " " + strings.Join(chosen, " ")
		}
		question = appendLine(question, "want %s", want)
	}
	shallow := !r.whole && caps.has("shallow")
	if shallow {
		question = appendLine(question, "deepen 1")
	}
	question = appendLine(appendFlush(question), "done")
	in, err := p.ask(ctx, question, c.options.MaxPackBytes+maxAnswerExtra)
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
func chooseCapabilities(offered capabilities) (chosen []string, banded bool) {
	for _, alternatives := range [][]string{
		{"multi_ack_detailed", "multi_ack"}, {"side-band-64k", "side-band"}, {"ofs-delta"}, {"no-progress"},
	} {
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

// skipNegotiation reads the list of shallow commits, which a flush packet ends, and the final NAK.
func skipNegotiation(in *packetReader, shallow bool) error {
	for {
		kind, line, err := firstLine(in)
		switch {
		case err != nil:
			return err
		case kind == flushPacket && shallow:
			shallow = false
		case kind == dataPacket && line == "NAK" && !shallow:
			return nil
		case kind == dataPacket && shallow && (strings.HasPrefix(line, "shallow ") || strings.HasPrefix(line, "unshallow ")):
		default:
			return unexpected(protocolErrorf("answer holds no pack: %s", transport.PrintableQuoted(line)))
		}
	}
}
