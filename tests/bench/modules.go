package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// The work with modules, in the order of the table.
const (
	install   = "first install"
	oneOfAll  = "one object changed"
	edited    = "drift: an edit"
	deleted   = "drift: a deletion"
	unchanged = "periodic, unchanged"
	restarted = "restart"
	removal   = "removal"
)

// cost is what a piece of work took.
type cost struct {
	tally
	cpu, wall time.Duration
}

// costs are those of a kind of work, of one round each. Theirs are kubectl's, and empty where it has no such work.
type costs struct{ ours, theirs []cost }

// compareModules starts a cluster, measures all work with one installation a number of times, then a fleet of them, and
// prints the tables.
func compareModules(ctx context.Context, out io.Writer, dir string, p plan) (err error) {
	fmt.Fprintf(out, "starting etcd, kube-apiserver with an audit log, a registry, and sluice\n")
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
	fmt.Fprintf(out, "%d objects of %d kinds in a release; %s\n", p.objects, len(memberKinds()), machine(p))
	samples, err := f.one(ctx, out, p)
	if err != nil {
		return err
	}
	fmt.Fprintln(out)
	if err := printCosts(out, samples); err != nil {
		return err
	}
	many, err := f.many(ctx, out, p)
	if err != nil {
		return err
	}
	fmt.Fprintln(out)
	many.print(out, p)
	fmt.Fprintln(out)
	if err := printVerdicts(out, moduleTargets(p, samples, many)); err != nil {
		return err
	}
	fmt.Fprint(out, moduleNotes)
	return nil
}

const moduleNotes = `
Requests are counted in the API server's audit log. Calls are reads and writes of an installation's objects, made as its
ServiceAccount; lists and watches are of metadata alone, and a watch counts when it opens. Bookkeeping is what is asked
about installations and their inventories; others are events, the catalogue with its sources, and what kinds there are.
kubectl's calls are those about the objects that it applies. CPU is that of the program, until it has come to rest; for a
periodic round, what it takes more than in as much time without any. Wall clock ends when the installation is ready or
gone, or the object as published again. kubectl limits its own requests, and starts anew each time. Every object is of a
kind that is healthy by being there; one of another kind is also read once for each version of it.
`

// one measures an installation by itself, in a namespace of its own in each round.
func (f *fleet) one(ctx context.Context, out io.Writer, p plan) (map[string]*costs, error) {
	for _, version := range []string{"1.0.0", "1.0.1"} {
		if err := f.publish(ctx, "big", version, p.objects); err != nil {
			return nil, err
		}
		if err := f.manifests(version, p.objects); err != nil {
			return nil, err
		}
	}
	for _, namespace := range slices.Concat(numbered("ours", p.rounds), numbered("theirs", p.rounds), numbered("steady", p.steady)) {
		if err := f.tenant(ctx, namespace); err != nil {
			return nil, err
		}
	}
	samples := map[string]*costs{}
	for _, work := range moduleWorks() {
		samples[work] = &costs{}
	}
	for round := range p.rounds {
		if err := f.settle(ctx); err != nil {
			return nil, err
		}
		if err := f.round(ctx, round, samples); err != nil {
			return nil, fmt.Errorf("round %d: %w", round+1, err)
		}
		fmt.Fprintf(out, "round %d of %d done\n", round+1, p.rounds)
	}
	var err error
	samples[unchanged].ours, err = f.periodic(ctx, p)
	return samples, err
}

func moduleWorks() []string {
	return []string{install, oneOfAll, edited, deleted, unchanged, restarted, removal}
}

func ours(round int) string   { return fmt.Sprintf("ours-%03d", round) }
func theirs(round int) string { return fmt.Sprintf("theirs-%03d", round) }

// numbered are the names of so many namespaces.
func numbered(name string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%03d", name, i)
	}
	return names
}
