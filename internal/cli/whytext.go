package cli

import (
	"cmp"
	"fmt"
	"strings"

	"sluice.dev/sluice/internal/printable"
)

// maxFew is how many of a kind are named, and maxLeftOut how many releases of those that a rule left out.
const maxFew, maxLeftOut = 5, 10

// print writes the explanation as text.
func (e explanation) print(t table) error {
	rows := [][]string{{"runs", "nothing"}}
	if e.Runs != nil {
		rows[0] = []string{"runs", cmp.Or(e.Runs.Version, "-"), e.Runs.text()}
	}
	rows = append(rows, []string{"wants", cmp.Or(e.Wants.Version, "-"), e.Wants.text(e.Runs)})
	if e.Waits != nil {
		rows = append(rows, []string{"waits", e.Waits.Reason, e.Waits.Message})
	}
	if e.Looks.Catalog != "" {
		rows = append(rows, []string{"looks", string(e.Looks.Catalog), e.Looks.text()})
	}
	// What is in the way is the answer, and stands there whole.
	head := t
	head.wide = true
	if err := head.rows(rows); err != nil {
		return err
	}
	if err := e.printRules(t); err != nil {
		return err
	}
	e.About.print(t)
	if len(e.Notes) > 0 {
		fmt.Fprintln(t.out)
	}
	for _, note := range e.Notes {
		t.line("", note)
	}
	return nil
}

// line writes a sentence.
func (t table) line(indent, text string) {
	fmt.Fprintln(t.out, indent+printable.Line(text, maxProblem))
}

func (r *chosenRelease) text() string {
	text := r.Template
	if r.SelectedBy != "" {
		text += ", by " + r.SelectedBy
	}
	return text
}

func (w *wanting) text(runs *chosenRelease) string {
	var parts []string
	if w.Template != "" && (w.Changed || w.Hold != nil) {
		parts = append(parts, w.chosenRelease.text())
	}
	switch {
	case w.Hold != nil:
		parts = append(parts, "held by "+w.Hold.String())
	case w.Template == "":
		parts = append(parts, "not known")
	case !w.Changed:
		parts = append(parts, "nothing to do")
	case runs == nil:
		parts = append(parts, "to be installed")
	default:
		parts = append(parts, "in the place of "+cmp.Or(runs.Version, runs.Template))
	}
	return strings.Join(parts, "; ")
}

func (l looking) text() string {
	text := "catalogue"
	if l.Namespace != "" {
		text += ", namespace " + l.Namespace
	}
	if l.Why != "" {
		text += " (" + l.Why + ")"
	}
	return text
}

// printRules writes who was left out by which rule, and then the rules that left out nobody.
func (e explanation) printRules(t table) error {
	if len(e.Rules) == 0 {
		return nil
	}
	fmt.Fprintln(t.out)
	rows, idle := [][]string{{"RULE", "LEFT", "LEFT OUT"}}, []string{}
	for _, rule := range e.Rules {
		if len(rule.LeftOut) == 0 && rule.Rule != "catalog" && rule.Left > 0 {
			idle = append(idle, rule.Rule)
			continue
		}
		rows = append(rows, rule.rows(t.wide)...)
	}
	if err := t.rows(rows); err != nil {
		return err
	}
	if len(idle) > 0 {
		t.line("", strings.Join(idle, ", ")+": none left out")
	}
	return nil
}

func (r ruling) rows(wide bool) [][]string {
	few := maxLeftOut
	if wide {
		few = len(r.LeftOut)
	}
	var rows [][]string
	for _, one := range r.LeftOut[:min(len(r.LeftOut), few)] {
		rows = append(rows, []string{"", "", strings.TrimSpace(one.Version+" "+one.Template) + ": " + strings.TrimPrefix(one.Why, "is ")})
	}
	if more := len(r.LeftOut) - few; more > 0 {
		rows = append(rows, []string{"", "", fmt.Sprintf("and %d more, with -o wide", more)})
	}
	if len(rows) == 0 {
		rows = [][]string{{"", "", ""}}
	}
	rows[0][0], rows[0][1] = r.Rule, fmt.Sprintf("%4d", r.Left)
	return rows
}

// print writes why it is the version that was asked about, or why not.
func (a *aboutVersion) print(t table) {
	if a == nil {
		return
	}
	fmt.Fprintln(t.out)
	switch {
	case a.Chosen:
		t.line("", fmt.Sprintf("It is %s: %s.", a.Version, a.Why))
		return
	case a.Rule != "":
		t.line("", fmt.Sprintf("Not %s, by rule %q: %s.", a.Version, a.Rule, a.Why))
	default:
		t.line("", fmt.Sprintf("Not %s: %s.", a.Version, a.Why))
	}
	if len(a.Near) > 0 {
		t.line("", "Near it: "+list(a.Near))
	}
	switch {
	case len(a.Edits) > 0:
		t.line("", "Leads to it (tried on the catalogue as it is):")
		for _, edit := range a.Edits {
			t.line("  ", edit.String())
		}
	case a.Obstacle != nil:
		t.line("", "No edit of the installation leads to it: "+a.Obstacle.String())
	}
}
