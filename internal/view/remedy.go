package view

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Remedy is what the page of a kind says of a reason.
type Remedy struct {
	// Cause is what the reason is given for.
	Cause string `json:"cause,omitempty"`
	// Remedy is what helps.
	Remedy string `json:"remedy"`
}

// Titled is a value under its title.
type Titled struct {
	Title string `json:"title"`
	Value string `json:"value"`
}

// Condition is one of an object's, and what helps where it says that something is wrong.
type Condition struct {
	metav1.Condition `json:",inline"`

	Remedies []Remedy `json:"remedies"`
}

//go:embed remedies.tsv
var remediesOfPages string

// advice is one row of a page.
type advice struct {
	on      string
	stalled bool
	Remedy
	// quoted are the parts of the message that the cause quotes, in their order; none where it quotes nothing.
	quoted []string
}

// advices are the rows of the kind's page for a reason.
func advices(kind, reason string) []advice {
	var rows []advice
	for line := range strings.Lines(remediesOfPages) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if cells[0] != kind || cells[3] != reason {
			continue
		}
		row := advice{on: cells[1], stalled: cells[2] == "stalled", quoted: quoteOf(cells[4])}
		row.Remedy = Remedy{Cause: strings.ReplaceAll(cells[4], "`", ""), Remedy: strings.ReplaceAll(cells[5], "`", "")}
		rows = append(rows, row)
	}
	return rows
}

var quotation = regexp.MustCompile("^`([^`]+)`[:. ]")

// quoteOf is what a cause says that the message has, between the parts that differ.
func quoteOf(cause string) []string {
	found := quotation.FindStringSubmatch(cause)
	if found == nil || !strings.Contains(found[1], " ") {
		return nil
	}
	return slices.DeleteFunc(strings.Split(found[1], "…"), func(part string) bool { return part == "" })
}

// Remedies are what may help against what a condition of the type says of an object of the kind. A page may have more than
// one cause for a reason, and the message does not always tell which it is.
func Remedies(kind, of, reason, message string, stalled bool) []Remedy {
	rows := advices(kind, reason)
	rows = prefer(rows, func(a advice) bool { return a.on == "" || a.on == "all" || strings.Contains(a.on, of) })
	rows = prefer(rows, func(a advice) bool { return a.stalled == stalled })
	rows = prefer(rows, func(a advice) bool { return a.quoted != nil && quotes(message, a.quoted) })
	rows = prefer(rows, func(a advice) bool { return a.quoted == nil || quotes(message, a.quoted) })
	var found []Remedy
	for _, row := range rows {
		if !slices.ContainsFunc(found, func(r Remedy) bool { return r.Remedy == row.Remedy.Remedy }) {
			found = append(found, row.Remedy)
		}
	}
	return found
}

// prefer keeps the rows that fit, and all of them where none does.
func prefer(rows []advice, fits func(advice) bool) []advice {
	kept := slices.DeleteFunc(slices.Clone(rows), func(a advice) bool { return !fits(a) })
	if len(kept) == 0 {
		return rows
	}
	return kept
}

// quotes says whether the message has the parts, one behind the other.
func quotes(message string, parts []string) bool {
	for _, part := range parts {
		_, rest, found := strings.Cut(message, part)
		if !found {
			return false
		}
		message = rest
	}
	return true
}
