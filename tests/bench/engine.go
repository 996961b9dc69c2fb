package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// enginePlan is how much is measured of the git engine.
type enginePlan struct {
	// Commits follow one another in each round. The repository of the plan is measured, one times as large, and one of so
	// many MiB for its memory.
	commits, times int
	large          int64
	refs           int
	sharing        int
	// Sources are spread over the repositories.
	sources, repositories int
	watch                 time.Duration
	submodules            int
}

func (p *enginePlan) flags() {
	flag.IntVar(&p.commits, "commits", 20, "one-line commits that are measured one after the other, in each round")
	flag.IntVar(&p.times, "times", 10, "how many times larger the tree is that a commit is measured in as well")
	flag.Int64Var(&p.large, "large", 477, "size in MiB of the tree whose memory is measured")
	flag.IntVar(&p.refs, "refs", 100_000, "refs of the repository that has many")
	flag.IntVar(&p.sharing, "sharing", 50, "objects that follow one repository")
	flag.IntVar(&p.sources, "sources", 1000, "objects in the fleet of sources")
	flag.IntVar(&p.repositories, "repositories", 100, "repositories that these follow")
	flag.DurationVar(&p.watch, "watch", 2*time.Minute, "how long the fleet of sources is watched")
	flag.IntVar(&p.submodules, "submodules", 20, "submodules of the repository that has them")
}

// engine is a run of all work with the git engine.
type engine struct {
	plan
	ctx     context.Context // It bounds the whole run.
	out     io.Writer
	dir     string
	rows    []row
	samples map[string][]sample
	targets []target
}

// compareEngine measures what a commit and a poll cost beside what they change: the pipeline alone, and the program in a
// cluster.
func compareEngine(ctx context.Context, out io.Writer, dir string, p plan) error {
	e := &engine{plan: p, ctx: ctx, out: out, dir: dir, samples: map[string][]sample{}}
	fmt.Fprintln(out, machine(p))
	for _, part := range []func() error{e.trees, e.moduleCommits, e.polls, e.cluster} {
		if err := part(); err != nil {
			return err
		}
	}
	fmt.Fprintln(out)
	if err := printTable(out, e.rows, e.samples); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if err := printVerdicts(out, e.targets); err != nil {
		return err
	}
	fmt.Fprint(out, engineNotes)
	return nil
}

const engineNotes = `
A figure of a commit is the mean of all that one round makes, one after the other, and that of a poll the mean of all polls.
Sluice runs on, as in the manager, where git starts anew. Made is what CPU a commit takes until the parts of its artifact
are there: resolving, fetching, compressing. The rest is reading, hashing and writing the artifact, which is linear in it,
and recording. A reconcile in the cluster is what the program takes more than in as much time without any, and an object more
what many take more than one: medians of all rounds, not resolved where noise is larger.
`

// add notes what a kind of work took, in all rounds.
func (e *engine) add(work, against string, samples ...sample) {
	r := row{work, against, "git"}
	if against == "" {
		r.side = ""
	}
	e.rows = append(e.rows, r)
	e.samples[work] = samples
}

func (e *engine) target(work, wanted string, good bool, measured string, args ...any) {
	e.targets = append(e.targets, target{work, wanted, fmt.Sprintf(measured, args...), judge(good)})
}

// spent is target for what the CPU that was spent beyond something else is part of.
func (e *engine) spent(work, wanted string, good bool, spent, most time.Duration, measured string, args ...any) {
	e.targets = append(e.targets, target{work, wanted, fmt.Sprintf(measured, args...), judgeSpent(good, spent, most)})
}

// folder makes a folder for a part of the run.
func (e *engine) folder(name string) (string, error) {
	folder := filepath.Join(e.dir, name)
	return folder, os.Mkdir(folder, 0o755)
}

// mean adds up what pieces of work took and divides it by how many they are.
type mean struct{ usage }

func (m *mean) add(u usage) {
	m.cpu, m.wall, m.received = m.cpu+u.cpu, m.wall+u.wall, m.received+u.received
	m.peak, m.artifact = max(m.peak, u.peak), max(m.artifact, u.artifact)
}

func (m *mean) of(n int) usage {
	u := m.usage
	u.cpu, u.wall, u.received = u.cpu/time.Duration(n), u.wall/time.Duration(n), u.received/int64(n)
	return u
}
