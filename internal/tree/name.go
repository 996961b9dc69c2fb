package tree

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

// Namer makes an ID of what is written to it.
type Namer struct{ hash.Hash }

// NewNamer returns a Namer to which nothing was written.
func NewNamer() Namer { return Namer{sha256.New()} }

// ID names what was written: sha256:<hex>.
func (n Namer) ID() string { return "sha256:" + hex.EncodeToString(n.Sum(nil)) }

// Name is the ID of a folder with the children: it tells whatever differs in their names, in what they are, whether they are
// executable, and in what they hold. It is empty where one of them has no ID.
func Name(children []*Node) string {
	all := NewNamer()
	for _, child := range children {
		if child.ID == "" {
			return ""
		}
		kind := byte('f')
		switch {
		case child.Mode.IsDir():
			kind = 'd'
		case !child.Mode.IsRegular():
			kind = 'l'
		case child.Mode&0o111 != 0:
			kind = 'x'
		}
		text := append(binary.AppendUvarint([]byte{kind}, uint64(len(child.Name))), child.Name...)
		_, _ = all.Write(append(binary.AppendUvarint(text, uint64(len(child.ID))), child.ID...)) // A hash takes everything.
	}
	return all.ID()
}

// Named is a copy of the node in which everything has an ID, and the facts about every folder are known. What has no ID is read;
// what has one is shared.
func (n *Node) Named() (*Node, error) {
	if n.ID != "" {
		return n, nil
	}
	named := *n
	if !n.Mode.IsDir() {
		content, err := n.Source.Open(n)
		if err != nil {
			return nil, fmt.Errorf("open %q: %w", n.Name, err)
		}
		defer func() { _ = content.Close() }() // It was only read.
		namer := NewNamer()
		_, err = io.Copy(namer, content)
		named.ID = namer.ID()
		return &named, err
	}
	children, err := n.List()
	if err != nil {
		return nil, err
	}
	named.Lister, named.Children = nil, make([]*Node, len(children))
	for i, child := range children {
		if named.Children[i], err = child.Named(); err != nil {
			return nil, fmt.Errorf("%q: %w", n.Name, err)
		}
	}
	facts, err := Sum(named.Children)
	named.Known, named.ID = &facts, Name(named.Children)
	return &named, err
}
