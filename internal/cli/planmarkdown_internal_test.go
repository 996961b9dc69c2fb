package cli

import (
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/plan"
)

// TestACommentCallsNobody: text from the cluster ends no block of code, however it is made, and a comment is no longer than forges take.
func TestACommentCallsNobody(t *testing.T) {
	t.Parallel()
	const hostile = "` ``` @everyone <img src=x> [a](javascript:b)\n```\n# title"
	told := planned{
		Object: ref{"ModuleInstallation", "n", "`@n"}, To: chosenRelease{Version: "2.0.0"}, Held: &reasoned{"Held", hostile},
		Objects:  []plan.Object{{Action: engine.ActionKeep, Kind: "ConfigMap", Name: hostile, Reason: hostile, Blocked: hostile}},
		Blockers: []plan.Blocker{{Reason: "R", Message: hostile}},
	}
	text := told.markdown(table{}, "fields")
	_, inside, _ := strings.Cut(text, "````diff\n")
	inside, after, closed := strings.Cut(inside, "\n````\n")
	if !closed || strings.Contains(after, "@") || strings.Count(inside, "\n") != 1 {
		t.Errorf("the block ends elsewhere: %s", text)
	}
	for line := range strings.Lines(text) {
		if bare := withoutCode(t, strings.TrimSuffix(line, "\n")); !strings.Contains(inside, strings.TrimSpace(line)) && strings.ContainsAny(bare, "@<[") && !strings.Contains(line, "details>") {
			t.Errorf("%q stands outside of code in %s", bare, line)
		}
	}
	for i := range 5000 {
		told.Objects = append(told.Objects, plan.Object{Action: engine.ActionCreate, Kind: "ConfigMap", Name: fmt.Sprint("name-", i)})
	}
	if text = told.markdown(table{}, "fields"); len(text) > 65536 || !strings.Contains(text, "more lines are left out") || !strings.HasPrefix(text, "### Plan: ``") {
		t.Errorf("it has %d bytes: %s", len(text), text[:200])
	}
}

// withoutCode is a line without its code spans, as CommonMark takes them: each ends with as many backticks as it begins with.
func withoutCode(t *testing.T, line string) string {
	t.Helper()
	var bare strings.Builder
	for {
		start := strings.IndexByte(line, '`')
		if start < 0 {
			return bare.String() + line
		}
		bare.WriteString(line[:start])
		rest := strings.TrimLeft(line[start:], "`")
		ticks := len(line) - start - len(rest)
		end := -1
		for at, run := 0, 0; at <= len(rest) && end < 0; at++ {
			if at < len(rest) && rest[at] == '`' {
				run++
				continue
			}
			if run == ticks {
				end = at
			}
			run = 0
		}
		if end < 0 {
			return bare.String() + line[start:]
		}
		line = rest[end:]
	}
}

// TestChangedLines: as few as there are, with those around them, and all of a text that is too long to be compared.
func TestChangedLines(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ before, after, want string }{
		"Same":    {"a\nb\n", "a\nb\n", ""},
		"New":     {"", "a\nb\n", "@@ -1 +1 @@|+a|+b"},
		"Changed": {"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\n5\nsix\n7\n8\n9\n", "@@ -3 +3 @@| 3| 4| 5|-6|+six| 7| 8| 9"},
		"Moved":   {"a\nb\nc\n", "b\nc\na\n", "@@ -1 +1 @@|-a| b| c|+a"},
		"Two":     {"x\n1\n2\n3\n4\n5\n6\n7\ny\n", "1\n2\n3\n4\n5\n6\n7\nz\n", "@@ -1 +1 @@|-x| 1| 2| 3|@@ -6 +5 @@| 5| 6| 7|-y|+z"},
	} {
		if got := strings.Join(unified(tc.before, tc.after), "|"); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
	many := func(word string) (lines []string) {
		for i := range 3000 {
			lines = append(lines, fmt.Sprint(word, i, "\n"))
		}
		return lines
	}
	if got := unified(strings.Join(many("a"), ""), strings.Join(many("b"), "")); len(got) != 6001 {
		t.Errorf("%d lines are shown", len(got))
	}
}
