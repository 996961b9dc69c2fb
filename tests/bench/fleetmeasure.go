package main

import (
	"context"
	"errors"
	"time"
)

// during measures the program while something is done. A process that is new by then has spent all that it ever has on it.
func (f *fleet) during(work func() error) (cost, error) {
	start, err := f.mark(sluiceUser)
	if err != nil {
		return cost{}, err
	}
	pid := f.manager.Pid()
	before, err := f.cpu()
	if err != nil {
		return cost{}, err
	}
	if err := work(); err != nil {
		return cost{}, err
	}
	if f.manager.Pid() != pid {
		before = 0
	}
	after, err := f.cpu()
	if err != nil {
		return cost{}, err
	}
	asked, err := f.since(start)
	return cost{tally: asked, cpu: after - before}, err
}

// spent measures a piece of work until the program has come to rest.
func (f *fleet) spent(ctx context.Context, work func() (time.Duration, error)) (cost, error) {
	var wall time.Duration
	all, err := f.during(func() (err error) {
		if wall, err = work(); err != nil {
			return err
		}
		return f.settle(ctx)
	})
	all.wall = wall
	return all, err
}

func (f *fleet) restart() error { return errors.Join(f.stopManager(), f.startManager()) }

// periodic is what one periodic round takes, as often as the plan has it: rounds of some installations come every second
// for a while, and what the program uses in as much time without any is taken off.
func (f *fleet) periodic(ctx context.Context, p plan) ([]cost, error) {
	namespaces := numbered("steady", p.steady)
	if _, err := f.installAll(ctx, namespaces, "big", "1.0.1"); err != nil {
		return nil, err
	}
	if err := f.settle(ctx); err != nil {
		return nil, err
	}
	still, _, err := f.window(ctx, p.window, roundsMetric)
	if err != nil {
		return nil, err
	}
	for _, namespace := range namespaces {
		if err := f.change(ctx, namespace, `{"spec":{"interval":"1s"}}`); err != nil {
			return nil, err
		}
	}
	if err := pause(ctx, f.quiet); err != nil {
		return nil, err
	}
	var all []cost
	for range p.rounds {
		busy, rounds, err := f.window(ctx, p.window, roundsMetric)
		if err != nil {
			return nil, err
		}
		if rounds < 1 {
			return nil, errors.New("there was no round")
		}
		busy.cpu = max(0, busy.cpu-still.cpu) / time.Duration(rounds)
		all = append(all, busy)
	}
	for _, namespace := range namespaces {
		if err := f.change(ctx, namespace, `{"spec":{"suspend":true}}`); err != nil {
			return nil, err
		}
	}
	return all, f.settle(ctx)
}

// window is what the program does by itself for so long, and in how many rounds, as the metric counts them.
func (f *fleet) window(ctx context.Context, length time.Duration, rounds string) (cost, int, error) {
	before, err := f.metric(ctx, rounds)
	if err != nil {
		return cost{}, 0, err
	}
	all, err := f.during(func() error { return pause(ctx, length) })
	if err != nil {
		return cost{}, 0, err
	}
	after, err := f.metric(ctx, rounds)
	return all, int(after - before), err
}
