package app

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/controllers/packages"
	controllers "sluice.dev/sluice/controllers/source"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
)

const (
	// sweepInterval is how often the storage is compared with the objects that exist.
	sweepInterval = time.Hour
	// usageInterval is how often the storage is measured.
	usageInterval = 5 * time.Minute
	// orphanGrace is how long artifacts of an object that is gone are kept: a moved shard or a restored backup may
	// still ask for them.
	orphanGrace = time.Hour
)

// housekeeping keeps the storage sound in the background: it removes what belongs to no object, reads everything
// again now and then, and measures.
type housekeeping struct {
	store *local.Store
	// reader asks the API server, cached only the cache.
	reader, cached client.Reader
	scrub          time.Duration
	metrics        *metrics
	log            logr.Logger
	// gone holds when an object that has artifacts was first seen to be gone; nil before the first look.
	gone map[storage.Object]time.Time
	// selector is what this process watches. What leaves it belongs to another shard.
	selector labels.Selector
}

func newHousekeeping(mgr ctrl.Manager, options Options, store *local.Store, m *metrics, log logr.Logger) (*housekeeping, error) {
	selector, err := options.selector()
	if err != nil {
		return nil, err
	}
	return &housekeeping{
		store: store, reader: mgr.GetAPIReader(), cached: mgr.GetClient(), scrub: options.ScrubInterval, metrics: m,
		log: log, selector: selector,
	}, nil
}

// Start runs until ctx ends. Only the leader does it.
func (h *housekeeping) Start(ctx context.Context) error {
	h.sweep(ctx)
	h.measure(ctx)
	sweep, usage := time.Tick(sweepInterval), time.Tick(usageInterval)
	var scrub <-chan time.Time
	if h.scrub > 0 {
		scrub = time.Tick(h.scrub)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-sweep:
			h.sweep(ctx)
		case <-usage:
			h.measure(ctx)
		case <-scrub:
			h.check(ctx)
		}
	}
}

// sweep removes artifacts whose object is gone for good, or was given to another shard: the cache does not have it, and
// the API server says so too, for longer than the grace. What went while no process ran to remove it has no grace: it goes
// with the first sweep. When the API server gives any other answer, everything stays.
func (h *housekeeping) sweep(ctx context.Context) {
	gone := map[storage.Object]time.Time{}
	alive := func(object storage.Object, uid string) bool {
		ours, exists := h.look(ctx, object, uid)
		if ours || !exists && h.gone == nil {
			return ours
		}
		since, known := h.gone[object]
		if !known {
			since = time.Now()
		}
		gone[object] = since
		return time.Since(since) < orphanGrace
	}
	removed, err := h.store.SweepOrphans(ctx, alive, 0)
	h.gone = gone
	for _, object := range removed {
		h.log.Info("removed artifacts of an object that is gone", "object", object.String())
	}
	if err != nil && ctx.Err() == nil {
		h.log.Error(err, "sweeping the storage failed; it is repeated", "after", sweepInterval.String())
	}
}

// look tells whether an object with artifacts is still this process's to serve, and whether there is one at all. When in
// doubt, it is.
func (h *housekeeping) look(ctx context.Context, object storage.Object, uid string) (ours, exists bool) {
	kind, known := kindOf(object)
	if !known {
		return true, true
	}
	key := client.ObjectKey{Namespace: object.Namespace, Name: object.Name}
	same := func(found client.Object) bool { return uid == "" || string(found.GetUID()) == uid }
	cached, found := kind.New(), kind.New()
	if err := h.cached.Get(ctx, key, cached); err == nil && same(cached) {
		return true, true
	}
	// A cache that has just been filled may show what the object was made in place of.
	switch err := h.reader.Get(ctx, key, found); {
	case apierrors.IsNotFound(err), err == nil && !same(found):
		return false, false
	case err != nil:
		return true, true
	}
	return h.selector.Matches(labels.Set(found.GetLabels())), true
}

// served are the kinds whose objects have artifacts.
func served() []controllers.Known {
	return append(controllers.Kinds(), controllers.Generated(), controllers.Known{
		Group: packagesv1.GroupVersion, Name: packagesv1.PackageRevisionKind, Dir: packages.RevisionDir,
		New: func() controllers.Object { return &packagesv1.PackageRevision{} },
	}, controllers.Known{
		Group: packagesv1.GroupVersion, Name: packagesv1.PackageVariantSetKind, Dir: packages.SetDir,
		New: func() controllers.Object { return &packagesv1.PackageVariantSet{} },
	})
}

// kindOf finds the kind of an object that has artifacts. One that no controller here has left may belong to a newer
// version of the program.
func kindOf(object storage.Object) (kind controllers.Known, known bool) {
	for _, kind = range served() {
		if kind.Dir == object.Kind {
			return kind, true
		}
	}
	return controllers.Known{}, false
}

func (h *housekeeping) check(ctx context.Context) {
	checked, damaged, err := h.store.Scrub(ctx)
	if err != nil && ctx.Err() == nil {
		h.log.Error(err, "checking the stored artifacts failed; it is repeated", "after", h.scrub.String())
		return
	}
	h.log.Info("checked the stored artifacts", "checked", checked, "damaged", len(damaged))
}

func (h *housekeeping) measure(ctx context.Context) {
	bytes, files, err := h.store.Usage(ctx)
	if err != nil {
		h.log.Error(err, "measuring the storage failed; it is repeated", "after", usageInterval.String())
		return
	}
	h.metrics.stored.Set(float64(bytes))
	h.metrics.files.Set(float64(files))
}
