package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/view"
)

// maxHappened is how many events are shown of an object, the last ones.
const maxHappened = 20

// description is what is told of one object.
type description struct {
	Object     ref              `json:"object"`
	State      view.State       `json:"state"`
	Since      *metav1.Time     `json:"since,omitempty"`
	Reason     string           `json:"reason,omitempty"`
	Message    string           `json:"message,omitempty"`
	Remedies   []view.Remedy    `json:"remedies"`
	Facts      []view.Titled    `json:"facts"`
	Conditions []view.Condition `json:"conditions"`
	Events     []happening      `json:"events"`
}

func describeCommand(b *base) *cobra.Command {
	command := &cobra.Command{
		Use:   "describe [KIND] NAME | KIND/NAME",
		Short: "Show one object: its state, what helps, its conditions and what happened to it",
		Example: `  sluice describe redis
  sluice describe gitrepository/app -n team-a`,
		ValidArgsFunction: b.complete(kindNames()),
	}
	shown := bindAnswers(command)
	return b.on(command, func(ctx context.Context, args []string) error {
		k, name, err := one(args)
		if err != nil {
			return err
		}
		obj, err := b.named(ctx, k, name)
		if err != nil {
			return err
		}
		told := describe(k, obj)
		var lacking error
		told.Events, lacking = b.happened(ctx, told.Object, obj.GetUID())
		told.Events = told.Events[max(0, len(told.Events)-maxHappened):]
		err = shown.show(b.Out, "Description", told, told.print)
		return errors.Join(err, lacking)
	})
}

// describe tells what the object itself says.
func describe(k kind, obj *unstructured.Unstructured) description {
	fact := view.Of(obj)
	told := description{
		Object: refOf(obj), State: fact.State, Reason: fact.Reason, Message: fact.Message,
	}
	if !fact.Since.IsZero() {
		told.Since = &metav1.Time{Time: fact.Since}
	}
	for _, c := range k.columns {
		if value := c.value(obj); value != "" {
			told.Facts = append(told.Facts, view.Titled{Title: strings.ToLower(c.title), Value: value})
		}
	}
	all := view.Conditions(obj)
	stalled := meta.IsStatusConditionTrue(all, "Stalled")
	for _, c := range all {
		row := view.Condition{Condition: c}
		if row.Remedies = view.Remedies(k.Kind, c.Type, c.Reason, c.Message, stalled); c.Reason == fact.Reason && told.Remedies == nil {
			told.Remedies = row.Remedies
		}
		told.Conditions = append(told.Conditions, row)
	}
	if told.Remedies == nil && fact.Reason != "" {
		told.Remedies = view.Remedies(k.Kind, "", fact.Reason, fact.Message, stalled)
	}
	return told
}

func refOf(obj *unstructured.Unstructured) ref {
	return ref{obj.GetKind(), obj.GetNamespace(), obj.GetName()}
}

// print writes the description as text.
func (d description) print(t table) error {
	fmt.Fprintln(t.out, printable.Line(d.Object.String(), maxProblem))
	to := &columns{out: t.out}
	state := t.state(d.State)
	if d.Since != nil {
		state += ", for " + t.since(d.Since.Time)
	}
	t.pair(to, "state", state)
	t.pair(to, "reason", d.Reason)
	t.pair(to, "message", d.Message)
	for _, remedy := range d.Remedies {
		t.pair(to, "what helps", helps(remedy, len(d.Remedies) > 1))
	}
	for _, fact := range d.Facts {
		t.pair(to, fact.Title, fact.Value)
	}
	if err := to.Flush(); err != nil {
		return fmt.Errorf("write the description: %w", err)
	}
	return errors.Join(d.printConditions(t), printHappened(t, &columns{out: t.out}, d.Events, false))
}

// helps is a remedy in one line, with its cause where there may be others.
func helps(remedy view.Remedy, others bool) string {
	if !others || remedy.Cause == "" {
		return remedy.Remedy
	}
	return remedy.Remedy + " (" + strings.TrimSuffix(remedy.Cause, ".") + ")"
}

// pair writes a title and its value; nothing without a value.
func (t table) pair(to io.Writer, title, value string) {
	if value == "" {
		return
	}
	if !t.wide {
		value = shorten(value)
	}
	value = printable.Line(value, maxProblem)
	if title == "state" {
		value = t.paint(value)
	}
	fmt.Fprintf(to, "  %s\t%s\n", title, value)
}

func (d description) printConditions(t table) error {
	if len(d.Conditions) == 0 {
		return nil
	}
	fmt.Fprintln(t.out)
	rows := [][]string{{"CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE"}}
	for _, c := range d.Conditions {
		rows = append(rows, []string{c.Type, string(c.Status), t.since(c.LastTransitionTime.Time), c.Reason, c.Message})
	}
	return t.rows(rows)
}

// printHappened writes what happened, the oldest first, and of what it was told where it may be of several objects.
func printHappened(t table, to *columns, all []happening, several bool) error {
	if len(all) == 0 {
		return nil
	}
	if !several {
		fmt.Fprintln(t.out)
	}
	var rows [][]string
	if head := []string{"LAST", "TIMES", "TYPE", "REASON"}; several && to.widths == nil {
		rows = append(rows, append(head, "OBJECT", "MESSAGE"))
	} else if !several {
		rows = append(rows, append(head, "MESSAGE"))
	}
	for _, one := range all {
		cells := []string{t.since(one.Last), fmt.Sprint(one.Count), one.Type, one.Reason}
		if several {
			cells = append(cells, one.About.String())
		}
		rows = append(rows, append(cells, one.Message))
	}
	return t.rowsTo(to, rows)
}

// rows writes rows of cells below each other.
func (t table) rows(rows [][]string) error { return t.rowsTo(&columns{out: t.out}, rows) }

func (t table) rowsTo(to *columns, rows [][]string) error {
	for _, cells := range rows {
		t.row(to, cells)
	}
	if err := to.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}
