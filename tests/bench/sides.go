package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"sluice.dev/sluice/tests/upstream"
)

// stand is where both sides work: the repository, its server, and a folder.
type stand struct {
	ctx        context.Context // It bounds the whole run.
	dir        string
	repository *upstream.Repository
	server     *upstream.GitHTTP
	polls      int
}

func (s *stand) url() string { return s.server.URL(s.repository.Name()) }

// received runs the work and notes what the server has sent meanwhile.
func (s *stand) received(work func() (usage, error)) (usage, error) {
	before := s.server.BytesOut()
	u, err := work()
	u.received += s.server.BytesOut() - before
	return u, err
}

// ours lets a new process reconcile with the state in dir.
func (s *stand) ours(dir string) (usage, result, error) {
	var report result
	u, err := s.received(func() (usage, error) {
		cmd, err := s.worker(dir)
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

func (s *stand) worker(dir string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(s.ctx, self, "-work", dir, "-url", s.url(), "-polls", fmt.Sprint(s.polls)), nil
}

// running lets a process that has reconciled already do so many times more; the usage is that of one time.
func (s *stand) running(dir string) (usage, error) {
	cmd, err := s.worker(dir)
	if err != nil {
		return usage{}, err
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return usage{}, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return usage{}, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return usage{}, err
	}
	lines := bufio.NewReader(stdout)
	u, err := s.poll(cmd.Process.Pid, stdin, lines)
	stdin.Close()
	if _, drainErr := io.Copy(io.Discard, lines); err == nil {
		err = drainErr
	}
	if waitErr := cmd.Wait(); waitErr != nil {
		err = waitErr
	}
	return u, err
}

func (s *stand) poll(pid int, orders io.Writer, reports *bufio.Reader) (usage, error) {
	if _, err := reports.ReadBytes('\n'); err != nil {
		return usage{}, fmt.Errorf("first reconcile: %w", err)
	}
	before := s.server.BytesOut()
	if _, err := io.WriteString(orders, "again\n"); err != nil {
		return usage{}, err
	}
	line, err := reports.ReadBytes('\n')
	if err != nil {
		return usage{}, fmt.Errorf("no-ops: %w", err)
	}
	var report polled
	if err := json.Unmarshal(line, &report); err != nil {
		return usage{}, err
	}
	n := int64(s.polls)
	return usage{
		cpu: report.CPU / time.Duration(n), wall: report.Wall / time.Duration(n),
		peak: largest(pid), received: (s.server.BytesOut() - before) / n,
	}, nil
}

// clone is the git command line's cold start: a clone of one commit, and its archive.
func (s *stand) clone(dir string) (usage, error) {
	return s.received(func() (usage, error) {
		fetched, err := measure(s.git(s.dir, "clone", "--quiet", "--bare", "--depth", "1", s.url(), dir))
		if err != nil {
			return fetched, err
		}
		return s.archive(dir, fetched, "HEAD")
	})
}

// fetch is the git command line's way to a newer commit in a clone that is there already.
func (s *stand) fetch(dir string) (usage, error) {
	return s.received(func() (usage, error) {
		fetched, err := measure(s.git(dir, "fetch", "--quiet", "--depth", "1", "origin", "main"))
		if err != nil {
			return fetched, err
		}
		return s.archive(dir, fetched, "FETCH_HEAD")
	})
}

// archive packs a commit as git archive and gzip do, and adds that to what the fetch took.
func (s *stand) archive(dir string, fetched usage, commit string) (usage, error) {
	file, err := os.Create(archiveOf(dir))
	if err != nil {
		return fetched, err
	}
	defer file.Close()
	tar, gzip := s.git(dir, "archive", "--format=tar", commit), exec.CommandContext(s.ctx, "gzip", "-6")
	if gzip.Stdin, err = tar.StdoutPipe(); err != nil {
		return fetched, err
	}
	gzip.Stdout = file
	packed, err := measure(tar, gzip)
	if err != nil {
		return fetched, err
	}
	info, err := file.Stat()
	if err != nil {
		return fetched, err
	}
	return usage{
		cpu: fetched.cpu + packed.cpu, wall: fetched.wall + packed.wall,
		peak: max(fetched.peak, packed.peak), artifact: info.Size(),
	}, nil
}

func archiveOf(dir string) string { return filepath.Join(dir, "artifact.tar.gz") }

// list is the git command line's no-op: what does the branch name now?
func (s *stand) list() (usage, error) {
	return s.received(func() (usage, error) { return measure(s.git(s.dir, "ls-remote", s.url(), "refs/heads/main")) })
}

func (s *stand) git(dir string, args ...string) *exec.Cmd {
	return upstream.Command(s.ctx, dir, nil, args...)
}
