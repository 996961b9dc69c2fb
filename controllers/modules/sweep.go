package modules

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// sweepGrace is how long a source that nobody needs stays: longer than installations take between two looks, so that
	// one whose status was lost can say again what it runs.
	sweepGrace    = 15 * time.Minute
	sweepInterval = 5 * time.Minute
)

// Sweeper deletes the sources that were made for templates, once neither these nor an installation needs them. They have
// no owner: a template's name is free as soon as that is deleted, and what is installed of it goes on healing.
type Sweeper struct {
	shared Shared
	// unneeded is since when sources are without use, by their UID. Only this process knows: after a restart the time begins
	// anew.
	unneeded map[types.UID]time.Time
}

// NewSweeper returns a sweeper that has seen nothing yet.
func NewSweeper(shared Shared) *Sweeper { return &Sweeper{shared: shared} }

// Start implements manager.Runnable.
func (s *Sweeper) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := s.Sweep(ctx); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot delete what nothing needs; it is tried again", "after", sweepInterval.String())
		}
	}, sweepInterval)
	return nil
}

// Sweep looks at all sources once. It is not for concurrent use.
func (s *Sweeper) Sweep(ctx context.Context) error {
	sources, err := s.shared.Offers.MadeSources(ctx)
	if err != nil {
		return err
	}
	seen, now := s.unneeded, s.shared.Clock.Now()
	s.unneeded = map[types.UID]time.Time{}
	for _, source := range sources {
		uid := source.GetUID()
		needed, err := s.shared.Offers.IsNeeded(ctx, source)
		if err != nil {
			return err
		}
		if needed {
			continue
		}
		since, known := seen[uid]
		if !known {
			since = now
		}
		s.unneeded[uid] = since
		if now.Sub(since) < sweepGrace {
			continue
		}
		if err := s.shared.Client.Delete(ctx, source, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete source %q: %w", source.GetName(), err)
		}
	}
	return nil
}
