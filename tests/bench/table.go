package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"sluice.dev/sluice/internal/source"
)

// describe prints what the figures depend on.
func describe(out io.Writer, s *stand, p plan) error {
	counts, err := s.repository.Raw("count-objects", "-v")
	if err != nil {
		return err
	}
	pack := "?"
	for line := range strings.SplitSeq(counts, "\n") {
		if kib, found := strings.CutPrefix(line, "size-pack: "); found {
			pack = kib
		}
	}
	version, err := exec.CommandContext(s.ctx, "git", "version").Output()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d files, %d MiB, packed %s KiB, served by git http-backend on loopback\n", p.files, p.mib, pack)
	fmt.Fprintf(out, "%s, %s, %d CPUs%s; medians of %d rounds, sides in turn\n",
		strings.TrimSpace(string(version)), runtime.Version(), runtime.NumCPU(), load(), p.rounds)
	return nil
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

// commands are what each kind of work is measured against.
func commands(work string) string {
	switch work {
	case cold:
		return "git clone --bare --depth 1; git archive | gzip -6"
	case commit:
		return "git fetch --depth 1; git archive | gzip -6"
	default:
		return "git ls-remote URL refs/heads/main"
	}
}

func printTable(out io.Writer, samples map[string][]sample) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WORK\tSIDE\tCPU\tWALL\tPEAK MEMORY\tRECEIVED\tARTIFACT\t")
	for _, work := range []string{cold, commit, noop, polling} {
		ours := medians(samples[work], func(s sample) usage { return s.ours })
		theirs := medians(samples[work], func(s sample) usage { return s.theirs })
		printUsage(w, work+"\tsluice", ours)
		printUsage(w, "\t"+commands(work), theirs)
		fmt.Fprintf(w, "\tsluice : git\t%s\t%s\t%s\t%s\t%s\t\n", ratio(int64(ours.cpu), int64(theirs.cpu)),
			ratio(int64(ours.wall), int64(theirs.wall)), ratio(ours.peak, theirs.peak),
			ratio(ours.received, theirs.received), ratio(ours.artifact, theirs.artifact))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, work := range []string{cold, commit} {
		fmt.Fprintf(out, "%s, by step: %s\n", work, split(samples[work]))
	}
	fmt.Fprint(out, notes)
	return nil
}

const notes = `
CPU is user and system time of the measured processes, not of the server. Peak memory is that of the largest
process. Received is all that the server sent, HTTP included. Sluice's artifact is flushed to disk and hashed;
git's is neither. A new process of sluice also hashes the stored artifact before it believes it; "running" is
one poll in a process that has done so, as in the manager, where git has to start anew. The one-line commit is
what sluice does today: it fetches the commit whole again. The artifacts of both sides held the same files.
`

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
