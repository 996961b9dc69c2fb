package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/tests/upstream"
)

// The kinds of work, in the order of the table.
const (
	cold    = "cold"
	commit  = "one-line commit"
	noop    = "no-op, new process"
	polling = "no-op, running"
)

// sample is one measurement of both sides.
type sample struct {
	ours, theirs usage
	steps        map[source.Stage]time.Duration
}

// compare makes the repository, measures all work a number of times, and prints the table.
func compare(ctx context.Context, out io.Writer, p plan) (err error) {
	dir, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
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
	return printTable(out, samples)
}

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
	return &stand{ctx: ctx, dir: dir, repository: repository, server: server, polls: p.polls}, page + "\n", nil
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
		one, report, err := s.both((number+i)%2 == 1, ours, w.git)
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
	running, err := s.running(ours)
	if err != nil {
		return fmt.Errorf("%s: %w", polling, err)
	}
	samples[polling] = append(samples[polling], sample{ours: running, theirs: last.theirs})
	return nil
}

// both measures the two sides, one after the other.
func (s *stand) both(gitFirst bool, dir string, git func() (usage, error)) (one sample, report result, err error) {
	if gitFirst {
		if one.theirs, err = git(); err != nil {
			return one, report, err
		}
	}
	if one.ours, report, err = s.ours(dir); err != nil {
		return one, report, err
	}
	one.steps = report.Steps
	if !gitFirst {
		one.theirs, err = git()
	}
	return one, report, err
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
