package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// site is an upstream as the measured processes see it.
type site struct {
	ctx context.Context // It bounds the whole run.
	url string
	// sent counts the bytes that the upstream has sent.
	sent func() (int64, error)
}

// self prepares this program for a job in a process of its own.
func self(ctx context.Context, j job, args ...string) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, program, append([]string{"-job", string(j.what), "-dir", j.dir, "-url", j.url}, args...)...), nil
}

// received runs the work and notes what upstream has sent meanwhile.
func (s *site) received(work func() (usage, error)) (usage, error) {
	before, err := s.sent()
	if err != nil {
		return usage{}, err
	}
	u, err := work()
	if err != nil {
		return u, err
	}
	after, err := s.sent()
	u.received += after - before
	return u, err
}

// run lets a new process do a job and prints nothing.
func (s *site) run(j job) (usage, error) {
	return s.received(func() (usage, error) {
		cmd, err := self(s.ctx, j)
		if err != nil {
			return usage{}, err
		}
		return measure(cmd)
	})
}

// ours lets a new process reconcile with the state in dir.
func (s *site) ours(what jobKind, dir string) (usage, result, error) {
	var report result
	u, err := s.received(func() (usage, error) {
		cmd, err := self(s.ctx, job{what: what, dir: dir, url: s.url})
		if err != nil {
			return usage{}, err
		}
		var out bytes.Buffer
		cmd.Stdout = &out
		u, err := measure(cmd)
		if err != nil {
			return u, err
		}
		return u, json.Unmarshal(out.Bytes(), &report)
	})
	if report.Changed {
		u.artifact = report.Size
	}
	return u, report, err
}

// running is a process that has reconciled once and waits for orders to do so again.
type running struct {
	upstream *site
	cmd      *exec.Cmd
	orders   io.WriteCloser
	reports  *bufio.Reader
}

func (s *site) start(what jobKind, dir string) (*running, error) {
	cmd, err := self(s.ctx, job{what: what, dir: dir, url: s.url})
	if err != nil {
		return nil, err
	}
	r := &running{upstream: s, cmd: cmd}
	if r.orders, r.reports, err = begin(cmd); err != nil {
		return nil, err
	}
	var first result
	return r, r.report(&first)
}

// begin starts a process that is spoken with by its input and output.
func begin(cmd *exec.Cmd) (io.WriteCloser, *bufio.Reader, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	cmd.Stderr = os.Stderr
	return in, bufio.NewReader(out), cmd.Start()
}

func (r *running) report(into any) error {
	line, err := r.reports.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("worker says nothing: %w", err)
	}
	return json.Unmarshal(line, into)
}

// again lets the process reconcile n times more, of which so many make an artifact; the usage is that of one time.
func (r *running) again(n, changes int) (usage, again, error) {
	var report again
	u, err := r.upstream.received(func() (usage, error) {
		if _, err := fmt.Fprintln(r.orders, n); err != nil {
			return usage{}, err
		}
		if err := r.report(&report); err != nil {
			return usage{}, err
		}
		if report.Changed != changes {
			return usage{}, fmt.Errorf("%d reconciles made %d artifacts, want %d", n, report.Changed, changes)
		}
		return usage{cpu: report.CPU / time.Duration(n), wall: report.Wall / time.Duration(n), peak: largest(r.cmd.Process.Pid)}, nil
	})
	u.received /= int64(n)
	return u, report, err
}

// stop ends the process, whatever else has failed.
func (r *running) stop() error {
	r.orders.Close()
	_, _ = io.Copy(io.Discard, r.reports) // The process is about to end.
	return r.cmd.Wait()
}

// polling is what one of many no-ops takes in a running process.
func (s *site) polling(what jobKind, dir string, polls int) (u usage, err error) {
	r, err := s.start(what, dir)
	if r != nil {
		defer func() { err = errors.Join(err, r.stop()) }()
	}
	if err != nil {
		return usage{}, err
	}
	u, _, err = r.again(polls, 0)
	return u, err
}
