// Package docs reads the project's pages for the tests that keep them true.
// It does not know what the pages say, and talks to no cluster.
package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// generated is how the names of pages begin that a program writes from the Go types.
const generated = "reference-"

// Page is one page in Markdown.
type Page struct {
	// Path is relative to the project's root, with slashes.
	Path   string
	blocks []Block
	prose  []string // the lines outside of blocks; those inside are empty
}

// Block is a fenced block.
type Block struct {
	// Info is what stands behind the opening fence, such as "yaml".
	Info string
	// Line is where the text begins, counted from 1.
	Line int
	Text string
}

// Table is a table; cells are as written, without the spaces around them.
type Table struct {
	Header []string
	Rows   [][]string
}

// Link is the target of a link and the line it stands on.
type Link struct {
	Target string
	Line   int
}

// Pages reads the README and every page under docs, except the generated ones.
func Pages(root string) ([]Page, error) {
	disk := os.DirFS(root)
	names := []string{"README.md"}
	err := fs.WalkDir(disk, "docs", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && path.Ext(name) == ".md" && !strings.HasPrefix(entry.Name(), generated) {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list docs: %w", err)
	}
	pages := make([]Page, 0, len(names))
	for _, name := range names {
		text, err := fs.ReadFile(disk, name)
		if err != nil {
			return nil, fmt.Errorf("read page: %w", err)
		}
		page, err := parse(name, string(text))
		if err != nil {
			return nil, err
		}
		pages = append(pages, page)
	}
	return pages, nil
}

// parse tells blocks from prose.
func parse(name, text string) (Page, error) {
	page := Page{Path: name}
	var open *Block
	for i, line := range strings.Split(text, "\n") {
		info, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && open == nil:
			open = &Block{Info: strings.TrimSpace(info), Line: i + 2}
		case fence && info != "":
			return Page{}, fmt.Errorf("%s:%d: a fence opens inside the block of line %d", name, i+1, open.Line)
		case fence:
			page.blocks = append(page.blocks, *open)
			open = nil
		case open != nil:
			open.Text += line + "\n"
		default:
			page.prose = append(page.prose, line)
			continue
		}
		page.prose = append(page.prose, "")
	}
	if open != nil {
		return Page{}, fmt.Errorf("%s:%d: the block is not closed", name, open.Line)
	}
	return page, nil
}

// Blocks returns the blocks whose info is one of those given; all of them without any.
func (p Page) Blocks(infos ...string) []Block {
	var found []Block
	for _, block := range p.blocks {
		if len(infos) == 0 || slices.Contains(infos, block.Info) {
			found = append(found, block)
		}
	}
	return found
}

// Section is the part of the page below the heading of level two, up to the next one.
func (p Page) Section(title string) (Page, error) {
	from := slices.Index(p.prose, "## "+title)
	if from < 0 {
		return Page{}, fmt.Errorf("%s has no section %q", p.Path, title)
	}
	part := Page{Path: p.Path, prose: p.prose[from+1:]}
	if to := slices.IndexFunc(part.prose, func(line string) bool { return strings.HasPrefix(line, "## ") }); to >= 0 {
		part.prose = part.prose[:to]
	}
	for _, block := range p.blocks {
		if block.Line > from && block.Line <= from+1+len(part.prose) {
			part.blocks = append(part.blocks, block)
		}
	}
	return part, nil
}

// Prose is the page's text without its blocks.
func (p Page) Prose() string { return strings.Join(p.prose, "\n") }

var delimiterRow = regexp.MustCompile(`^\|[-:| ]+\|$`)

// Tables returns the tables of the page.
func (p Page) Tables() []Table {
	var tables []Table
	inside := false
	for i, line := range p.prose {
		switch {
		case !strings.HasPrefix(line, "|"):
			inside = false
		case delimiterRow.MatchString(line):
		case inside:
			last := &tables[len(tables)-1]
			last.Rows = append(last.Rows, cells(line))
		case i+1 < len(p.prose) && delimiterRow.MatchString(p.prose[i+1]):
			tables = append(tables, Table{Header: cells(line)})
			inside = true
		}
	}
	return tables
}

// cells splits a row; a bar behind a backslash belongs to its cell.
func cells(row string) []string {
	const bar = "\x00"
	row = strings.ReplaceAll(row, `\|`, bar)
	var found []string
	for cell := range strings.SplitSeq(strings.Trim(row, "|"), "|") {
		found = append(found, strings.ReplaceAll(strings.TrimSpace(cell), bar, "|"))
	}
	return found
}

// Column returns the cells under the header, without their backticks; nil when there is no such column.
func (t Table) Column(header string) []string {
	at := slices.Index(t.Header, header)
	if at < 0 {
		return nil
	}
	column := []string{}
	for _, row := range t.Rows {
		cell := ""
		if at < len(row) {
			cell = strings.Trim(row[at], "`")
		}
		column = append(column, cell)
	}
	return column
}

var (
	codeSpan = regexp.MustCompile("`[^`]*`")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`^#{1,6} +(.+?) *#*$`)
)

// Links returns the links outside of code.
func (p Page) Links() []Link {
	var links []Link
	for i, line := range p.prose {
		for _, match := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, ""), -1) {
			links = append(links, Link{Target: match[1], Line: i + 1})
		}
	}
	return links
}

// Anchors are the names that links to the page's headings use, as GitHub makes them.
func (p Page) Anchors() map[string]bool {
	anchors := map[string]bool{}
	for _, line := range p.prose {
		match := heading.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		name := anchor(match[1])
		for i, base := 1, name; anchors[name]; i++ {
			name = fmt.Sprintf("%s-%d", base, i)
		}
		anchors[name] = true
	}
	return anchors
}

func anchor(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, text)
}
