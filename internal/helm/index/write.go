package index

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
)

// writer writes an index as Flux stores it: JSON, indented by two spaces.
type writer struct {
	ctx context.Context //nolint:containedctx // It lives for one call.
	to  *bufio.Writer
	at  int64
	sum hash.Hash // of the list that is being written; nil outside of one
	err error
}

func (w *writer) text(text string) {
	n, err := w.to.WriteString(text)
	w.count([]byte(text[:n]), err)
}

func (w *writer) count(written []byte, err error) {
	w.at += int64(len(written))
	if w.sum != nil {
		w.sum.Write(written) // A hash never fails to write.
	}
	if w.err == nil {
		w.err = err
	}
}

// Write implements io.Writer.
func (w *writer) Write(text []byte) (int, error) {
	n, err := w.to.Write(text)
	w.count(text[:n], err)
	return n, err
}

// field writes a field of the index with its value.
func (w *writer) field(name string, value any) {
	text, err := json.MarshalIndent(value, "  ", "  ")
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("%w: %s: %w", ErrIndex, name, err)
	}
	w.text("  \"" + name + "\": " + string(text))
}

// write writes the index with the head's fields, and returns the table of it.
func (b *builder) write(ctx context.Context, head *file, to io.Writer) (table []byte, err error) {
	if err := b.out.Flush(); err != nil {
		return nil, fmt.Errorf("write aside: %w", err)
	}
	w := &writer{ctx: ctx, to: bufio.NewWriterSize(to, readSize)}
	w.text("{\n")
	if len(head.ServerInfo) > 0 {
		w.field("serverInfo", head.ServerInfo)
		w.text(",\n")
	}
	w.field("apiVersion", head.APIVersion)
	w.text(",\n")
	w.field("generated", head.Generated)
	w.text(",\n")
	table = b.entries(w)
	if len(head.PublicKeys) > 0 {
		w.text(",\n")
		w.field("publicKeys", head.PublicKeys)
	}
	if len(head.Annotations) > 0 {
		w.text(",\n")
		w.field("annotations", head.Annotations)
	}
	w.text("\n}")
	if w.err == nil {
		w.err = w.to.Flush()
	}
	return table, w.err
}

func (b *builder) entries(w *writer) []byte {
	w.text("  \"entries\": {")
	var table tableWriter
	separator := "\n"
	for _, name := range slices.Sorted(maps.Keys(b.plans)) {
		w.text(separator + "    ")
		separator = ",\n"
		quoted, _ := json.Marshal(name) // A string has no value that JSON has not.
		w.text(string(quoted) + ": ")
		if w.err == nil {
			w.err = w.ctx.Err()
		}
		b.chart(w, name, &table)
	}
	if len(b.plans) > 0 {
		w.text("\n  ")
	}
	w.text("}")
	if len(table.headers) > maxHeaders && w.err == nil {
		w.err = fmt.Errorf("%w: what a table says about its %d charts takes more than %d bytes", ErrIndex, table.charts, maxHeaders)
	}
	return table.bytes()
}

// chart writes the list of a chart's versions, and what the table says about it.
func (b *builder) chart(w *writer, name string, table *tableWriter) {
	p := b.plans[name]
	at := chartAt{name: name, offset: w.at, source: p.source}
	if p.same {
		b.copy(w, b.previous.Artifact, p.was.offset, p.was.length)
		at.length, at.entries = p.was.length, p.was.entries
		table.add(at, b.blocksOf(w, p.was))
		return
	}
	w.sum = sha256.New()
	w.text("[")
	var blocks []byte
	separator := "\n"
	for _, s := range p.spans {
		described := s.blockAt
		if described.offset = 0; s.length > 0 {
			w.text(separator + inVersion)
			separator = ",\n"
			described.offset = w.at - at.offset
			b.span(w, p, s)
		}
		if s.hash != (Hash{}) {
			blocks = appendBlock(blocks, described)
		}
	}
	if separator != "\n" {
		w.text("\n    ")
	}
	w.text("]")
	at.length = w.at - at.offset
	copy(at.entries[:], w.sum.Sum(nil))
	w.sum = nil
	table.add(at, blocks)
}

// span copies a version that is there already.
func (b *builder) span(w *writer, p *plan, s span) {
	if s.copied {
		b.copy(w, b.previous.Artifact, p.was.offset+s.offset, s.length)
		return
	}
	b.copy(w, b.scratch, s.offset, s.length)
}

func (b *builder) copy(w *writer, from io.ReaderAt, offset, length int64) {
	if w.err != nil {
		return
	}
	if b.buffer == nil {
		b.buffer = make([]byte, readSize)
	}
	n, err := io.CopyBuffer(w, io.NewSectionReader(from, offset, length), b.buffer)
	if err == nil && n < length {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("copy a version: %w", err)
	}
}

// blocksOf is what the previous table says about the blocks of a chart.
func (b *builder) blocksOf(w *writer, was *chartAt) []byte {
	text := make([]byte, was.size)
	if n, err := b.previous.Table.ReadAt(text, was.blocks); n < len(text) && w.err == nil {
		w.err = fmt.Errorf("read the table of the previous index: %w", err)
	}
	return text
}
