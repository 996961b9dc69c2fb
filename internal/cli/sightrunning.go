package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/ui"
)

const (
	// runningKept is how long it is not asked again what runs: overviews are read anew whenever an object changes.
	runningKept = 30 * time.Second
	// runningTime is how long an overview waits for that.
	runningTime = 3 * time.Second
	// leaseName begins the names of the leases that decide which replica works. What follows tells shards apart.
	leaseName = "source-controller-leader-election"
)

// lastRunning is what was found of what runs.
type lastRunning struct {
	mu    sync.Mutex
	at    time.Time
	found *ui.Running
}

// Running implements ui.Reader.
func (s *sight) Running(ctx context.Context) *ui.Running {
	s.runs.mu.Lock()
	defer s.runs.mu.Unlock()
	if s.runs.found == nil || time.Since(s.runs.at) > runningKept {
		// Whoever leaves the page does not take the answer from the next one.
		inTime, stop := context.WithTimeout(context.WithoutCancel(kept(ctx)), runningTime)
		defer stop()
		s.runs.found, s.runs.at = s.running(inTime, time.Now()), time.Now()
	}
	return s.runs.found
}

func (s *sight) running(ctx context.Context, now time.Time) *ui.Running {
	made := &ui.Running{Program: thisBuild().String()}
	found, err := s.images(ctx)
	if err != nil {
		made.Lacking = append(made.Lacking, err.Error())
	}
	looked := map[string]bool{}
	for _, one := range found {
		made.Managers = append(made.Managers, one.String())
		if looked[one.Namespace] {
			continue
		}
		looked[one.Namespace] = true
		leaders, err := s.leaders(ctx, one.Namespace, now)
		if err != nil {
			made.Lacking = append(made.Lacking, err.Error())
		}
		made.Leaders = append(made.Leaders, leaders...)
	}
	return made
}

// leaders are the replicas in the namespace that work. A lease that was not renewed in its time is nobody's.
func (s *session) leaders(ctx context.Context, namespace string, now time.Time) (all []ui.Leader, err error) {
	var list coordinationv1.LeaseList
	if err := s.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		told := explain(fmt.Sprintf("look for the leader in namespace %q", namespace), err, "edit")
		if len(told.Help) > 0 && !told.general {
			told.Help = []string{"ask for the right to list leases in namespace " + namespace + ", which Kubernetes' ClusterRole edit has"}
		}
		return nil, told
	}
	for i := range list.Items {
		lease := &list.Items[i]
		if !strings.HasPrefix(lease.Name, leaseName) {
			continue
		}
		made := ui.Leader{Lease: namespace + "/" + lease.Name}
		if spec := &lease.Spec; spec.HolderIdentity != nil && spec.RenewTime != nil && spec.LeaseDurationSeconds != nil &&
			now.Before(spec.RenewTime.Add(time.Duration(*spec.LeaseDurationSeconds)*time.Second)) {
			made.Holder, _, _ = strings.Cut(*spec.HolderIdentity, "_")
			if spec.AcquireTime != nil {
				made.Since = spec.AcquireTime.Time
			}
		}
		all = append(all, made)
	}
	return all, nil
}
