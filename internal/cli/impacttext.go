package cli

import (
	"cmp"
	"fmt"
	"strings"

	"sluice.dev/sluice/internal/printable"
)

// maxImpacted is how many installations are named, unless all are asked for.
const maxImpacted = 50

// print writes whom the edits move, and counts.
func (i impacted) print(t table) error {
	var rows [][]string
	for _, edit := range i.Edits {
		change := cmp.Or(edit.After, "edited")
		if edit.Before != "" && edit.Before != edit.After {
			change = edit.Before + t.arrow() + edit.After
		}
		rows = append(rows, []string{edit.Object.String(), change})
	}
	if err := t.rows(rows); err != nil {
		return err
	}
	counts := map[consequence]int{}
	rows = nil
	for n, one := range i.Installations {
		if counts[one.Consequence]++; n >= maxImpacted && !t.wide {
			continue
		}
		change := one.From
		if one.To != "" && one.To != one.From {
			change = strings.TrimSpace(one.From + t.arrow() + one.To)
		}
		rows = append(rows, []string{one.Object.Namespace + "/" + one.Object.Name, change, one.text()})
	}
	if more := len(i.Installations) - len(rows); more > 0 {
		rows = append(rows, []string{fmt.Sprintf("and %d more, with -o wide", more)})
	}
	if len(rows) > 0 {
		fmt.Fprintln(t.out)
	}
	if err := t.rows(rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(t.out, "\n%s\n", printable.Line(fmt.Sprintf(
		"%d follow it: %d upgrade at once, %d wait for approval, %d are held, %d lose their release, %d come free; %d others are not touched",
		i.Follow, counts[upgradesNow], counts[waitsForApproval], counts[isHeld], counts[losesRelease], counts[comesFree], i.Others), maxProblem))
	return err //nolint:wrapcheck // unprinted tells a closed pipe apart.
}

// printAll writes the plans below that.
func (i impacted) printAll(t table) error {
	if err := i.print(t); err != nil {
		return err
	}
	for _, plan := range i.Plans {
		fmt.Fprintln(t.out)
		if err := plan.print(t, "fields"); err != nil {
			return err
		}
	}
	return nil
}

func (o impactedOne) text() string {
	word := map[consequence]string{
		upgradesNow: "upgrades at once", waitsForApproval: "waits for approval", isHeld: "held", losesRelease: "no release is left; what is installed stays",
		comesFree: "is held no more",
	}[o.Consequence]
	if o.Reason == "" || o.Consequence == waitsForApproval {
		return word
	}
	return word + ": " + o.Reason + ": " + o.Message
}
