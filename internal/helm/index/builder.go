package index

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/revision"
)

const (
	// versionWeight is how many bytes of memory are taken for each version until the index is written, and drawStep for
	// how many versions they are drawn at once.
	versionWeight, drawStep = 160, 4096
	// chartWeight is how many are taken for each chart, and nameWeight for each byte of its name; measured, and rounded up.
	chartWeight, nameWeight = 512, 5
	// The indentation of a version, as JSON of two spaces a level has it.
	inVersion = "      "
)

// Previous is an index that was converted before. What the new one has of it is copied from there.
type Previous struct {
	Artifact, Table io.ReaderAt
}

// builder collects the versions of an index: those that are known by where the previous artifact has them, the others as
// JSON in a temporary file.
type builder struct {
	previous *Previous
	before   []chartAt
	scratch  *os.File
	out      *bufio.Writer
	json     bytes.Buffer // of one version
	encoder  *json.Encoder
	buffer   []byte // for copies
	written  int64  // to the scratch file

	plans    map[string]*plan
	versions int

	name  string
	now   *plan
	known map[Hash]blockAt
}

// plan is what a chart's list of versions is going to be.
type plan struct {
	spans  []span
	source Hash
	was    *chartAt // in the previous index
	same   bool     // says that the list is that of the previous artifact
}

// span is a version that is there already.
type span struct {
	blockAt

	copied bool // from the previous artifact, else from the scratch file
}

// newBuilder returns a builder. A table that is not usable is as good as no previous index.
func newBuilder(previous *Previous, scratch *os.File) (*builder, error) {
	if _, err := scratch.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("rewind the scratch file: %w", err)
	}
	b := &builder{previous: previous, scratch: scratch, out: bufio.NewWriterSize(scratch, readSize), plans: map[string]*plan{}}
	b.encoder = json.NewEncoder(&b.json)
	b.encoder.SetIndent(inVersion, "  ")
	if previous != nil {
		b.before, _ = readTable(previous.Table)
	}
	return b, nil
}

// errTwice says that an index has a chart of the same name before.
var errTwice = fmt.Errorf("%w: a chart is there twice", ErrIndex)

func (b *builder) beginChart(ctx context.Context, name string) error {
	if b.plans[name] != nil {
		return fmt.Errorf("%w: %q", errTwice, name)
	}
	if err := memory.Draw(ctx, chartWeight+nameWeight*int64(len(name))); err != nil {
		return fmt.Errorf("an index of more than %d charts: %w", len(b.plans), err)
	}
	b.name, b.now, b.known = name, &plan{}, nil
	b.plans[name] = b.now
	at, err := find(b.before, name)
	if err != nil {
		return nil //nolint:nilerr // A chart that was not there before.
	}
	text := make([]byte, at.size)
	if n, err := b.previous.Table.ReadAt(text, at.blocks); n < len(text) {
		return fmt.Errorf("read the table of the previous index: %w", err)
	}
	blocks, err := readBlocks(text)
	if err != nil {
		return nil //nolint:nilerr // Everything is read anew.
	}
	b.now.was, b.known = &at, make(map[Hash]blockAt, len(blocks))
	for _, block := range blocks {
		b.known[block.hash] = block
	}
	return nil
}

// block adds a version as YAML, whose dash stands at the indentation.
func (b *builder) block(ctx context.Context, text []byte, indent int) error {
	hash := hashOf(text)
	if at, ok := b.known[hash]; ok {
		return b.keep(ctx, span{blockAt: at, copied: true})
	}
	v, err := readBlock(text, indent)
	if errors.Is(err, errUnusual) {
		v, err = b.unusual(ctx, text)
	}
	if err != nil {
		return err
	}
	return b.version(ctx, v, hash)
}

// unusual has the library read a version. Where it stumbles over the syntax, the document is not what it looks like.
func (b *builder) unusual(ctx context.Context, text []byte) (*Version, error) {
	for _, lineBreak := range []string{"\r", "\u0085", "\u2028", "\u2029"} {
		if bytes.Contains(text, []byte(lineBreak)) {
			return nil, errUnusual
		}
	}
	versions, err := libraryBlock(ctx, text)
	switch {
	case err == nil && len(versions) == 1:
		return versions[0], nil
	case err == nil || syntax(err):
		return nil, errUnusual
	}
	return nil, b.explain(err)
}

// explain says which version an error is about.
func (b *builder) explain(err error) error {
	return fmt.Errorf("version %d of chart %q: %w", len(b.now.spans)+1, b.name, err)
}

// version adds a version that was read.
func (b *builder) version(ctx context.Context, v *Version, hash Hash) error {
	if !admit(v) {
		return b.keep(ctx, span{blockAt: blockAt{hash: hash}})
	}
	b.json.Reset()
	if err := b.encoder.Encode(v); err != nil {
		return b.explain(fmt.Errorf("%w: %w", ErrIndex, err))
	}
	text := bytes.TrimSuffix(b.json.Bytes(), []byte("\n"))
	if err := memory.DrawFile(ctx, int64(len(text))); err != nil {
		return err
	}
	if _, err := b.out.Write(text); err != nil {
		return fmt.Errorf("write aside: %w", err)
	}
	at := blockAt{hash: hash, offset: b.written, length: int64(len(text)), version: v.Version}
	b.written += at.length
	return b.keep(ctx, span{blockAt: at})
}

func (b *builder) keep(ctx context.Context, s span) error {
	if b.versions%drawStep == 0 {
		if err := memory.Draw(ctx, versionWeight*drawStep); err != nil {
			return fmt.Errorf("an index of more than %d versions: %w", b.versions, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	b.versions++
	b.now.spans = append(b.now.spans, s)
	return nil
}

// endChart decides what becomes of the chart that was begun.
func (b *builder) endChart() {
	sum := sha256.New()
	for _, s := range b.now.spans {
		if s.hash == (Hash{}) {
			b.order()
			return
		}
		sum.Write(s.hash[:]) // A hash never fails to write.
	}
	copy(b.now.source[:], sum.Sum(nil))
	if b.now.was != nil && b.now.was.source == b.now.source {
		b.now.same, b.now.spans = true, nil
		return
	}
	b.order()
}

// order puts the chart's versions newest first. What was dropped comes last.
func (b *builder) order() {
	type keyed struct {
		span
		key revision.Version
	}
	all := make([]keyed, 0, len(b.now.spans))
	for _, s := range b.now.spans {
		key, _ := revision.ParseLoose(s.version) // Others were dropped.
		all = append(all, keyed{s, key})
	}
	slices.SortStableFunc(all, func(x, y keyed) int {
		if x.length == 0 || y.length == 0 {
			return int(min(y.length, 1) - min(x.length, 1))
		}
		return y.key.Compare(x.key)
	})
	for i := range all {
		b.now.spans[i] = all[i].span
	}
}
