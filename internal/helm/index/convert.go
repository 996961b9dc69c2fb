// Package index reads the index of a Helm repository, as a stream with one chart version in memory at a time, and writes
// what Flux stores of it: JSON, the newest version of a chart first. Beside that it makes a table that tells where in the
// JSON a chart is, so that nobody has to read it all, and which blocks of the original it was made from, so that the next
// index is read only as far as it is new.
// It does not know where an index comes from, nor where it is stored.
package index

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"sluice.dev/sluice/internal/memory"
)

// ErrEmpty says that there is nothing in a document.
var ErrEmpty = fmt.Errorf("%w: empty index.yaml file", ErrIndex)

// Convert reads the document, writes what is stored of it, and returns the table. Previous may be nil; scratch is a
// temporary file whose content is lost. What is taken of memory and of files is drawn from the context.
//
// A document counts as an index exactly where it does so for Helm's library: JSON is read leniently, YAML strictly, and
// versions that do not describe a chart are dropped. Errors that are about the document are ErrIndex.
func Convert(ctx context.Context, document *io.SectionReader, previous *Previous, scratch *os.File, to io.Writer) (table []byte, err error) {
	if document.Size() == 0 {
		return nil, ErrEmpty
	}
	b, head, err := split(ctx, document, previous, scratch)
	if errors.Is(err, errUnusual) {
		b, head, err = unsplit(ctx, document, scratch, err)
	}
	if err != nil {
		return nil, err
	}
	if head.APIVersion == "" {
		return nil, errNoAPIVersion
	}
	return b.write(ctx, head, to)
}

// split reads a document block by block.
func split(ctx context.Context, document *io.SectionReader, previous *Previous, scratch *os.File) (*builder, *file, error) {
	b, err := newBuilder(previous, scratch)
	if err != nil {
		return nil, nil, err
	}
	whole := io.NewSectionReader(document, 0, document.Size())
	if isJSON(document) {
		head, err := readJSON(ctx, whole, b)
		return b, head, err
	}
	text, err := readFrame(ctx, whole, b)
	if err != nil {
		return nil, nil, err
	}
	head := &file{}
	if err := library(ctx, text, head); err != nil {
		return nil, nil, err
	}
	return b, head, nil
}

// isJSON tells whether a document begins as an index that is JSON has to.
func isJSON(document io.ReaderAt) bool {
	for at := int64(0); ; at++ {
		var c [1]byte
		if n, _ := document.ReadAt(c[:], at); n == 0 {
			return false
		}
		switch c[0] {
		case ' ', '\n', '\t', '\r':
		default:
			return c[0] == '{'
		}
	}
}

// unsplit reads a document as a whole, because of what is unusual about it.
func unsplit(ctx context.Context, document *io.SectionReader, scratch *os.File, because error) (*builder, *file, error) {
	if err := memory.Draw(ctx, document.Size()); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", because, err)
	}
	text := make([]byte, document.Size())
	if n, err := document.ReadAt(text, 0); n < len(text) {
		return nil, nil, fmt.Errorf("read the index: %w", err)
	}
	head, err := whole(ctx, text)
	if errors.Is(err, memory.ErrBudget) {
		return nil, nil, fmt.Errorf("%w: %w", because, err)
	}
	if err != nil {
		return nil, nil, err
	}
	b, err := newBuilder(nil, scratch)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(head.Entries)) {
		if err := b.add(ctx, name, head.Entries[name]); err != nil {
			return nil, nil, err
		}
	}
	return b, head, nil
}

// add adds a chart whose versions were read as a whole.
func (b *builder) add(ctx context.Context, name string, versions []*Version) error {
	if err := b.beginChart(ctx, name); err != nil {
		return err
	}
	for _, v := range versions {
		if err := b.version(ctx, v, Hash{}); err != nil {
			return err
		}
	}
	b.endChart()
	return nil
}
