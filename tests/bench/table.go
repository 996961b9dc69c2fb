package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"sluice.dev/sluice/internal/source"
)

// row is a kind of work in a table, what it is measured against, and that in one word.
type row struct{ work, against, side string }

// machine says what the figures depend on beside the upstream.
func machine(p plan) string {
	return fmt.Sprintf("%s, %d CPUs%s; medians of %d rounds, sides in turn", runtime.Version(), runtime.NumCPU(), load(), p.rounds)
}

// load says how busy the machine is, where that can be asked.
func load() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	minute, _, _ := strings.Cut(string(content), " ")
	return ", load average " + minute
}

func printTable(out io.Writer, rows []row, samples map[string][]sample) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WORK\tSIDE\tCPU\tWALL\tPEAK MEMORY\tRECEIVED\tARTIFACT\t")
	for _, r := range rows {
		ours := medians(samples[r.work], func(s sample) usage { return s.ours })
		theirs := medians(samples[r.work], func(s sample) usage { return s.theirs })
		printUsage(w, r.work+"\tsluice", ours)
		if r.against == "" {
			continue
		}
		printUsage(w, "\t"+r.against, theirs)
		fmt.Fprintf(w, "\tsluice : %s\t%s\t%s\t%s\t%s\t%s\t\n", r.side, ratio(int64(ours.cpu), int64(theirs.cpu)),
			ratio(int64(ours.wall), int64(theirs.wall)), ratio(ours.peak, theirs.peak),
			ratio(ours.received, theirs.received), ratio(ours.artifact, theirs.artifact))
	}
	return w.Flush()
}

// printSteps says where each kind of work spent its time.
func printSteps(out io.Writer, samples map[string][]sample, works ...string) {
	for _, work := range works {
		fmt.Fprintf(out, "%s, by step: %s\n", work, split(samples[work]))
	}
}

func printUsage(w io.Writer, head string, u usage) {
	artifact := "-"
	if u.artifact > 0 {
		artifact = bytesText(u.artifact)
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t\n", head, timeText(u.cpu), timeText(u.wall), bytesText(u.peak),
		bytesText(u.received), artifact)
}

func timeText(d time.Duration) string { return fmt.Sprintf("%.4f s", d.Seconds()) }

func bytesText(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

func ratio(a, b int64) string {
	if a == 0 || b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(a)/float64(b))
}

// medians takes the median of each figure by itself.
func medians(samples []sample, side func(sample) usage) usage {
	of := func(figure func(usage) int64) int64 {
		var all []int64
		for _, s := range samples {
			all = append(all, figure(side(s)))
		}
		return median(all)
	}
	return usage{
		cpu:      time.Duration(of(func(u usage) int64 { return int64(u.cpu) })),
		wall:     time.Duration(of(func(u usage) int64 { return int64(u.wall) })),
		peak:     of(func(u usage) int64 { return u.peak }),
		received: of(func(u usage) int64 { return u.received }),
		artifact: of(func(u usage) int64 { return u.artifact }),
	}
}

func median(all []int64) int64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	middle := len(all) / 2
	if len(all)%2 == 0 {
		return (all[middle-1] + all[middle]) / 2
	}
	return all[middle]
}

// split shows where the pipeline spent its time.
func split(samples []sample) string {
	var parts []string
	for _, stage := range []source.Stage{source.StageResolve, source.StageFetch, source.StageArchive, source.StageStore} {
		var all []int64
		for _, s := range samples {
			if took, ok := s.steps[stage]; ok {
				all = append(all, int64(took))
			}
		}
		if len(all) > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", stage, timeText(time.Duration(median(all)))))
		}
	}
	return strings.Join(parts, ", ")
}
