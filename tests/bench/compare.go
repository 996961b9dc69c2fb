package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"sluice.dev/sluice/internal/source"
)

// sample is one measurement of both sides.
type sample struct {
	ours, theirs usage
	steps        map[source.Stage]time.Duration
}

// compare runs the comparisons that the plan wants, one after the other.
func compare(ctx context.Context, out io.Writer, p plan) (err error) {
	dir, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, part := range []struct {
		name string
		run  func(context.Context, io.Writer, string, plan) error
	}{{"git", compareGit}, {"engine", compareEngine}, {"oci", compareOCI}, {"buckets", compareBuckets}, {"helm", compareHelm}, {"serve", compareServing}, {"modules", compareModules}, {"packages", comparePackages}, {"sets", compareSets}, {"commands", compareCommands}} {
		if p.only != "" && p.only != part.name {
			continue
		}
		folder := filepath.Join(dir, part.name)
		if err := os.Mkdir(folder, 0o755); err != nil {
			return err
		}
		if err := part.run(ctx, out, folder, p); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		fmt.Fprintln(out)
	}
	return nil
}

// both measures the two sides, one after the other.
func (s *site) both(theirsFirst bool, what jobKind, dir string, theirs func() (usage, error)) (one sample, report result, err error) {
	if theirsFirst {
		if one.theirs, err = theirs(); err != nil {
			return one, report, err
		}
	}
	if one.ours, report, err = s.ours(what, dir); err != nil {
		return one, report, err
	}
	one.steps = report.Steps
	if !theirsFirst {
		one.theirs, err = theirs()
	}
	return one, report, err
}
