package app

import (
	"context"
	"errors"
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
func Run(ctx context.Context, options Options) (err error) {
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
	defer func() { err = errors.Join(err, store.Close()) }()

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
	if err := addAll(mgr, sink, server, keeper); err != nil {
		return err
	}
	if err := measured.register(ctrlmetrics.Registry, sink); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("artifact-server", server.ready); err != nil {
		return fmt.Errorf("add readiness check: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the manager: %w", err)
	}
	return nil
}

func addAll(mgr ctrl.Manager, runnables ...manager.Runnable) error {
	for _, runnable := range runnables {
		if err := mgr.Add(runnable); err != nil {
			return fmt.Errorf("add to the manager: %w", err)
		}
	}
	return nil
}

// newSink makes the sink of events, and lets Kubernetes' own recorder deliver to the API server.
func newSink(mgr ctrl.Manager, options Options) (*event.Sink, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find this host's name: %w", err)
	}
	sink, err := event.New(event.Options{
		Recorder:   mgr.GetEventRecorderFor(controllerName), //nolint:staticcheck // The newer recorder has no annotations, which Flux's receivers read.
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
