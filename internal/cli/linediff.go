package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/utils/diff"
	"github.com/sergi/go-diff/diffmatchpatch"

	"sluice.dev/sluice/internal/plan"
)

const (
	// around is how many lines stay around those that change.
	around = 3
	// maxDiff is how large an object may be to be compared line by line, and longestDiff how long the fewest changes are looked for.
	maxDiff, longestDiff = 1 << 20, 2 * time.Second
)

// yamlChanges are the lines of an object's YAML that change, as diff -u has them.
func yamlChanges(object plan.Object) []string {
	var before, after bytes.Buffer
	if object.After == nil {
		return nil
	}
	if object.Before != nil {
		if err := manifestPrinter().PrintObj(object.Before, &before); err != nil {
			return []string{"cannot be shown: " + err.Error()}
		}
	}
	if err := manifestPrinter().PrintObj(object.After, &after); err != nil {
		return []string{"cannot be shown: " + err.Error()}
	}
	if size := max(before.Len(), after.Len()); size > maxDiff {
		return []string{fmt.Sprintf("too large to be shown: it has %d bytes", size)}
	}
	return unified(before.String(), after.String())
}

// unified is what changes between two texts: lines that go after a minus, those that come after a plus, and a few around them.
func unified(before, after string) []string {
	var all []string
	for _, one := range compareLines(before, after) {
		all = append(all, strings.TrimSuffix(one, "\n"))
	}
	changes := func(line string) bool { return line[0] != ' ' }
	var shown []string
	was, is, skipped := 1, 1, true
	for i, line := range all {
		if slices.ContainsFunc(all[max(0, i-around):min(len(all), i+around+1)], changes) {
			if skipped {
				shown = append(shown, fmt.Sprintf("@@ -%d +%d @@", was, is))
			}
			shown, skipped = append(shown, line), false
		} else {
			skipped = true
		}
		if line[0] != '+' {
			was++
		}
		if line[0] != '-' {
			is++
		}
	}
	return shown
}

// compareLines are the lines of both, each after a sign: a space for those that are in both.
func compareLines(before, after string) (all []string) {
	signs := map[diffmatchpatch.Operation]string{diffmatchpatch.DiffEqual: " ", diffmatchpatch.DiffDelete: "-", diffmatchpatch.DiffInsert: "+"}
	for _, part := range diff.DoWithTimeout(before, after, longestDiff) {
		for line := range strings.Lines(part.Text) {
			all = append(all, signs[part.Type]+line)
		}
	}
	return all
}
