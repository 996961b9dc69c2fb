package main

import (
	"os"
	"os/exec"
	"path/filepath"

	"sluice.dev/sluice/tests/upstream"
)

// stand is where both sides work on a git repository: the repository, its server, and a folder.
type stand struct {
	site
	dir        string
	repository *upstream.Repository
	server     *upstream.GitHTTP
	polls      int
}

// clone is the git command line's cold start: a clone of one commit, and its archive.
func (s *stand) clone(dir string) (usage, error) {
	return s.received(func() (usage, error) {
		fetched, err := measure(s.git(s.dir, "clone", "--quiet", "--bare", "--depth", "1", s.url, dir))
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
	return s.received(func() (usage, error) { return measure(s.git(s.dir, "ls-remote", s.url, "refs/heads/main")) })
}

func (s *stand) git(dir string, args ...string) *exec.Cmd {
	return upstream.Command(s.ctx, dir, nil, args...)
}
