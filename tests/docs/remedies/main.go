// Command remedies writes what the pages of the kinds say of each reason, as internal/view takes it in: a line for each
// row, with the kind, the conditions, the disposition, the reason, the cause and the remedy between tabs.
package main

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"sluice.dev/sluice/tests/docs"
)

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write() error {
	pages, err := docs.Pages(".")
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	for _, page := range pages {
		title, _, _ := strings.Cut(strings.TrimPrefix(page.Prose(), "# "), "\n")
		for _, table := range page.Tables() {
			if slices.Contains(table.Header, "Reason") && slices.Contains(table.Header, "Remedy") {
				rows(out, title, table)
			}
		}
	}
	return out.Flush()
}

// link is a link in Markdown, of which people at a terminal read the text.
var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

func rows(out *bufio.Writer, kind string, table docs.Table) {
	for _, row := range table.Rows {
		line := []string{kind}
		for _, header := range []string{"On", "Disposition", "Reason", "Cause", "Remedy"} {
			cell := ""
			if at := slices.Index(table.Header, header); at >= 0 {
				cell = link.ReplaceAllString(row[at], "$1")
			}
			if header == "Reason" {
				cell = strings.Trim(cell, "`")
			}
			line = append(line, cell)
		}
		fmt.Fprintln(out, strings.Join(line, "\t"))
	}
}
