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
	out  io.Writer
	text strings.Builder
}

// Write takes lines in. It never fails.
func (c *columns) Write(text []byte) (int, error) { return c.text.Write(text) }

// Flush writes the lines.
func (c *columns) Flush() error {
	var lines [][]string
	var widths []int
	for line := range strings.Lines(c.text.String()) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		for i, cell := range cells[:len(cells)-1] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], cellsOf(cell))
		}
		lines = append(lines, cells)
	}
	var text strings.Builder
	for _, cells := range lines {
		for i, cell := range cells {
			text.WriteString(cell)
			if i < len(cells)-1 {
				text.WriteString(strings.Repeat(" ", widths[i]+gap-cellsOf(cell)))
			}
		}
		text.WriteByte('\n')
	}
	_, err := io.WriteString(c.out, text.String())
	return err
}

// cellsOf is how many cells of a terminal the text takes: two for a wide character, and none for what is put over one.
func cellsOf(text string) int {
	cells := 0
	for _, r := range text {
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
