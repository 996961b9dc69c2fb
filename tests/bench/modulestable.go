package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// kubectlApply is what installations are measured against.
const kubectlApply = "kubectl apply --server-side"

// printCosts prints the work with one installation.
func printCosts(out io.Writer, samples map[string]*costs) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WORK\tSIDE\tCALLS\tLISTS\tWATCHES\tBOOKKEEPING\tOTHERS\tCPU\tWALL\t")
	for _, work := range moduleWorks() {
		ours, theirs := middle(samples[work].ours), middle(samples[work].theirs)
		printCost(w, work+"\tsluice", ours)
		if len(samples[work].theirs) == 0 {
			continue
		}
		printCost(w, "\t"+kubectlApply, theirs)
		fmt.Fprintf(w, "\tsluice : kubectl\t%s\t-\t-\t-\t-\t%s\t%s\t\n", ratio(int64(ours.calls), int64(theirs.calls)),
			ratio(int64(ours.cpu), int64(theirs.cpu)), ratio(int64(ours.wall), int64(theirs.wall)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, work := range moduleWorks() {
		fmt.Fprintf(out, "%s, bookkeeping and others: %s\n", work, told(middle(samples[work].ours).own))
	}
	return nil
}

func printCost(w io.Writer, head string, c cost) {
	wall := "-"
	if c.wall > 0 {
		wall = timeText(c.wall)
	}
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t\n", head, c.calls, c.lists, c.watches, c.bookkeeping(), c.others(),
		timeText(c.cpu), wall)
}

// middle takes the median of each figure by itself.
func middle(all []cost) cost {
	if len(all) == 0 {
		return cost{}
	}
	of := func(figure func(cost) int64) int64 {
		var figures []int64
		for _, c := range all {
			figures = append(figures, figure(c))
		}
		return median(figures)
	}
	m := cost{
		cpu:  time.Duration(of(func(c cost) int64 { return int64(c.cpu) })),
		wall: time.Duration(of(func(c cost) int64 { return int64(c.wall) })),
		tally: tally{
			calls:   int(of(func(c cost) int64 { return int64(c.calls) })),
			lists:   int(of(func(c cost) int64 { return int64(c.lists) })),
			watches: int(of(func(c cost) int64 { return int64(c.watches) })),
			own:     map[string]int{},
		},
	}
	for _, c := range all {
		for key := range c.own {
			m.own[key] = int(of(func(c cost) int64 { return int64(c.own[key]) }))
		}
	}
	maps.DeleteFunc(m.own, func(_ string, n int) bool { return n == 0 })
	return m
}

// told lists requests by verb and resource.
func told(own map[string]int) string {
	if len(own) == 0 {
		return "none"
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(own)) {
		parts = append(parts, fmt.Sprintf("%d %s", own[key], key))
	}
	return strings.Join(parts, ", ")
}

func (m manyCosts) print(out io.Writer, p plan) {
	fmt.Fprintf(out, "%d installations from one artifact: %d download, ready in %s\n", p.shared, m.downloads, timeText(m.sharedWall))
	fmt.Fprintf(out, "%d more: ready in %s; %s\n", p.fleet-p.shared, timeText(m.install.wall), m.install)
	fmt.Fprintf(out, "%d at rest for %s: %s, %s resident, %s at most until then\n", p.fleet, p.window, m.idle,
		bytesText(m.resident), bytesText(m.peak))
	fmt.Fprintf(out, "restart: %s, %s resident, %s at most\n", m.restart, bytesText(m.residentRestart), bytesText(m.peakRestart))
	fmt.Fprintf(out, "%d more, bookkeeping and others: %s\n", p.fleet-p.shared, told(m.install.own))
}

// String tells a cost in a line.
func (c cost) String() string {
	return fmt.Sprintf("%d calls, %d lists, %d watches, %d bookkeeping, %d others, %s of CPU", c.calls, c.lists, c.watches,
		c.bookkeeping(), c.others(), timeText(c.cpu))
}
