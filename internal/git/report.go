package git

import (
	"errors"
	"io"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/transport"
)

const (
	// maxReport bounds the answer to a push: a few lines for each ref, and what hooks say.
	maxReport = 32 << 20
	// maxOptions bounds the lines about one ref.
	maxOptions = 16
)

// report is what a server says became of a push; see "Reporting status" in gitprotocol-pack(5).
type report struct {
	unpack   string // why the objects were not taken; empty when they were
	verdicts map[string]verdict
}

// verdict is on one ref.
type verdict struct {
	ok     bool
	reason string // why not
	// ref and id are what was moved, and where to, when that is something else than what was asked for.
	ref, id string
	options int
}

// moved tells whether the server did what the update says.
func (v verdict) moved(u Update) bool {
	return (v.ref == "" || v.ref == u.Ref) && (v.id == "" || v.id == u.New || u.New == "" && strings.Trim(v.id, "0") == "")
}

// readReport reads verdicts on at most so many refs.
func readReport(in *packetReader, most int) (report, error) {
	r := report{verdicts: map[string]verdict{}}
	kind, line, err := firstLine(in)
	if err != nil {
		return r, err
	}
	unpack, found := strings.CutPrefix(line, "unpack ")
	if kind != dataPacket || !found {
		return r, protocolErrorf("no report on a push: %s", transport.PrintableQuoted(line))
	}
	if unpack != "ok" {
		r.unpack = unpack
	}
	last := ""
	for {
		kind, line, err := in.line()
		switch {
		case errors.Is(err, io.EOF):
			return r, truncated(err)
		case err != nil:
			return r, err
		case kind == flushPacket:
			return r, nil
		case kind != dataPacket:
			return r, protocolErrorf("malformed report on a push")
		}
		if last, err = r.add(line, last, most); err != nil {
			return r, err
		}
	}
}

// add takes one line, and returns the ref that the next one may be about.
func (r *report) add(line, last string, most int) (string, error) {
	word, rest, _ := strings.Cut(line, " ")
	ref, reason, _ := strings.Cut(rest, " ")
	switch word {
	case "ok", "ng":
		if _, twice := r.verdicts[ref]; twice || !validRefName(ref) || len(r.verdicts) == most {
			return "", protocolErrorf("server reports twice on a ref, or on one too many: %s", transport.PrintableQuoted(ref))
		}
		r.verdicts[ref] = verdict{ok: word == "ok", reason: reason}
		return ref, nil
	case "option":
		v, known := r.verdicts[last]
		if v.options++; !known || !v.ok || v.options > maxOptions {
			return "", protocolErrorf("server reports options of no ref")
		}
		switch key, value, _ := strings.Cut(rest, " "); key {
		case "refname":
			v.ref = value
		case "new-oid":
			v.id = value
		}
		r.verdicts[last] = v
		return last, nil
	}
	return "", protocolErrorf("malformed report on a push: %s", transport.PrintableQuoted(line))
}

// rejection is a server's refusal in its own words.
type rejection struct{ unpack, reason, said string }

// Error has the words of the protocol, and those of hooks behind them.
func (r *rejection) Error() string {
	text := r.reason
	if r.unpack != "" {
		text = "unpack: " + r.unpack
	}
	text = "server says " + transport.PrintableQuoted(text)
	if said := strings.Join(strings.Fields(r.said), " "); said != "" {
		text += ": " + transport.PrintableQuoted(said)
	}
	return text
}

// isRace knows the words of servers for a ref that somebody else is moving, or has moved: those of Git and JGit.
func (r *rejection) isRace() bool {
	if r == nil {
		return false
	}
	lower := strings.ToLower(r.reason)
	return slices.ContainsFunc([]string{
		"failed to update ref", "failed to lock", "cannot lock ref", "lock failure", "lock error", "unable to lock",
		"reference already exists", "fetch first", "stale info", "atomic transaction failed",
	}, func(words string) bool { return strings.Contains(lower, words) })
}

// isWithdrawn knows the words for a ref that another one of an atomic push took down with it.
func (r *rejection) isWithdrawn() bool {
	lower := strings.ToLower(r.reason)
	return strings.Contains(lower, "atomic push failure") || strings.Contains(lower, "atomic transaction failed") ||
		strings.Contains(lower, "transaction aborted")
}

// conflicts tells whether there is a ref in whose folder the name lies, or one that lies in the folder of the name: no file
// is a folder, so that trying again is in vain.
func conflicts(name string, refs []Ref) bool {
	return slices.ContainsFunc(refs, func(ref Ref) bool {
		return strings.HasPrefix(ref.Name, name+"/") || strings.HasPrefix(name, ref.Name+"/")
	})
}
