package git

import (
	"context"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"sluice.dev/sluice/internal/tree"
)

// Commit is a fetched commit with all its files. Close it when the files are no longer needed.
type Commit struct {
	// Hash is the commit's id, checked against what was sent.
	Hash string
	// Message is the whole message. Bytes that are no UTF-8 are replaced.
	Message string
	// CommitterTime is when the commit was made, in the committer's time zone.
	CommitterTime time.Time
	// BytesReceived is what the server sent for it, packets and all.
	BytesReceived int64

	tree   *tree.Tree
	pack   *pack
	closed context.CancelCauseFunc
}

// Subject is the first line of the message.
func (c *Commit) Subject() string {
	subject, _, _ := strings.Cut(strings.TrimSpace(c.Message), "\n")
	return strings.TrimSpace(subject)
}

// Tree is the commit's files, as a checkout has them. Regular files have mode 0644 or 0755, links are fs.ModeSymlink
// and are not followed by Open, a submodule is an empty directory, and there is no directory without any of these in
// it or below. The whole tree has been checked: it holds no name that leaves its directory or means .git. It is safe
// for concurrent use until Close.
func (c *Commit) Tree() *tree.Tree { return c.tree }

// Close frees what the commit takes in memory or on disk. Files that are open fail from then on.
func (c *Commit) Close() error {
	c.closed(fs.ErrClosed)
	return c.pack.Close()
}

// commitHeader is what is read from a commit object.
type commitHeader struct {
	tree      plumbing.Hash
	committer time.Time
	message   string
}

// parseCommit reads a commit object strictly: the tree first, the committer behind the parents and the author.
func parseCommit(content []byte) (commitHeader, error) {
	text := string(content)
	var header commitHeader
	var err error
	line, rest, _ := strings.Cut(text, "\n")
	id, ok := strings.CutPrefix(line, "tree ")
	if !ok {
		return header, protocolErrorf("commit does not begin with its tree")
	}
	if header.tree, err = parseHash(id); err != nil {
		return header, err
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
	headers := "\n" + rest // A message may begin at once.
	if _, message, found := strings.Cut(headers, "\n\n"); found {
		header.message = strings.ToValidUTF8(message, "\ufffd")
	}
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
