package modules

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/kernel"
)

// ownedGrace is how long a source that nobody wants stays: longer than installations take between two looks, so that one
// whose status was lost can say again what it runs.
const ownedGrace = 15 * time.Minute

// collect deletes the template's sources that have not been wanted for the grace period, but for those named. It returns
// when the next one is due; 0 is never.
func (k *templates) collect(ctx context.Context, t *modulesv1.ModuleTemplate, keep map[string]bool) (time.Duration, error) {
	sources, err := k.shared.Offers.SourcesOf(ctx, t)
	if err != nil {
		return 0, err
	}
	var next time.Duration
	for _, source := range sources {
		if keep[source.GetName()] {
			k.wantedAgain(source.GetUID())
			continue
		}
		if left := ownedGrace - k.shared.Clock.Since(k.unwantedSince(source.GetUID())); left > 0 {
			next = kernel.Sooner(next, left)
			continue
		}
		uid := source.GetUID()
		if err := k.shared.Client.Delete(ctx, source, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("delete source %q, which nothing needs any more: %w", source.GetName(), err)
		}
		k.wantedAgain(uid)
	}
	return next, nil
}

// unwantedSince is when the source was first seen without use. Only this process knows: after a restart the time begins
// anew.
func (k *templates) unwantedSince(uid types.UID) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	since, known := k.unwanted[uid]
	if !known {
		since = k.shared.Clock.Now()
		k.unwanted[uid] = since
	}
	return since
}

func (k *templates) wantedAgain(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.unwanted, uid)
}
