package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice.dev/sluice/tests/upstream"
)

const (
	targetPoll      = 500 * time.Microsecond
	targetReconcile = 2 * time.Millisecond
	fewRefs         = 10
)

// gitHost is a folder of repositories, served over both protocols.
type gitHost struct {
	dir  string
	http *upstream.GitHTTP
	ssh  *upstream.GitSSH
}

func serveGit(ctx context.Context, dir string) (s *gitHost, err error) {
	s = &gitHost{dir: dir}
	if s.http, err = upstream.ServeHTTP(ctx, dir, upstream.HTTPOptions{}); err != nil {
		return nil, err
	}
	if s.ssh, err = upstream.ServeSSH(ctx, dir, upstream.SSHOptions{}); errors.Is(err, upstream.ErrNoSSHD) {
		return s, nil
	}
	return s, err
}

func (s *gitHost) close() error {
	err := s.http.Close()
	if s.ssh != nil {
		err = errors.Join(err, s.ssh.Close())
	}
	return err
}

// asked is how many requests and connections the server has seen.
type asked struct{ requests, connections int }

// polled is a repository as polls see it.
type polled struct {
	name string
	site
	asked func() (asked, error)
	// login is what its Secret holds; nil without one.
	login map[string][]byte
}

// polled gives a repository with so many refs over each protocol.
func (s *gitHost) polled(ctx context.Context, refs int) (all []polled, err error) {
	name := fmt.Sprint("refs-", refs)
	if err := manyRefs(ctx, s.dir, name, refs); err != nil {
		return nil, err
	}
	over := fmt.Sprintf("poll without news, %d refs, ", refs)
	all = append(all, polled{
		name:  over + "HTTP",
		site:  site{ctx: ctx, url: s.http.URL(name), sent: func() (int64, error) { return s.http.BytesOut(), nil }},
		asked: func() (asked, error) { return asked{s.http.Count(), s.http.Connections()}, nil },
	})
	if s.ssh == nil {
		return all, nil
	}
	key, err := s.ssh.Key().PEM()
	return append(all, polled{
		name: over + "SSH",
		site: site{ctx: ctx, url: s.ssh.URL(name), sent: func() (int64, error) { return s.ssh.BytesOut(), nil }},
		asked: func() (asked, error) {
			commands, err := s.ssh.Commands()
			return asked{len(commands), s.ssh.Connections()}, err
		},
		login: map[string][]byte{sshKey: key, sshHosts: s.ssh.KnownHosts()},
	}), err
}

// manyRefs makes a small repository with so many branches.
func manyRefs(ctx context.Context, dir, name string, refs int) error {
	repository, err := upstream.NewRepository(ctx, dir, name)
	if err != nil {
		return err
	}
	tip, err := repository.Commit("main", "one", upstream.Text(map[string]string{"app.yaml": "replicas: 1\n"}))
	if err != nil {
		return err
	}
	var updates strings.Builder
	for i := 1; i < refs; i++ {
		fmt.Fprintf(&updates, "create refs/heads/branch-%06d %s\n", i, tip)
	}
	if _, err := repository.RawInput([]byte(updates.String()), "update-ref", "--stdin"); err != nil {
		return err
	}
	_, err = repository.Raw("pack-refs", "--all")
	return err
}

// polls measures polls that find nothing, by the pipeline alone.
func (e *engine) polls() (err error) {
	dir, err := e.folder("polls")
	if err != nil {
		return err
	}
	s, err := serveGit(e.ctx, filepath.Join(dir, "served"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for _, refs := range []int{fewRefs, e.engine.refs} {
		all, err := s.polled(e.ctx, refs)
		if err != nil {
			return err
		}
		for i, p := range all {
			fmt.Fprintln(e.out, p.name)
			if err := e.poll(p, filepath.Join(dir, fmt.Sprint(refs, "-", i))); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	return nil
}

func (e *engine) poll(p polled, dir string) (err error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for name, content := range p.login {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	process, err := p.start(jobGit, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, process.stop()) }()
	before, err := p.asked()
	if err != nil {
		return err
	}
	var samples []sample
	for range e.rounds {
		u, _, err := process.again(e.plan.polls, 0)
		if err != nil {
			return err
		}
		samples = append(samples, sample{ours: u})
	}
	after, err := p.asked()
	if err != nil {
		return err
	}
	e.add(p.name, "", samples...)
	n, cpu := float64(e.rounds*e.plan.polls), medians(samples, sample.our).cpu
	requests, connections := float64(after.requests-before.requests)/n, float64(after.connections-before.connections)/n
	e.target(p.name, fmt.Sprintf("1 request, less than %s of CPU", targetPoll), requests == 1 && cpu < targetPoll,
		"%.2f requests, %.2f connections, %s of CPU", requests, connections, cpu.Round(time.Microsecond))
	return nil
}
