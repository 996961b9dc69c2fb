package git

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing"
)

const (
	// maxIdentity bounds a name and an address, each.
	maxIdentity = 1 << 10
	// maxMessage bounds the message of a new commit, so that the whole of it is read with the commit.
	maxMessage = 512 << 10
	// maxParents bounds the parents of a new commit; Git itself takes no more for one merge.
	maxParents = 16
	// maxSignature bounds what a Signer returns.
	maxSignature = 64 << 10
)

// Identity is who made a commit, and when.
type Identity struct {
	// Name and Email are written without what Git does not take there: angle brackets, line breaks and other control characters.
	Name, Email string
	// When is written in its time zone, in seconds.
	When time.Time
}

// Signer signs commits.
type Signer interface {
	// Sign returns an armored signature of the payload, made at the given time.
	Sign(payload []byte, when time.Time) ([]byte, error)
}

// NewCommit is a commit that is to be made.
type NewCommit struct {
	// Base is the commit whose tree is edited: one of the bases or one made before. Empty for no files.
	Base string
	// Parents are commits that the server has or gets by the same push. A commit without any begins a history.
	Parents []string
	// Edits are made one after the other.
	Edits []Edit
	// Author and Committer are required.
	Author, Committer Identity
	// Message is written without control characters but line feeds and tabs, and with a line feed at its end.
	Message string
	// TreeTrailer is the key of a trailer that is added to the message, with the id of the commit's root tree as its value. Empty
	// adds none.
	TreeTrailer string
	// Signer signs the commit at the time of the committer. Nil leaves it unsigned.
	Signer Signer
}

// errSignature says that a Signer returned something else.
var errSignature = errors.New("signer returned no armored signature")

// encode writes the commit; see gitformat-signature(5) for the place of the signature.
func (n *NewCommit) encode(tree plumbing.Hash) ([]byte, error) {
	head, err := n.header(tree)
	if err != nil {
		return nil, err
	}
	message := cleanMessage(n.Message)
	if n.TreeTrailer != "" {
		message += n.TreeTrailer + ": " + tree.String() + "\n"
	}
	if len(message) > maxMessage {
		return nil, limitErrorf("message is longer than %d bytes", maxMessage)
	}
	payload := append(append(bytes.Clone(head), '\n'), message...)
	if n.Signer == nil {
		return payload, nil
	}
	armored, err := n.Signer.Sign(payload, n.Committer.When)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	armored = bytes.TrimSpace(armored)
	if len(armored) == 0 || len(armored) > maxSignature || bytes.ContainsAny(armored, "\x00\r") {
		return nil, fmt.Errorf("sign: %w", errSignature)
	}
	signed := append(head, "gpgsig "...)
	signed = append(signed, bytes.ReplaceAll(armored, []byte("\n"), []byte("\n "))...)
	return append(append(signed, "\n\n"...), message...), nil
}

// header writes the lines before the message.
func (n *NewCommit) header(tree plumbing.Hash) ([]byte, error) {
	head := fmt.Appendf(nil, "tree %s\n", tree)
	if len(n.Parents) > maxParents {
		return nil, limitErrorf("more than %d parents", maxParents)
	}
	for _, parent := range n.Parents {
		hash, err := parseHash(parent)
		if err != nil {
			return nil, fmt.Errorf("parent: %w", err)
		}
		head = fmt.Appendf(head, "parent %s\n", hash)
	}
	author, err := n.Author.line()
	if err != nil {
		return nil, fmt.Errorf("author: %w", err)
	}
	committer, err := n.Committer.line()
	if err != nil {
		return nil, fmt.Errorf("committer: %w", err)
	}
	return fmt.Appendf(head, "author %s\ncommitter %s\n", author, committer), nil
}

// line is the identity as commits have it.
func (i Identity) line() (string, error) {
	name, email := cleanIdentity(i.Name), strings.ReplaceAll(cleanIdentity(i.Email), " ", "")
	switch {
	case name == "":
		return "", fmt.Errorf("%w: it has no name", ErrIdentity)
	case email == "":
		return "", fmt.Errorf("%w: it has no email address", ErrIdentity)
	case max(len(name), len(email)) > maxIdentity:
		return "", fmt.Errorf("%w: name or email address is longer than %d bytes", ErrIdentity, maxIdentity)
	case i.When.Unix() < 0:
		return "", fmt.Errorf("%w: it has no time", ErrIdentity)
	}
	return fmt.Sprintf("%s <%s> %d %s", name, email, i.When.Unix(), i.When.Format("-0700")), nil
}

// cleanIdentity leaves out what would end a name or an address, and what Git itself takes away from their ends.
func cleanIdentity(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '<' || r == '>':
			return -1
		case unicode.IsControl(r) || r == '\u2028' || r == '\u2029':
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
	return strings.Trim(strings.Join(strings.Fields(text), " "), ` .,:;"'\`)
}

// cleanMessage has nothing in it that ends a message for some reader or that a terminal obeys.
func cleanMessage(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\r\n", "\n")
	text = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
	return cmp.Or(strings.TrimSpace(text), "(no message)") + "\n"
}
