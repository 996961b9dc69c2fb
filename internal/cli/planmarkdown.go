package cli

import (
	"fmt"
	"strings"
)

// markdown is the output of a plan for a comment on a change, as forges have them.
const markdown = "markdown"

// maxComment is how much of a plan's objects is shown in a comment: GitHub takes 65,536 characters.
const maxComment = 48 << 10

// markdown is the plan in Markdown. What comes from the cluster stands within code, where it links to nothing, and calls nobody.
func (p planned) markdown(t table, detail string) string {
	var text, objects strings.Builder
	text.WriteString("### Plan: " + code(planLine(0, p.head(t)...)) + "\n\n")
	p.sums(func(_ int, parts ...string) { text.WriteString("- " + code(planLine(0, parts...)) + "\n") })
	left := 0
	p.objects(t, detail, 0, func(indent int, parts ...string) {
		if line := planLine(indent, parts...) + "\n"; left == 0 && objects.Len()+len(line) <= maxComment {
			objects.WriteString(line)
		} else {
			left++
		}
	})
	if objects.Len() == 0 {
		return text.String()
	}
	fence := strings.Repeat("`", max(3, longestRun(objects.String())+1))
	fmt.Fprintf(&text, "\n<details><summary>%d objects</summary>\n\n%sdiff\n%s%s\n\n</details>\n", len(p.Objects), fence, objects.String(), fence)
	if left > 0 {
		fmt.Fprintf(&text, "\n%d more lines are left out.\n", left)
	}
	return text.String()
}

// code is text that Markdown shows as it is.
func code(text string) string {
	fence := strings.Repeat("`", longestRun(text)+1)
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

// longestRun is how many backticks stand together at most.
func longestRun(text string) int {
	longest, run := 0, 0
	for _, r := range text {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}
