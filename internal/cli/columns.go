package cli

import (
	"io"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// gap is how many spaces stand between two columns.
const gap = 3

// columns puts cells below each other. What is written to it are lines, with tabs between their cells; a line may have fewer
// of them than others.
type columns struct {
	out    io.Writer
	text   strings.Builder
	widths []int
}

// Write takes lines in. It never fails.
func (c *columns) Write(text []byte) (int, error) { return c.text.Write(text) }

// Flush writes the lines. What comes after them stands below them.
func (c *columns) Flush() error {
	var lines [][]string
	for line := range strings.Lines(c.text.String()) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		for i, cell := range cells[:len(cells)-1] {
			if i == len(c.widths) {
				c.widths = append(c.widths, 0)
			}
			c.widths[i] = max(c.widths[i], cellsOf(cell))
		}
		lines = append(lines, cells)
	}
	var text strings.Builder
	for _, cells := range lines {
		for i, cell := range cells {
			text.WriteString(cell)
			if i < len(cells)-1 {
				text.WriteString(strings.Repeat(" ", c.widths[i]+gap-cellsOf(cell)))
			}
		}
		text.WriteByte('\n')
	}
	c.text.Reset()
	_, err := io.WriteString(c.out, text.String())
	return err
}

// cellsOf is how many cells of a terminal the text takes: two for a wide character, and none for what is put over one, or
// colours it.
func cellsOf(text string) int {
	cells := 0
	for _, r := range withoutColor(text) {
		switch kind := width.LookupRune(r).Kind(); {
		case unicode.In(r, unicode.Mn, unicode.Me):
		case kind == width.EastAsianWide, kind == width.EastAsianFullwidth:
			cells += 2
		default:
			cells++
		}
	}
	return cells
}
