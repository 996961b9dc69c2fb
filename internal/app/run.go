package app

import (
	"context"
	"fmt"
	"os"

	"github.com/opencontainers/go-digest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/storage/retention"
)

// Run runs the manager until ctx ends, and then stops it in good order.
func Run(ctx context.Context, options Options) error {
	mgr, err := newManager(options)
	if err != nil {
		return err
	}
	log := ctrl.Log.WithName("storage")
	measured := newMetrics(mgr.GetScheme())
	sink, err := newSink(mgr, options)
	if err != nil {
		return err
	}
	rebuild := newRebuildQueue(mgr.GetClient(), sink, log, measured)
	store, err := local.Open(options.StoragePath, local.Options{
		Algorithm: digest.Algorithm(options.DigestAlgorithm),
		Retention: retention.Policy{TTL: options.retentionTTL(), Records: options.RetentionRecords},
		OnDamage:  rebuild.damaged,
	})
	if err != nil {
		return fmt.Errorf("--storage-path: %w", err)
	}

	server, err := newArtifactServer(ctx, &options, store, measured, log)
	if err != nil {
		return err
	}
	if err := setupSources(ctx, mgr, options, parts{store: store, sink: sink, metrics: measured, rebuild: rebuild}); err != nil {
		return err
	}
	keeper, err := newHousekeeping(mgr, options, store, measured, log)
	if err != nil {
		return err
	}
	if err := addAll(mgr, server, keeper); err != nil {
		return err
	}
	if err := measured.register(ctrlmetrics.Registry, sink); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("artifact-server", server.ready(mgr.Elected())); err != nil {
		return fmt.Errorf("add readiness check: %w", err)
	}
	if err := startWith(ctx, mgr, sink); err != nil {
		// Reconciles may still be running, when the lease was lost. Exiting ends them; until then they keep the store.
		return fmt.Errorf("run the manager: %w", err)
	}
	if err := store.Close(); err != nil {
		return fmt.Errorf("close the storage: %w", err)
	}
	return nil
}

// startWith runs the manager, and the sink for as long as the manager's reconciles can emit events, and then until the
// events are delivered.
func startWith(ctx context.Context, mgr ctrl.Manager, sink *event.Sink) error {
	delivering, stop := context.WithCancel(context.WithoutCancel(ctx))
	delivered := make(chan struct{})
	go func() {
		defer close(delivered)
		_ = sink.Run(delivering)
	}()
	err := mgr.Start(ctx)
	stop()
	<-delivered
	return err
}

func addAll(mgr ctrl.Manager, runnables ...manager.Runnable) error {
	for _, runnable := range runnables {
		if err := mgr.Add(runnable); err != nil {
			return fmt.Errorf("add to the manager: %w", err)
		}
	}
	return nil
}

// newSink makes the sink of events.
func newSink(mgr ctrl.Manager, options Options) (*event.Sink, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find this host's name: %w", err)
	}
	kubernetes, err := newRecorder(mgr, host)
	if err != nil {
		return nil, err
	}
	sink, err := event.New(event.Options{
		Recorder:   kubernetes,
		EventsAddr: options.EventsAddr,
		Controller: controllerName,
		Instance:   host,
		Logger:     ctrl.Log.WithName("events"),
	})
	if err != nil {
		return nil, fmt.Errorf("--events-addr: %w", err)
	}
	return sink, nil
}
