package watch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"sluice.dev/sluice/internal/engine/watch"
	"sluice.dev/sluice/tests/testenv"
)

func TestOwnersComeAndGoAtOnce(t *testing.T) {
	t.Parallel()
	const owners, rounds = 8, 25
	subjects := make([]watch.Subject, 0, 3)
	for range 3 {
		namespace := env.NewNamespace(t)
		subjects = append(subjects, watch.Subject{GVK: configMaps, Namespace: namespace})
		for i := range owners {
			apply(t, member(configMaps, namespace, fmt.Sprint("of-", i), fmt.Sprint(i), data("1")), manager)
		}
	}
	watcher, tap, _ := newWatcher(t, nil)
	watcher.Limit(len(subjects), 3)

	var all sync.WaitGroup
	for i := range owners {
		all.Go(func() {
			name := fmt.Sprint(i)
			for round := range rounds {
				from := (i + round) % len(subjects)
				watcher.Want(name, name, subjects[from:])
				watcher.State(name, ref(configMaps, subjects[from].Namespace, "of-"+name))
				watcher.Problems(name)
				watcher.Retry(name)
				if round%3 == i%3 {
					watcher.Want(name, name, nil)
				}
			}
			watcher.Want(name, name, subjects)
		})
	}
	all.Wait()
	for i := range owners {
		for _, subject := range subjects {
			if known(t, watcher, fmt.Sprint(i), ref(configMaps, subject.Namespace, fmt.Sprint("of-", i))) == nil {
				t.Errorf("owner %d does not see its object in %s", i, subject.Namespace)
			}
		}
	}
	testenv.Eventually(t, "see everything once", func(context.Context) (bool, string) {
		stats := watcher.Stats()
		return stats == (watch.Stats{Watches: len(subjects), Objects: 3 * owners}), fmt.Sprintf("%+v", stats)
	})
	for i := range owners {
		watcher.Want(fmt.Sprint(i), fmt.Sprint(i), nil)
	}
	testenv.Eventually(t, "close everything", func(context.Context) (bool, string) {
		_, _, open := tap.counts()
		return watcher.Stats() == (watch.Stats{}) && open == 0, fmt.Sprintf("%+v, %d open", watcher.Stats(), open)
	})
}
