package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

// manyCosts is what a fleet of installations took.
type manyCosts struct {
	// downloads are requests for the artifact by the first installations, which are ready after sharedWall.
	downloads  int
	sharedWall time.Duration
	// install is what the rest took.
	install cost
	idle    cost
	// resident and peak are memory in bytes, after all were installed, and after a restart.
	resident, peak               int64
	restart                      cost
	residentRestart, peakRestart int64
}

// many installs a release in many namespaces, as many accounts: some at once from one artifact, then all others. Then it
// looks at the program while there is nothing to do, and after a restart.
func (f *fleet) many(ctx context.Context, out io.Writer, p plan) (m manyCosts, err error) {
	fmt.Fprintf(out, "\n%d installations of %d objects each, in as many namespaces with a ServiceAccount each\n", p.fleet, p.fleetObjects)
	if err := f.publish(ctx, "small", "1.0.0", p.fleetObjects); err != nil {
		return m, err
	}
	namespaces := numbered("tenant", p.fleet)
	for _, namespace := range namespaces {
		if err := f.tenant(ctx, namespace); err != nil {
			return m, err
		}
	}
	if err := f.settle(ctx); err != nil {
		return m, err
	}
	served, err := f.metric(ctx, servedMetric)
	if err != nil {
		return m, err
	}
	shared, err := f.spent(ctx, func() (time.Duration, error) { return f.installAll(ctx, namespaces[:p.shared], "small", "1.0.0") })
	if err != nil {
		return m, err
	}
	now, err := f.metric(ctx, servedMetric)
	if err != nil {
		return m, err
	}
	m.downloads, m.sharedWall = int(now-served), shared.wall
	fmt.Fprintf(out, "%d of them are ready\n", p.shared)
	if m.install, err = f.spent(ctx, func() (time.Duration, error) {
		return f.installAll(ctx, namespaces[p.shared:], "small", "1.0.0")
	}); err != nil {
		return m, err
	}
	fmt.Fprintln(out, "all of them are ready")
	return f.rest(ctx, p, m)
}

// rest measures the fleet at rest, and a restart.
func (f *fleet) rest(ctx context.Context, p plan, m manyCosts) (_ manyCosts, err error) {
	if err := pause(ctx, p.window/2); err != nil { // Counts in the catalogue lag behind.
		return m, err
	}
	if m.idle, _, err = f.window(ctx, p.window, roundsMetric); err != nil {
		return m, err
	}
	m.resident, m.peak = f.memory()
	if m.restart, err = f.spent(ctx, func() (time.Duration, error) { return 0, f.restart() }); err != nil {
		return m, err
	}
	m.residentRestart, m.peakRestart = f.memory()
	return m, nil
}

// installAll installs a release in all of the namespaces at once.
func (f *fleet) installAll(ctx context.Context, namespaces []string, module, version string) (time.Duration, error) {
	return timed(func() error {
		for _, namespace := range namespaces {
			if err := f.install(ctx, namespace, module, version); err != nil {
				return err
			}
		}
		return nil
	}, func() error { return f.installed(ctx, version, namespaces...) })
}
