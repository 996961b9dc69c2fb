package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// What is wanted of commits, beside git.
const (
	targetCommit    = 2.0
	targetGrowth    = 2.0
	targetLargePeak = 256 << 20
	fetchAndSum     = "git fetch --depth 1; sha256sum artifact"
)

// trees measures one-line commits in trees of three sizes. What is made of the second one is compared with the first.
func (e *engine) trees() error {
	least := time.Duration(0)
	for i, size := range []struct {
		name  string
		files int
		mib   int64
	}{
		{"one-line commit", e.files, e.mib},
		{"one-line commit, large tree", int(int64(e.files) * e.engine.large / e.mib), e.engine.large},
		{fmt.Sprintf("one-line commit, tree x %d", e.engine.times), e.files * e.engine.times, e.mib * int64(e.engine.times)},
	} {
		fmt.Fprintf(e.out, "%s: %d files, %d MiB\n", size.name, size.files, size.mib)
		t, err := e.tree(fmt.Sprint("tree-", i), size.files, size.mib)
		if err != nil {
			return fmt.Errorf("%s: %w", size.name, err)
		}
		e.add(size.name, fetchAndSum, t.samples...)
		ours, theirs := medians(t.samples, sample.our), medians(t.samples, sample.their)
		cpu, bytes := float64(ours.cpu)/float64(theirs.cpu), float64(ours.received)/float64(theirs.received)
		e.target(size.name, fmt.Sprintf("at most %.0f of git's CPU and bytes", targetCommit), cpu <= targetCommit && bytes <= targetCommit,
			"%.2f of the CPU, %.2f of the bytes; made with %s, the rest %s", cpu, bytes, timeText(t.made), timeText(ours.cpu-t.made))
		switch i {
		case 0:
			least = t.made
		case 1:
			e.target(size.name+", memory", "at most "+bytesText(targetLargePeak), ours.peak <= targetLargePeak, "%s cold, %s after commits", bytesText(t.cold), bytesText(ours.peak))
		default:
			growth := float64(t.made) / float64(least)
			e.target(size.name+", made", fmt.Sprintf("at most %.0f of the small tree's", targetGrowth), growth <= targetGrowth, "%.2f", growth)
		}
	}
	return nil
}

// measured is what commits in a tree took. Made is CPU for each, and cold the peak of memory before the first.
type measured struct {
	samples []sample
	made    time.Duration
	cold    int64
}

// tree makes a repository, and follows it with a process that runs on and with a bare clone.
func (e *engine) tree(name string, files int, mib int64) (t measured, err error) {
	dir, err := e.folder(name)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, page, err := setUp(e.ctx, dir, plan{files: files, mib: mib})
	if err != nil {
		return t, err
	}
	defer s.server.Close()
	ours, theirs := filepath.Join(dir, "sluice"), filepath.Join(dir, "git")
	if _, err := measure(s.git(dir, "clone", "--quiet", "--bare", "--depth", "1", s.url, theirs)); err != nil {
		return t, err
	}
	process, err := s.start(jobGit, ours)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, process.stop()) }()
	t.cold = largest(process.cmd.Process.Pid)
	for round := range e.rounds {
		one, made, err := e.commits(s, process, theirs, page, round)
		if err != nil {
			return t, err
		}
		t.samples, t.made = append(t.samples, one), t.made+made/time.Duration(e.rounds)
	}
	return t, nil
}

// commits lets both sides follow one commit after the other.
func (e *engine) commits(s *stand, process *running, theirs, page string, round int) (sample, time.Duration, error) {
	var us, them mean
	made, n := time.Duration(0), e.engine.commits
	for i := range n {
		if err := s.edit(1+round*n+i, page); err != nil {
			return sample{}, 0, err
		}
		u, report, err := process.again(1, 1)
		if err != nil {
			return sample{}, 0, err
		}
		us.add(u)
		made += report.Made
		u, err = s.received(func() (usage, error) {
			return measure(s.git(theirs, "fetch", "--quiet", "--depth", "1", "origin", "main"))
		})
		if err != nil {
			return sample{}, 0, err
		}
		them.add(u)
		if u, err = measure(exec.CommandContext(e.ctx, "sha256sum", report.Artifact)); err != nil {
			return sample{}, 0, err
		}
		them.add(u)
	}
	return sample{ours: us.of(n), theirs: them.of(n)}, made / time.Duration(n), nil
}

func (s sample) our() usage   { return s.ours }
func (s sample) their() usage { return s.theirs }
