package git

import (
	"bytes"
	"context"
	"crypto"
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	githash "github.com/go-git/go-git/v5/plumbing/hash"
)

// message is the commands, and the pack behind them unless refs are removed alone.
func (p *push) message(ctx context.Context, open []*command, capabilities []string) (message, error) {
	var text []byte
	var tips []plumbing.Hash
	for i, c := range open {
		line := orZero(c.Old) + " " + orZero(c.New) + " " + c.Ref
		if i == 0 {
			line += "\x00" + strings.Join(capabilities, " ")
		}
		text = appendLine(text, "%s", line)
		if c.New != "" {
			tips = append(tips, plumbing.NewHash(c.New))
		}
	}
	text = appendFlush(text)
	if len(tips) == 0 {
		return plain(text), nil
	}
	out := &outgoing{commands: text}
	if p.Objects != nil {
		var err error
		if out.content, out.objects, err = p.Objects.choose(ctx, tips); err != nil {
			return message{}, err
		}
	}
	return message{size: out.size(), open: out.open}, nil
}

func orZero(id string) string {
	if id == "" {
		return plumbing.ZeroHash.String()
	}
	return id
}

// choose are the new objects that the tips lead to, and where these lie. More may be added meanwhile.
func (o *Objects) choose(ctx context.Context, tips []plumbing.Hash) (io.ReaderAt, []packed, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var chosen, unread []packed
	seen := make([]bool, len(o.fresh.objects))
	visit := func(hash plumbing.Hash) {
		if place, ok := o.places[hash]; ok && !seen[place] {
			seen[place] = true
			chosen, unread = append(chosen, o.fresh.objects[place]), append(unread, o.fresh.objects[place])
		}
	}
	for _, tip := range tips {
		visit(tip)
	}
	for len(unread) > 0 {
		next := unread[len(unread)-1]
		unread = unread[:len(unread)-1]
		if err := o.eachOf(ctx, next, visit); err != nil {
			return nil, nil, err
		}
	}
	return o.fresh.spool.snapshot(), chosen, nil
}

// eachOf visits what an object names.
func (o *Objects) eachOf(ctx context.Context, object packed, visit func(plumbing.Hash)) error {
	if object.kind == plumbing.BlobObject {
		return nil
	}
	defer o.forget(ctx)
	content, err := o.read(ctx, object.hash, object.kind)
	if err != nil {
		return err
	}
	if object.kind == plumbing.TreeObject {
		return parseTree(content, func(entry treeEntry) error {
			visit(entry.hash)
			return nil
		})
	}
	header, err := parseCommit(string(content))
	if err != nil {
		return err
	}
	visit(header.tree)
	for _, parent := range header.parents {
		visit(parent)
	}
	return nil
}

// snapshot reads what is there now, whatever is added meanwhile.
func (s *spool) snapshot() io.ReaderAt {
	if s.file != nil {
		return s.file
	}
	return bytes.NewReader(s.memory)
}

// outgoing is a push on the wire: commands, and a pack of objects that are no deltas; see gitformat-pack(5).
type outgoing struct {
	commands []byte
	content  io.ReaderAt
	objects  []packed
}

func (o *outgoing) size() int64 {
	size := int64(len(o.commands) + packHeader + packTrailer)
	for i := range o.objects {
		size += int64(len(entryHeader(&o.objects[i]))) + o.objects[i].length
	}
	return size
}

func (o *outgoing) open() io.Reader {
	head := append([]byte("PACK"), 0, 0, 0, 2)
	head = binary.BigEndian.AppendUint32(head, uint32(len(o.objects))) //nolint:gosec // The number of objects is limited.
	body := &outgoingPack{outgoing: o, sum: githash.New(crypto.SHA1), part: bytes.NewReader(head)}
	return io.MultiReader(bytes.NewReader(o.commands), body)
}

// outgoingPack writes one entry after the other, and the checksum behind them.
type outgoingPack struct {
	*outgoing

	sum  hash.Hash
	part io.Reader // that is being read
	sent int       // objects whose entries have begun
	done bool
}

// Read implements io.Reader.
func (o *outgoingPack) Read(p []byte) (int, error) {
	for {
		n, err := o.part.Read(p)
		if !o.done {
			_, _ = o.sum.Write(p[:n]) // A hash never fails to write.
		}
		switch {
		case n > 0 && (err == nil || errors.Is(err, io.EOF)):
			return n, nil
		case !errors.Is(err, io.EOF) || o.done:
			return n, err
		case o.sent == len(o.objects):
			o.part, o.done = bytes.NewReader(o.sum.Sum(nil)), true
		default:
			object := &o.objects[o.sent]
			o.sent++
			o.part = io.MultiReader(bytes.NewReader(entryHeader(object)), io.NewSectionReader(o.content, object.data, object.length))
		}
	}
}

// entryHeader is what readEntryHeader reads.
func entryHeader(object *packed) []byte {
	size := object.size
	b := byte(object.kind)<<4 | byte(size&15) //nolint:gosec // There are seven kinds.
	size >>= 4
	var header []byte
	for size > 0 {
		header = append(header, b|0x80)
		b = byte(size & 0x7f)
		size >>= 7
	}
	return append(header, b)
}
