package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// What is wanted of modules.
const (
	targetRound       = time.Millisecond
	targetHealed      = 2 * time.Second
	targetHealCalls   = 2
	targetBookkeeping = 6
	targetResident    = 300 << 20
	// interval is how often objects are looked at by default, when nothing is heard.
	interval = 10 * time.Minute
)

// target is one figure that is wanted.
type target struct {
	work, wanted, measured string
	verdict                verdict
}

// verdict is how a figure stands to what is wanted of it.
type verdict string

const (
	met    verdict = "met"
	missed verdict = "missed"
	// unresolved is a figure that noise is larger than: a difference of two that is not above zero.
	unresolved verdict = "not resolved"
)

func judge(good bool) verdict {
	if good {
		return met
	}
	return missed
}

// judgeSpent is judge for what was spent beyond something else, where all else is good.
func judgeSpent(good bool, spent, most time.Duration) verdict {
	if good && spent <= 0 {
		return unresolved
	}
	return judge(good && spent <= most)
}

// printVerdicts says how the figures stand to what is wanted of them.
func printVerdicts(out io.Writer, targets []target) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WORK\tWANTED\tMEASURED\t\t")
	for _, t := range targets {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", t.work, t.wanted, t.measured, t.verdict)
	}
	return w.Flush()
}

func moduleTargets(p plan, samples map[string]*costs, m manyCosts) []target {
	of := func(work string) cost { return middle(samples[work].ours) }
	round, again, first, one := of(unchanged), of(restarted), of(install), of(oneOfAll)
	kinds := len(memberKinds())
	targets := []target{
		{
			unchanged, fmt.Sprintf("no call, less than %s of CPU", targetRound),
			fmt.Sprintf("%d requests, %s of CPU", round.all(), round.cpu), judge(round.all() == 0 && round.cpu < targetRound),
		},
		{
			restarted, fmt.Sprintf("a list for each of %d kinds", kinds), fmt.Sprintf("%d lists, %d calls", again.lists, again.calls),
			judge(again.lists == kinds && again.calls == 0),
		},
		{install, fmt.Sprintf("%d calls", p.objects), fmt.Sprintf("%d calls", first.calls), judge(first.calls == p.objects)},
		{oneOfAll, "1 call", fmt.Sprintf("%d calls", one.calls), judge(one.calls == 1)},
	}
	for _, work := range []string{edited, deleted} {
		healed := of(work)
		targets = append(targets, target{
			work, fmt.Sprintf("at most %d calls, %s", targetHealCalls, targetHealed),
			fmt.Sprintf("%d calls, %s, %.5f of the interval", healed.calls, healed.wall.Round(time.Millisecond),
				healed.wall.Seconds()/interval.Seconds()),
			judge(healed.calls <= targetHealCalls && healed.wall <= targetHealed),
		})
	}
	for _, work := range []string{install, oneOfAll, edited, deleted} {
		kept := of(work).bookkeeping()
		targets = append(targets, target{
			work + ", bookkeeping", fmt.Sprintf("at most %d", targetBookkeeping), fmt.Sprint(kept), judge(kept <= targetBookkeeping),
		})
	}
	resident := max(m.resident, m.residentRestart)
	return append(targets,
		target{
			fmt.Sprintf("%d installations at rest", p.fleet), "no call, at most " + bytesText(targetResident),
			fmt.Sprintf("%d requests, %s", m.idle.all(), bytesText(resident)), judge(m.idle.all() == 0 && resident <= targetResident),
		},
		target{
			fmt.Sprintf("%d installations from one artifact", p.shared), "1 download", fmt.Sprintf("%d downloads", m.downloads),
			judge(m.downloads == 1),
		},
	)
}
