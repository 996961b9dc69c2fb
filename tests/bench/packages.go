package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"sluice.dev/sluice/tests/testenv"
)

// packagesPlan is how much is measured of packages.
type packagesPlan struct {
	// Variants of one package are spread over the repositories.
	variants, into int
	// Targets of one set are spread over as many repositories of their own.
	setTargets, setInto int
	// evaluations is how often a template's expressions are evaluated.
	evaluations int
	// The catalogue is a repository with so many packages, each of them with so many revisions.
	catalogue, revisions int
	// every is the interval of repositories that are watched at rest.
	every time.Duration
}

func (p *packagesPlan) flags() {
	flag.IntVar(&p.variants, "variants", 500, "variants that are made of one package")
	flag.IntVar(&p.into, "into", 10, "repositories that these are kept in")
	flag.IntVar(&p.setTargets, "set-targets", 1000, "targets of one set")
	flag.IntVar(&p.setInto, "set-into", 20, "repositories that their variants are kept in")
	flag.IntVar(&p.evaluations, "evaluations", 100_000, "evaluations of one template's expressions")
	flag.IntVar(&p.catalogue, "packages", 1000, "packages of the repository that has many")
	flag.IntVar(&p.revisions, "revisions", 3, "published revisions of each of these packages")
	flag.DurationVar(&p.every, "every", 10*time.Second, "interval of the repositories that are watched at rest")
}

const (
	packagesNamespace = "packages"
	blueprintsName    = "blueprints"
	blueprintName     = "app"

	targetWarmSync = 2 * time.Second
)

// packagesRun is a run of all work with packages.
type packagesRun struct {
	plan
	*fleet

	ctx     context.Context // It bounds the whole run.
	host    *gitHost
	targets []target
}

// comparePackages makes many variants of one package, follows an update, watches all of it at rest, and reads a large
// repository.
func comparePackages(ctx context.Context, out io.Writer, dir string, p plan) error {
	return measurePackages(ctx, out, dir, p, (*packagesRun).fanOut, (*packagesRun).large)
}

// compareSets has a set make many variants, watches it at rest and through small changes, and evaluates its expressions.
func compareSets(ctx context.Context, out io.Writer, dir string, p plan) error {
	return measurePackages(ctx, out, dir, p, (*packagesRun).evaluate, (*packagesRun).set)
}

// measurePackages measures parts of the work with packages in a program of their own.
func measurePackages(ctx context.Context, out io.Writer, dir string, p plan, parts ...func(*packagesRun) error) (err error) {
	fmt.Fprintln(out, machine(p))
	fmt.Fprintln(out, "starting etcd, kube-apiserver with an audit log, and sluice")
	f, err := startFleet(ctx, dir, p)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.tell(out)
		}
		err = errors.Join(err, f.stop())
	}()
	host, err := serveGit(ctx, filepath.Join(dir, "served"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.close()) }()
	r := &packagesRun{plan: p, fleet: f, ctx: ctx, host: host}
	if err := f.client.Create(ctx, testenv.Namespace(packagesNamespace)); err != nil {
		return err
	}
	for _, part := range parts {
		if err := part(r); err != nil {
			return err
		}
	}
	fmt.Fprintln(out)
	return printVerdicts(out, r.targets)
}

func (r *packagesRun) target(work, wanted string, good bool, measured string, args ...any) {
	r.targets = append(r.targets, target{work, wanted, fmt.Sprintf(measured, args...), judge(good)})
}
