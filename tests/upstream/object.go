package upstream

import (
	"bytes"
	"encoding/hex"
	"fmt"
)

// Entry is an entry of a crafted tree. Nothing about it is checked.
type Entry struct {
	Mode string // as it stands in the object: 100644, 40000, 120000, or anything else
	Name string
	Hash string // hexadecimal
}

// Object stores an object of the type with exactly these bytes, however malformed, and returns its id.
func (r *Repository) Object(kind string, content []byte) (string, error) {
	if content == nil {
		content = []byte{}
	}
	id, err := r.RawInput(content, "hash-object", "-t", kind, "--literally", "-w", "--stdin")
	if err != nil {
		return "", fmt.Errorf("store %s: %w", kind, err)
	}
	return id, nil
}

// RawTree stores a tree with exactly these entries, in this order: names like "..", ".git" or "a/b", entries
// that are listed twice or in the wrong order, and modes that do not exist are all written as they are given.
func (r *Repository) RawTree(entries ...Entry) (string, error) {
	var tree bytes.Buffer
	for _, e := range entries {
		id, err := hex.DecodeString(e.Hash)
		if err != nil {
			return "", fmt.Errorf("entry %q: %w", e.Name, err)
		}
		fmt.Fprintf(&tree, "%s %s\x00", e.Mode, e.Name)
		tree.Write(id)
	}
	return r.Object("tree", tree.Bytes())
}

// CommitTree stores a commit of the tree and returns its id. No ref names it yet; SetRef does that.
func (r *Repository) CommitTree(tree, message string, parents ...string) (string, error) {
	date := int64(firstDate)
	var commit bytes.Buffer
	fmt.Fprintf(&commit, "tree %s\n", tree)
	for _, parent := range parents {
		before, err := r.date(parent)
		if err != nil {
			return "", fmt.Errorf("commit tree %s: %w", tree, err)
		}
		date = max(date, before+stepDate)
		fmt.Fprintf(&commit, "parent %s\n", parent)
	}
	for _, role := range []string{"author", "committer"} {
		fmt.Fprintf(&commit, "%s %s <%s> %d +0000\n", role, identityName, identityMail, date)
	}
	fmt.Fprintf(&commit, "\n%s", message)
	return r.Object("commit", commit.Bytes())
}
