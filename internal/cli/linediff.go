package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/plan"
)

const (
	// around is how many lines stay around those that change.
	around = 3
	// maxDiff is how large an object may be to be compared line by line, and maxPairs how many pairs of lines are looked at.
	maxDiff, maxPairs = 1 << 20, 4 << 20
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
	return unified(linesIn(before.String()), linesIn(after.String()))
}

func linesIn(text string) []string { return slices.Collect(strings.Lines(text)) }

// unified is what changes between two texts: lines that go after a minus, those that come after a plus, and a few around them.
func unified(before, after []string) []string {
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

// compareLines are the lines of both, each after a sign: a space for those that are in both, of which there are as many as can be.
func compareLines(before, after []string) []string {
	signed := func(sign string, lines []string) (all []string) {
		for _, line := range lines {
			all = append(all, sign+line)
		}
		return all
	}
	head := 0
	for head < min(len(before), len(after)) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < min(len(before), len(after))-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	same, end := signed(" ", before[:head]), signed(" ", before[len(before)-tail:])
	before, after = before[head:len(before)-tail], after[head:len(after)-tail]
	if len(before)*len(after) > maxPairs {
		return slices.Concat(same, signed("-", before), signed("+", after), end)
	}
	common := commonLines(before, after)
	i, j := 0, 0
	for i < len(before) && j < len(after) {
		switch {
		case before[i] == after[j]:
			same = append(same, " "+before[i])
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			same = append(same, "-"+before[i])
			i++
		default:
			same = append(same, "+"+after[j])
			j++
		}
	}
	return slices.Concat(same, signed("-", before[i:]), signed("+", after[j:]), end)
}

// commonLines says of each pair of places how many lines the rests from there on have in common, in their order.
func commonLines(before, after []string) [][]int32 {
	common := make([][]int32, len(before)+1)
	for i := range common {
		common[i] = make([]int32, len(after)+1)
	}
	for i, was := range slices.Backward(before) {
		for j, is := range slices.Backward(after) {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); was == is {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	return common
}
