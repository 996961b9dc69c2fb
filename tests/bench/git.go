package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"sluice.dev/sluice/tests/upstream"
)

// The work with a git repository, in the order of the table.
const (
	cold    = "cold"
	commit  = "one-line commit"
	noop    = "no-op, new process"
	polling = "no-op, running"
)

// What is wanted of a cold start, beside git.
const (
	targetCold     = 0.85
	targetColdPeak = 120 << 20
)

// compareGit makes the repository, measures all work a number of times, and prints the table.
func compareGit(ctx context.Context, out io.Writer, dir string, p plan) error {
	fmt.Fprintf(out, "making a repository of %d files, %d MiB\n", p.files, p.mib)
	s, page, err := setUp(ctx, dir, p)
	if err != nil {
		return err
	}
	defer s.server.Close()
	if err := describe(out, s, p); err != nil {
		return err
	}
	samples := map[string][]sample{}
	for round := range p.rounds {
		if err := s.round(round, page, samples); err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
		fmt.Fprintf(out, "round %d of %d done\n", round+1, p.rounds)
	}
	fmt.Fprintln(out)
	rows := []row{{cold, cloneAndPack, "git"}, {commit, fetchAndPack, "git"}, {noop, lsRemote, "git"}, {polling, lsRemote, "git"}}
	if err := printTable(out, rows, samples); err != nil {
		return err
	}
	fmt.Fprintln(out)
	printSteps(out, samples, cold, commit)
	fmt.Fprintln(out)
	ours, theirs := medians(samples[cold], sample.our), medians(samples[cold], sample.their)
	cpu := float64(ours.cpu) / float64(theirs.cpu)
	if err := printVerdicts(out, []target{{
		cold, fmt.Sprintf("at most %.2f of git's CPU, %s", targetCold, bytesText(targetColdPeak)),
		fmt.Sprintf("%.2f of the CPU, %s", cpu, bytesText(ours.peak)), judge(cpu <= targetCold && ours.peak <= targetColdPeak),
	}}); err != nil {
		return err
	}
	fmt.Fprint(out, gitNotes)
	return nil
}

// What each kind of work is measured against.
const (
	cloneAndPack = "git clone --bare --depth 1; git archive | gzip -6"
	fetchAndPack = "git fetch --depth 1; git archive | gzip -6"
	lsRemote     = "git ls-remote URL refs/heads/main"
)

const gitNotes = `
CPU is user and system time of the measured processes, not of the server. Peak memory is that of the largest
process. Received is all that the server sent, HTTP included. Sluice's artifact is flushed to disk and hashed;
git's is neither. A new process of sluice also hashes the stored artifact before it believes it; "running" is
one poll in a process that has done so, as in the manager, where git has to start anew. The one-line commit too
is one in a new process, as after a restart. The artifacts of both sides held the same files.
`

// setUp makes and serves the repository. It also gives the text of the file that changes later.
func setUp(ctx context.Context, dir string, p plan) (*stand, string, error) {
	repository, err := upstream.NewRepository(ctx, filepath.Join(dir, "served"), "bench")
	if err != nil {
		return nil, "", err
	}
	if _, err := repository.Bulk("main", p.files, p.mib<<20); err != nil {
		return nil, "", err
	}
	page, err := repository.Raw("show", "main:"+upstream.BulkPath(0))
	if err != nil {
		return nil, "", err
	}
	server, err := upstream.ServeHTTP(ctx, filepath.Join(dir, "served"), upstream.HTTPOptions{})
	if err != nil {
		return nil, "", err
	}
	return &stand{
		site: site{ctx: ctx, url: server.URL(repository.Name()), sent: func() (int64, error) { return server.BytesOut(), nil }},
		dir:  dir, repository: repository, server: server, polls: p.polls,
	}, page + "\n", nil
}

// round measures all work once. The sides take turns in going first, so that neither always finds warm caches.
func (s *stand) round(number int, page string, samples map[string][]sample) error {
	ours := filepath.Join(s.dir, "sluice-"+strconv.Itoa(number))
	theirs := filepath.Join(s.dir, "git-"+strconv.Itoa(number))
	if err := os.Mkdir(ours, 0o755); err != nil {
		return err
	}
	defer func() { os.RemoveAll(ours); os.RemoveAll(theirs) }()

	works := []struct {
		name    string
		changes bool
		git     func() (usage, error)
	}{
		{cold, true, func() (usage, error) { return s.clone(theirs) }},
		{commit, true, func() (usage, error) { return s.fetch(theirs) }},
		{noop, false, s.list},
	}
	for i, w := range works {
		if w.name == commit {
			if err := s.edit(number, page); err != nil {
				return err
			}
		}
		one, report, err := s.both((number+i)%2 == 1, jobGit, ours, w.git)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		if report.Changed != w.changes {
			return fmt.Errorf("%s: artifact made: %v, want %v", w.name, report.Changed, w.changes)
		}
		if w.changes {
			if err := sameFiles(report.Artifact, archiveOf(theirs)); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
		samples[w.name] = append(samples[w.name], one)
	}
	last := samples[noop][len(samples[noop])-1]
	running, err := s.polling(jobGit, ours, s.polls)
	if err != nil {
		return fmt.Errorf("%s: %w", polling, err)
	}
	samples[polling] = append(samples[polling], sample{ours: running, theirs: last.theirs})
	return nil
}

// edit commits a change of one line of one file.
func (s *stand) edit(number int, page string) error {
	before, after, found := strings.Cut(page, "  replicas: ")
	_, after, ended := strings.Cut(after, "\n")
	if !found || !ended {
		return fmt.Errorf("%s has no line to change", upstream.BulkPath(0))
	}
	text := fmt.Sprintf("%s  replicas: %d\n%s", before, 100+number, after)
	_, err := s.repository.Commit("main", "scale app-0", upstream.Files{upstream.BulkPath(0): {Content: text}})
	return err
}

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
	fmt.Fprintf(out, "%s, %s\n", strings.TrimSpace(string(version)), machine(p))
	return nil
}
