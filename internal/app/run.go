package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"

	"github.com/opencontainers/go-digest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/storage/retention"
)

// Run runs the manager until ctx ends, and then stops it in good order.
func Run(ctx context.Context, options Options) error {
	config, err := newConfig(options)
	if err != nil {
		return err
	}
	late, err := choosePlanes(config, &options)
	if err != nil {
		return err
	}
	mgr, err := newManager(config, options)
	if err != nil {
		return err
	}
	if err := addAll(mgr, late...); err != nil {
		return err
	}
	measured := newMetrics(mgr.GetScheme())
	sink, err := newSink(mgr, options)
	if err != nil {
		return err
	}
	shared, err := parts{sink: sink, metrics: measured, memory: shareMemory(options)}.withUpstreams(mgr.GetClient(), options)
	if err != nil {
		return err
	}
	var stops []func() error
	if slices.Contains(options.Controllers, planeSource) || slices.Contains(options.Controllers, planePackages) {
		if shared, err = shared.withStore(ctx, mgr, options); err != nil {
			return err
		}
		stops = append(stops, shared.store.Close)
	}
	for _, plane := range []struct {
		name  string
		setup func(context.Context, ctrl.Manager, Options, parts) (func() error, error)
	}{{planeSource, setupSources}, {planeModules, setupModulePlane}, {planePackages, setupPackagePlane}} {
		if !slices.Contains(options.Controllers, plane.name) {
			continue
		}
		stop, err := plane.setup(ctx, mgr, options, shared)
		if err != nil {
			return err
		}
		stops = append(stops, stop)
	}
	if err := measured.register(ctrlmetrics.Registry, sink); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("leader", leading(mgr.Elected())); err != nil {
		return fmt.Errorf("add readiness check: %w", err)
	}
	if err := startWith(ctx, mgr, sink); err != nil {
		// Reconciles may still be running, when the lease was lost. Exiting ends them; until then they keep the store.
		return fmt.Errorf("run the manager: %w", err)
	}
	// Once nothing runs any more, the planes give up what they hold.
	var errs []error
	for _, stop := range slices.Backward(stops) {
		errs = append(errs, stop())
	}
	return errors.Join(errs...)
}

// leading is the readiness check of a process that has been elected, or needs no election, when the channel is closed.
func leading(elected <-chan struct{}) healthz.Checker {
	return func(*http.Request) error {
		select {
		case <-elected:
			return nil
		default:
			return errors.New("this process is not the leader")
		}
	}
}

// withStore opens the storage, and adds what serves artifacts and looks after them. The planes that make artifacts share it.
func (p parts) withStore(ctx context.Context, mgr ctrl.Manager, options Options) (parts, error) {
	log := ctrl.Log.WithName("storage")
	p.rebuild = newRebuildQueue(mgr.GetClient(), p.sink, log, p.metrics)
	store, err := local.Open(options.StoragePath, local.Options{
		Algorithm: digest.Algorithm(options.DigestAlgorithm),
		Retention: retention.Policy{TTL: options.retentionTTL(), Records: options.RetentionRecords},
		OnDamage:  p.rebuild.damaged,
	})
	if err != nil {
		return p, fmt.Errorf("--storage-path: %w", err)
	}
	p.store = store
	server, err := newArtifactServer(ctx, &options, store, p.metrics, log)
	if err != nil {
		return p, err
	}
	if p.address, err = options.advertised(); err != nil {
		return p, err
	}
	keeper, err := newHousekeeping(mgr, options, store, p.metrics, log)
	if err != nil {
		return p, err
	}
	if err := addAll(mgr, server, keeper); err != nil {
		return p, err
	}
	if err := mgr.AddReadyzCheck("artifact-server", server.ready); err != nil {
		return p, fmt.Errorf("add readiness check: %w", err)
	}
	return p, nil
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
		Instance:   host,
		Logger:     ctrl.Log.WithName("events"),
	})
	if err != nil {
		return nil, fmt.Errorf("--events-addr: %w", err)
	}
	return sink, nil
}
