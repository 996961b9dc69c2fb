package git

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing"

	"sluice.dev/sluice/internal/tree"
)

const (
	// maxCommitHead is how much of a commit is read: a message may be as large as any object.
	maxCommitHead = 1 << 20
	// maxSubject is how many bytes of a subject are decoded.
	maxSubject = 1 << 10
	// maxTold is how many bytes of a message are told.
	maxTold = 64 << 10
)

// MaxSubmodules bounds how many submodules of a commit are told.
const MaxSubmodules = 1000

// Submodule is a commit of another repository, and the path at which a tree has it.
type Submodule struct{ Path, Hash string }

// Commit is a fetched commit with all its files. Close it when the files are no longer needed.
type Commit struct {
	// Hash is the commit's id, checked against what was sent.
	Hash string
	// Subject is the first line of the message, its first kilobyte at most. Bytes that are no UTF-8 are replaced.
	Subject string
	// Message is all of it, its first 64 KiB at most, as it stands in the commit.
	Message string
	// CommitterTime is when the commit was made, in the committer's time zone.
	CommitterTime time.Time
	// Parents are the ids of the commits that it was made on.
	Parents []string
	// BytesReceived is what the server sent for it, packets and all. Of commits that were fetched together, each has what was
	// sent for all of them.
	BytesReceived int64

	root    plumbing.Hash // its tree
	tree    *tree.Tree
	planter *planter
	pack    *pack
	parts   *Parts
	closed  context.CancelCauseFunc
	release func() error
	last    lastFolder
}

// Tree is the commit's files as a checkout has them, or those of them that were wanted. Regular files have mode 0644 or 0755,
// links are fs.ModeSymlink and are not followed by Open, a submodule is an empty directory, and there is no directory
// without any of these in it or below. All of it has been checked: it holds no name that leaves its directory or means .git.
// It is safe for concurrent use until Close. Of commits that were fetched together, it is checked when it is first read.
func (c *Commit) Tree() *tree.Tree { return c.tree }

// Submodules are those in the tree, one more than MaxSubmodules at most.
func (c *Commit) Submodules() ([]Submodule, error) { return c.planter.modules(nil, c.tree.Root, "") }

// Close frees what the commit takes in memory or on disk. Files that are open fail from then on.
func (c *Commit) Close() error {
	c.closed(fs.ErrClosed)
	return c.release()
}

// commitHeader is what is read from a commit object.
type commitHeader struct {
	tree      plumbing.Hash
	parents   []plumbing.Hash
	committer time.Time
	subject   string
	message   string
}

// loadCommit reads the beginning of a commit.
func (p *pack) loadCommit(ctx context.Context, hash plumbing.Hash) (commitHeader, error) {
	index, err := p.find(hash, plumbing.CommitObject)
	if err != nil {
		return commitHeader{}, err
	}
	stream, err := p.open(ctx, index)
	if err != nil {
		return commitHeader{}, err
	}
	defer func() { _ = stream.Close() }() // Reading told whether the data was good.
	head := make([]byte, min(p.objects[index].size, maxCommitHead))
	_, err = io.ReadFull(stream, head)
	if err == nil && (int64(len(head)) == p.objects[index].size || int(index) < p.kept) {
		_, err = io.Copy(io.Discard, stream) // What is checked is so at its end.
	}
	if err != nil {
		return commitHeader{}, fmt.Errorf("read commit %s: %w", hash, err)
	}
	return parseCommit(string(head))
}

// parseCommit reads a commit object strictly: the tree first, the parents right behind it, the committer behind the author.
func parseCommit(text string) (header commitHeader, err error) {
	line, rest, _ := strings.Cut(text, "\n")
	id, ok := strings.CutPrefix(line, "tree ")
	if !ok {
		return header, protocolErrorf("commit does not begin with its tree")
	}
	if header.tree, err = parseHash(id); err != nil {
		return header, err
	}
	for strings.HasPrefix(rest, "parent ") {
		line, rest, _ = strings.Cut(rest, "\n")
		parent, err := parseHash(line[len("parent "):])
		if err != nil {
			return header, err
		}
		header.parents = append(header.parents, parent)
	}
	for {
		line, rest, ok = strings.Cut(rest, "\n")
		if !ok || line == "" {
			return header, protocolErrorf("commit has no committer")
		}
		if who, found := strings.CutPrefix(line, "committer "); found {
			header.committer = parseTime(who)
			break
		}
	}
	_, message, _ := strings.Cut("\n"+rest, "\n\n") // A message may begin at once.
	subject, _, _ := strings.Cut(strings.TrimLeftFunc(message, unicode.IsSpace), "\n")
	header.message = message[:min(len(message), maxTold)]
	header.subject = strings.TrimSpace(strings.ToValidUTF8(subject[:min(len(subject), maxSubject)], "\ufffd"))
	return header, nil
}

// parseTime reads seconds since 1970 and the time zone at the end of an author or committer line. Old tools wrote
// nonsense there; Git shows it as the beginning of 1970, and so do we.
func parseTime(who string) time.Time {
	_, stamp, _ := strings.Cut(who[strings.LastIndexByte(who, '>')+1:], " ")
	digits, zone, _ := strings.Cut(stamp, " ")
	seconds, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || seconds < 0 || seconds > 1<<40 {
		return time.Unix(0, 0).UTC()
	}
	offset, err := strconv.Atoi(zone)
	if err != nil || offset < -1500 || offset > 1500 {
		return time.Unix(seconds, 0).UTC()
	}
	return time.Unix(seconds, 0).In(time.FixedZone("", (offset/100*60+offset%100)*60))
}
