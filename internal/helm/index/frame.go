package index

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"sluice.dev/sluice/internal/memory"
)

const (
	// readSize is how much of a document is read at once.
	readSize = 64 << 10
	// maxHead bounds what stands in an index beside its entries.
	maxHead = 1 << 20
)

// frame splits an index in Helm's style into its versions, with one of them in memory:
//
//	apiVersion: v1
//	entries:
//	  name:
//	  - apiVersion: v2
//	    …
//	generated: "2026-01-02T03:04:05Z"
//
// What is not so is errUnusual: only the library can tell then where anything begins.
type frame struct {
	lines *bufio.Reader
	to    *builder
	head  bytes.Buffer
	block bytes.Buffer
	drawn int64 // for the block
	// number is that of the line, and unended says that the last one has no break.
	number  int
	unended bool

	state  place
	keys   map[string]bool // at the top
	chart  bool            // whether one is begun
	charts int             // the indentation of charts, and that of their versions; zero until it is known
	items  int
}

// place is where in the document a line is.
type place int

const (
	atTop place = iota
	inHead
	inEntries
)

// readFrame reads the document into the builder, and returns what stands beside the entries.
func readFrame(ctx context.Context, document io.Reader, to *builder) (head []byte, err error) {
	f := &frame{lines: bufio.NewReaderSize(document, readSize), to: to, keys: map[string]bool{}}
	for {
		line, err := f.line(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = f.take(ctx, line)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", f.number, err)
		}
	}
	if err := f.endChart(ctx); err != nil {
		return nil, fmt.Errorf("line %d: %w", f.number, err)
	}
	return f.head.Bytes(), f.checkHead()
}

// line returns the next line with its break. It is good until the next one is read.
func (f *frame) line(ctx context.Context) ([]byte, error) {
	f.number++
	line, err := f.lines.ReadSlice('\n')
	if err == nil {
		return line, nil
	}
	long := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		if err := memory.Draw(ctx, int64(len(line))); err != nil {
			return nil, fmt.Errorf("a line of more than %d bytes: %w", len(long), err)
		}
		f.drawn += int64(len(line))
		line, err = f.lines.ReadSlice('\n')
		long = append(long, line...)
	}
	if errors.Is(err, io.EOF) && len(long) > 0 {
		f.unended = true
		return append(long, '\n'), nil
	}
	return long, err
}

// take decides what a line is by its indentation.
func (f *frame) take(ctx context.Context, line []byte) error {
	if bytes.IndexByte(line, '\r') >= 0 {
		return errUnusual // It is a line break too.
	}
	in := len(line) - len(bytes.TrimLeft(line, " "))
	switch first := line[in]; {
	case first == '\n' || first == '#':
		return f.aside(ctx, line)
	case first == '\t':
		return errUnusual
	case in == 0:
		return f.top(ctx, line)
	case f.state == inHead:
		return f.addHead(line)
	case f.state != inEntries:
		return errUnusual
	case f.block.Len() > 0 && in > f.items:
		return f.add(ctx, line)
	case first == '-' && f.chart && (f.items == 0 || in == f.items) && in >= f.charts:
		f.items = in
		if err := f.endBlock(ctx); err != nil {
			return err
		}
		return f.add(ctx, line)
	case first != '-' && (f.charts == 0 || in == f.charts):
		f.charts = in
		return f.beginChart(ctx, line[in:])
	}
	return errUnusual
}

// aside takes a line with nothing on it but a comment.
func (f *frame) aside(ctx context.Context, line []byte) error {
	switch {
	case f.block.Len() > 0:
		return f.add(ctx, line)
	case f.state == inHead:
		return f.addHead(line)
	}
	return nil
}

// top takes a line that begins at the left edge: a key of the index.
func (f *frame) top(ctx context.Context, line []byte) error {
	if err := f.endChart(ctx); err != nil {
		return err
	}
	if f.state == atTop && len(f.keys) == 0 && string(line) == "---\n" {
		return nil
	}
	r := &reader{text: line}
	key, err := r.key()
	if err != nil || f.keys[key] {
		return errUnusual
	}
	f.keys[key] = true
	if key != "entries" {
		f.state = inHead
		return f.addHead(line)
	}
	switch string(line[r.pos:]) {
	case "\n":
		f.state = inEntries
	case "{}\n":
		f.state = atTop
	default:
		return errUnusual
	}
	return nil
}

func (f *frame) addHead(line []byte) error {
	if f.head.Len()+len(line) > maxHead {
		return fmt.Errorf("%w: more than %d bytes beside the entries", ErrIndex, maxHead)
	}
	f.head.Write(line)
	return nil
}

// checkHead reads the head as quickly as a block is: who can be sure of that can be sure of where the entries begin.
func (f *frame) checkHead() error {
	text := f.head.Bytes()
	if !usual(text) || f.unended && bytes.IndexByte(text, '|') >= 0 {
		return errUnusual
	}
	r := &reader{text: text}
	r.skipEmpty()
	if r.pos == len(text) {
		return nil
	}
	if r.indent() > 0 {
		return errUnusual
	}
	return r.mapping(0, func(key string, in int) error {
		switch key {
		case "serverInfo", "annotations":
			var pairs map[string]string
			return r.pairs(&pairs, in)
		case "publicKeys":
			var keys []string
			return r.texts(&keys, in)
		}
		var text string
		return r.value(&text, in)
	})
}

// beginChart takes the line with the name of a chart.
func (f *frame) beginChart(ctx context.Context, line []byte) error {
	if err := f.endChart(ctx); err != nil {
		return err
	}
	r := &reader{text: line}
	name, err := r.key()
	if err != nil {
		return err
	}
	switch string(line[r.pos:]) {
	case "\n":
	case "[]\n":
		f.items = -1 // Nothing may follow.
	default:
		return errUnusual
	}
	f.chart = true
	return f.to.beginChart(ctx, name)
}

func (f *frame) endChart(ctx context.Context) error {
	if err := f.endBlock(ctx); err != nil || !f.chart {
		return err
	}
	f.chart, f.items = false, 0
	f.to.endChart()
	return nil
}

// add adds a line to the version that is being read.
func (f *frame) add(ctx context.Context, line []byte) error {
	if grown := int64(f.block.Len() + len(line)); grown > readSize {
		if err := memory.Draw(ctx, int64(len(line))*3); err != nil { // The buffer doubles, and so do its values.
			return fmt.Errorf("a version of more than %d bytes: %w", grown, err)
		}
		f.drawn += int64(len(line)) * 3
	}
	f.block.Write(line)
	return nil
}

func (f *frame) endBlock(ctx context.Context) error {
	if f.block.Len() == 0 {
		return nil
	}
	text := f.block.Bytes()
	if f.unended {
		text = text[:len(text)-1]
	}
	err := f.to.block(ctx, text, f.items)
	f.block.Reset()
	if f.drawn > 0 {
		f.block = bytes.Buffer{}
		memory.Return(ctx, f.drawn)
		f.drawn = 0
	}
	return err
}
