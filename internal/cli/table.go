package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/view"
)

const (
	// maxCell is how long a cell may be, and maxMessage the last one.
	maxCell, maxMessage = 128, 160
	// hashed is how much of a digest is shown.
	hashed = 12
)

// table is what a command shows in columns.
type table struct {
	out  io.Writer
	wide bool
	// spaced says that objects are of several namespaces, and named that they are of several kinds.
	spaced, named bool
	// plain says that the terminal shows letters only.
	plain bool
	now   time.Time
}

// newTable is one for objects of one namespace and kind.
func newTable(out io.Writer, wide bool) table {
	return table{out: out, wide: wide, plain: isPlain(environment), now: time.Now()}
}

// printTo writes the kind's objects, under titles.
func (t table) printTo(to *columns, k kind, objects []unstructured.Unstructured) error {
	var titles []string
	if t.spaced {
		titles = append(titles, "NAMESPACE")
	}
	titles = append(titles, "NAME")
	for _, c := range t.columns(k) {
		titles = append(titles, c.title)
	}
	rows := [][]string{append(titles, "STATE", "SINCE", "MESSAGE")}
	for i := range objects {
		rows = append(rows, t.cells(k, &objects[i]))
	}
	return t.rowsTo(to, rows)
}

func (t table) columns(k kind) []column {
	var shown []column
	for _, c := range k.columns {
		if t.wide || !c.wide {
			shown = append(shown, c)
		}
	}
	return shown
}

func (t table) cells(k kind, obj *unstructured.Unstructured) []string {
	var cells []string
	if t.spaced {
		cells = append(cells, obj.GetNamespace())
	}
	name := obj.GetName()
	if t.named {
		name = strings.ToLower(k.Kind) + "/" + name
	}
	cells = append(cells, name)
	for _, c := range t.columns(k) {
		value := c.value(obj)
		if !t.wide {
			value = shorten(value)
		}
		cells = append(cells, value)
	}
	fact := view.Of(obj)
	return append(cells, t.state(fact.State), t.since(fact.Since), message(fact))
}

// row writes cells of which nothing moves the cursor or leaves its column.
func (t table) row(to io.Writer, cells []string) {
	for i, cell := range cells {
		limit := maxCell
		if i == len(cells)-1 {
			limit = maxMessage
		}
		if t.wide {
			limit = maxProblem
		}
		cells[i] = t.paint(printable.Line(cell, limit))
	}
	fmt.Fprintln(to, strings.TrimRight(strings.Join(cells, "\t"), "\t ")) // Flush tells what goes wrong.
}

// marks stand before the states, so that they are told apart at a glance.
func marks() map[view.State]string {
	return map[view.State]string{
		view.Ready: "✔", view.Progressing: "◐", view.Waiting: "◷", view.Held: "‖", view.Conflicted: "≠", view.Failed: "✗", view.Stalled: "⊘",
	}
}

func (t table) state(state view.State) string {
	mark := marks()[state]
	if t.plain || mark == "" {
		return string(state)
	}
	return mark + " " + string(state)
}

func (t table) since(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, t.now.Sub(at)))
}

// message is what the status says, with its reason before it where something is wrong.
func message(fact view.Fact) string {
	switch fact.State {
	case view.Ready, view.Progressing, view.New, view.Suspended, view.Paused:
		return fact.Message
	case view.Blocked, view.Deleting, view.Stalled, view.Waiting, view.Failed, view.Held, view.Conflicted:
	}
	if fact.Reason == "" {
		return fact.Message
	}
	return fact.Reason + ": " + fact.Message
}

// shorten cuts the hashes in a value down to what people compare.
func shorten(value string) string {
	before, hash, found := strings.Cut(value, ":")
	if _, algorithm, _ := strings.Cut(before, "@"); !found || len(hash) <= hashed || !isAlgorithm(algorithm) && !isAlgorithm(before) {
		return value
	}
	return before + ":" + hash[:hashed]
}

func isAlgorithm(name string) bool {
	return strings.HasPrefix(name, "sha") || strings.HasPrefix(name, "blake")
}

// scalar is a field's value in a cell.
func scalar(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case int64, bool, float64:
		return fmt.Sprint(value)
	}
	return ""
}

// isPlain says whether the locale has letters of ASCII only, by POSIX's variables.
func isPlain(lookup func(string) (string, bool)) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value, ok := lookup(name); ok && value != "" {
			upper := strings.ToUpper(value)
			return !strings.Contains(upper, "UTF-8") && !strings.Contains(upper, "UTF8")
		}
	}
	return true
}

// environment is the process's own.
func environment(name string) (string, bool) { return os.LookupEnv(name) }
