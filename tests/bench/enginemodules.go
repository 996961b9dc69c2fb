package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"sluice.dev/sluice/tests/upstream"
)

const (
	moduleCommit  = "one of all submodules moved"
	targetModules = 3.0
	// moduleFiles and moduleMiB are what each submodule has.
	moduleFiles = 100
	moduleMiB   = 1
)

// moduleCommits measures commits that move one submodule.
func (e *engine) moduleCommits() (err error) {
	dir, err := e.folder("modules")
	if err != nil {
		return err
	}
	n := e.engine.submodules
	fmt.Fprintf(e.out, "%s: %d of %d files, %d MiB each\n", moduleCommit, n, moduleFiles, moduleMiB)
	m, err := newModular(e.ctx, dir, n)
	if err != nil {
		return err
	}
	defer m.server.Close()
	process, err := m.start(jobModules, filepath.Join(dir, "sluice"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, process.stop()) }()
	theirs := filepath.Join(dir, "git")
	if _, err := measure(m.git(dir, "clone", "--quiet", "--depth", "1", "--recurse-submodules", "--shallow-submodules", m.url, theirs)); err != nil {
		return err
	}
	var samples []sample
	for round := range e.rounds {
		var us, them mean
		for i := range e.engine.commits {
			ours, git, err := m.moved(process, theirs, 1+round*e.engine.commits+i)
			if err != nil {
				return err
			}
			us.add(ours)
			them.add(git)
		}
		samples = append(samples, sample{ours: us.of(e.engine.commits), theirs: them.of(e.engine.commits)})
	}
	e.add(moduleCommit, "git submodule update", samples...)
	ours, git := medians(samples, sample.our), medians(samples, sample.their)
	cpu, bytes := float64(ours.cpu)/float64(git.cpu), float64(ours.received)/float64(git.received)
	e.target(moduleCommit, fmt.Sprintf("at most %.0f of git's CPU, and its bytes", targetModules), cpu <= targetModules && bytes <= targetCommit,
		"%.2f of the CPU; %s, where git receives %s and fetches the commit before", cpu, bytesText(ours.received), bytesText(git.received))
	return nil
}

// modular is a repository with submodules.
type modular struct {
	stand
	modules []*upstream.Repository
}

func newModular(ctx context.Context, dir string, n int) (*modular, error) {
	served := filepath.Join(dir, "served")
	home, err := upstream.NewRepository(ctx, served, "home")
	if err != nil {
		return nil, err
	}
	m, files, text := &modular{}, upstream.Files{}, ""
	for i := range n {
		name := fmt.Sprint("module-", i)
		module, err := upstream.NewRepository(ctx, served, name)
		if err != nil {
			return nil, err
		}
		tip, err := module.Bulk("main", moduleFiles+i, moduleMiB<<20)
		if err != nil {
			return nil, err
		}
		m.modules = append(m.modules, module)
		files[name] = upstream.File{Mode: upstream.Submodule, Content: tip}
		text += fmt.Sprintf("[submodule %q]\n\tpath = %s\n\turl = ../%s.git\n", name, name, name)
	}
	files[".gitmodules"] = upstream.File{Content: text}
	if _, err := home.Commit("main", "all of them", files); err != nil {
		return nil, err
	}
	server, err := upstream.ServeHTTP(ctx, served, upstream.HTTPOptions{})
	if err != nil {
		return nil, err
	}
	m.stand = stand{
		site: site{ctx: ctx, url: server.URL("home"), sent: func() (int64, error) { return server.BytesOut(), nil }},
		dir:  dir, repository: home, server: server,
	}
	return m, nil
}

// moved moves one submodule, and lets both sides follow. Of git's work, only that with the submodule counts.
func (m *modular) moved(process *running, theirs string, number int) (ours, git usage, err error) {
	module := m.modules[number%len(m.modules)]
	tip, err := module.Commit("main", "move", upstream.Text(map[string]string{"moved.yaml": fmt.Sprintf("number: %d\n", number)}))
	if err != nil {
		return ours, git, err
	}
	_, err = m.repository.Commit("main", "move", upstream.Files{module.Name(): {Mode: upstream.Submodule, Content: tip}})
	if err != nil {
		return ours, git, err
	}
	if ours, _, err = process.again(1, 1); err != nil {
		return ours, git, err
	}
	for _, args := range [][]string{{"fetch", "--quiet", "--depth", "1", "origin", "main"}, {"reset", "--quiet", "--hard", "FETCH_HEAD"}} {
		if _, err := measure(m.git(theirs, args...)); err != nil {
			return ours, git, err
		}
	}
	git, err = m.received(func() (usage, error) {
		return measure(m.git(theirs, "submodule", "--quiet", "update", "--depth", "1", module.Name()))
	})
	return ours, git, err
}
