package index

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sort"
)

// ErrTable says that a table is not one, or not of this version of the program.
var ErrTable = errors.New("not a usable table of an index")

// ErrNoChart says that an index has no chart of the name.
var ErrNoChart = errors.New("no chart of that name in the index")

// Hash names the entries of a chart, or a block of an index: SHA-256, shortened.
type Hash [16]byte

func hashOf(text []byte) (h Hash) {
	sum := sha256.Sum256(text)
	copy(h[:], sum[:])
	return h
}

// A table is, in big endian:
//
//	magic, the number of charts, the length of what is said about the charts
//	for each chart, by name: its name, where its list of versions is in the artifact and how long it is, the hash of that,
//	  the hash of what it was made from, the length of what is said about its blocks
//	for each chart, what is said about its blocks: hash, place in the chart's list, length (zero when dropped), version
const tableMagic = "slxidx1\n"

// maxHeaders bounds the part of a table that is read to find a chart.
const maxHeaders = 64 << 20

// chartAt is what a table says about a chart.
type chartAt struct {
	name    string
	offset  int64 // of the list in the artifact
	length  int64
	entries Hash
	source  Hash  // of the blocks that the list was made from; zero where these are not known
	blocks  int64 // where in the table they are described
	size    int64
}

// blockAt is what a table says about a block.
type blockAt struct {
	hash    Hash
	offset  int64 // in the chart's list
	length  int64
	version string
}

// tableWriter makes a table. Charts come in the order of their names.
type tableWriter struct {
	headers, blocks []byte
	charts          uint64
}

func (t *tableWriter) add(c chartAt, blocks []byte) {
	h := binary.AppendUvarint(t.headers, uint64(len(c.name)))
	h = append(h, c.name...)
	h = appendNumber(appendNumber(h, c.offset), c.length)
	h = append(append(h, c.entries[:]...), c.source[:]...)
	t.headers = binary.AppendUvarint(h, uint64(len(blocks)))
	t.blocks = append(t.blocks, blocks...)
	t.charts++
}

func (t *tableWriter) bytes() []byte {
	text := make([]byte, 0, len(tableMagic)+16+len(t.headers)+len(t.blocks))
	text = append(text, tableMagic...)
	text = binary.BigEndian.AppendUint64(text, t.charts)
	text = binary.BigEndian.AppendUint64(text, uint64(len(t.headers)))
	return append(append(text, t.headers...), t.blocks...)
}

// appendNumber appends a number that is not negative.
func appendNumber(to []byte, number int64) []byte {
	return binary.AppendUvarint(to, uint64(number)) //nolint:gosec // Places and lengths are never negative.
}

func appendBlock(to []byte, b blockAt) []byte {
	to = append(to, b.hash[:]...)
	to = appendNumber(appendNumber(to, b.offset), b.length)
	to = binary.AppendUvarint(to, uint64(len(b.version)))
	return append(to, b.version...)
}

// readTable reads what a table says about charts, in the order of their names.
func readTable(table io.ReaderAt) ([]chartAt, error) {
	var begin [len(tableMagic) + 16]byte
	if _, err := table.ReadAt(begin[:], 0); err != nil || string(begin[:len(tableMagic)]) != tableMagic {
		return nil, ErrTable
	}
	charts := binary.BigEndian.Uint64(begin[len(tableMagic):])
	length := binary.BigEndian.Uint64(begin[len(tableMagic)+8:])
	if length > maxHeaders || charts > length {
		return nil, fmt.Errorf("%w: %d charts in %d bytes", ErrTable, charts, length)
	}
	c := cursor{text: make([]byte, length)}
	if n, err := table.ReadAt(c.text, int64(len(begin))); n < len(c.text) {
		return nil, fmt.Errorf("%w: %w", ErrTable, err)
	}
	all := make([]chartAt, 0, charts)
	blocks := int64(len(begin)) + int64(length)
	for range charts {
		chart := chartAt{name: string(c.take(c.number())), offset: c.number(), length: c.number()}
		copy(chart.entries[:], c.take(int64(len(chart.entries))))
		copy(chart.source[:], c.take(int64(len(chart.source))))
		chart.blocks, chart.size = blocks, c.number()
		blocks += chart.size
		all = append(all, chart)
	}
	if c.bad || !sort.SliceIsSorted(all, func(i, j int) bool { return all[i].name < all[j].name }) {
		return nil, ErrTable
	}
	return all, nil
}

// find finds a chart in a table.
func find(charts []chartAt, name string) (chartAt, error) {
	i := sort.Search(len(charts), func(i int) bool { return charts[i].name >= name })
	if i == len(charts) || charts[i].name != name {
		return chartAt{}, fmt.Errorf("%w: %q", ErrNoChart, name)
	}
	return charts[i], nil
}

// readBlocks reads what is said about the blocks of a chart.
func readBlocks(text []byte) ([]blockAt, error) {
	c := cursor{text: text}
	var all []blockAt
	for len(c.text) > 0 && !c.bad {
		var b blockAt
		copy(b.hash[:], c.take(int64(len(b.hash))))
		b.offset, b.length = c.number(), c.number()
		b.version = string(c.take(c.number()))
		all = append(all, b)
	}
	if c.bad {
		return nil, ErrTable
	}
	return all, nil
}

// cursor reads numbers and texts. Once it came upon the end, all it reads is empty.
type cursor struct {
	text []byte
	bad  bool
}

func (c *cursor) number() int64 {
	number, n := binary.Uvarint(c.text)
	if n <= 0 || number > 1<<62 {
		c.bad, c.text = true, nil
		return 0
	}
	c.text = c.text[n:]
	return int64(number)
}

func (c *cursor) take(n int64) []byte {
	if n < 0 || n > int64(len(c.text)) {
		c.bad, c.text = true, nil
		return nil
	}
	taken := c.text[:n]
	c.text = c.text[n:]
	return taken
}
