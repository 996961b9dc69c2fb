package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/build"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/fetch"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/fair"
)

const (
	// rendersAtOnce is how many renders fit into the room for them while it is not known how large they become.
	rendersAtOnce = 5
	// maxQueue is how many rounds of one namespace wait for room. More are told at once to come again.
	maxQueue = 8
)

// errBusy says that others are being rendered, and that the turn has not come.
var errBusy = errors.New("other releases are being rendered; this one has its turn later")

// aim is a release to work for, with the digest of what it renders to. Most rounds do not need its objects.
type aim struct {
	target *Target
	// name tells all that the render depends on.
	name string
	rendered
	render *render
}

// rendered is what is remembered of a render.
type rendered struct {
	digest string
	// unused are the variables that no object asked for.
	unused []string
	// failure is why it failed; nil when it did not.
	failure error
	// delay is how long it is taken for granted that it would fail again, and until when.
	delay time.Duration
	until time.Time
}

const (
	// maxRenders is how many renders are remembered.
	maxRenders = 4096
	// firstFailure is the first delay after a failure; it doubles up to lastFailure.
	firstFailure = 10 * time.Second
	lastFailure  = 10 * time.Minute
)

// render are the objects of a release as they are applied.
type render struct {
	rendered
	objects []object
	keys    map[key]bool
	// ignored are objects that are not applied, by their annotation.
	ignored map[key]bool
	// unsure says that a kind is not known yet, so that it may turn out to have no namespace.
	unsure bool
}

// object is one of them, without the fields that others own.
type object struct {
	key   key
	hash  string
	stage int
	*unstructured.Unstructured
	// whole is the object with the fields that others own, as it is created, and yielded are the pointers to these.
	whole   *unstructured.Unstructured
	yielded []string
	// once says that it is applied only to create it.
	once bool
}

// renders is what all installations share to render their releases.
type renders struct {
	cache   *fetch.Cache
	builder *build.Builder
	options Options
	known   *lru.Cache[string, rendered]
	// room is the memory that rendered objects take. Whoever waits for it holds a worker.
	room *fair.Pool
}

// rendering renders releases in one round of an installation, and shares the room with others' rounds until it is closed.
type rendering struct {
	*renders

	in     Installation
	client *cluster.Client
	// salt is what the installation's hashes are made with. They say nothing to whoever does not know it, for rendered
	// objects may hold secrets that can be guessed.
	salt string
	// members are those on record.
	members []modulesv1.Member
	held    []*fair.Share
	weight  int64 // of what is held
}

// aimAt is the aim for a target. It renders unless the digest is known from before.
func (r *rendering) aimAt(ctx context.Context, target *Target) (*aim, error) {
	name, err := r.name(target)
	if err != nil {
		return nil, err
	}
	a := &aim{target: target, name: name}
	if known, ok := r.known.Get(name); ok && known.failure == nil {
		a.rendered = known
		return a, nil
	}
	_, err = r.objects(ctx, a)
	return a, err
}

// objects renders the aim, once a round.
func (r *rendering) objects(ctx context.Context, a *aim) (*render, error) {
	if a.render != nil {
		return a.render, nil
	}
	began := r.options.Clock.Now()
	// Whoever asks for a verification wants to know how it is now.
	last, _ := r.known.Get(a.name)
	if last.failure != nil && began.Before(last.until) && !r.in.Verify {
		return nil, last.failure
	}
	made, err := r.make(ctx, a.target)
	if r.options.Observer != nil && !errors.Is(err, errBusy) {
		r.options.Observer.Rendered(r.options.Clock.Now().Sub(began), err)
	}
	switch {
	case err == nil && made.unsure:
		r.known.Remove(a.name)
	case err == nil:
		r.known.Add(a.name, made.rendered)
	case lasting(ctx, err):
		delay := min(max(2*last.delay, firstFailure), lastFailure)
		r.known.Add(a.name, rendered{failure: err, delay: delay, until: r.options.Clock.Now().Add(delay)})
	}
	if err != nil {
		return nil, err
	}
	a.render, a.rendered = made, made.rendered
	return made, nil
}

// lasting says that the input is why a render failed, and not what it was fetched from, the API server or the caller's
// haste. The process which builds may have been short of something: it is tried again, later and later.
func lasting(ctx context.Context, err error) bool {
	staged, _ := errors.AsType[*failure.StageError](err)
	answer, _ := errors.AsType[*cluster.AnswerError](err)
	return ctx.Err() == nil && staged != nil && staged.Stage == StageBuild && answer == nil && !errors.Is(err, errBusy)
}

func (r *rendering) name(target *Target) (string, error) {
	raw, err := json.Marshal([]any{
		r.salt, r.in.Namespace, r.in.Name, target.Artifact.Digest, target.Path, r.in.Spec.Config, r.in.Spec.Drift, r.in.Variables,
	})
	if err != nil {
		return "", failure.At(StageBuild, failure.Stall(modulesv1.BuildFailedReason, err))
	}
	sum := sha256.Sum256(raw)
	return string(sum[:]), nil
}

// make fetches, builds and completes.
func (r *rendering) make(ctx context.Context, target *Target) (made *render, err error) {
	lease, err := r.lease(ctx, target)
	if err != nil {
		return nil, err
	}
	defer lease.Release()
	// Nobody is kept from their turn by an artifact that does not come.
	share, err := r.turn(ctx)
	if err != nil {
		return nil, err
	}
	r.held = append(r.held, share) // Whatever becomes of the round, a panic too.
	defer func() {
		if err != nil {
			share.Release()
		}
	}()
	request := r.request(target)
	request.Tree = lease.FS
	built, err := r.builder.Build(ctx, request)
	switch {
	case errors.Is(err, build.ErrEmpty):
		return nil, failure.At(StageBuild, failure.Retry(modulesv1.EmptyRenderReason, err))
	case err != nil:
		return nil, failure.At(StageBuild, rename(modulesv1.BuildFailedReason, err))
	}
	weight := weigh(built.Objects)
	share.Resize(weight)
	if made, err = r.complete(built.Objects); err != nil {
		return nil, err
	}
	made.unused = built.Unused
	r.weight += weight
	return made, nil
}

// turn waits for room, but not for long: errBusy says that others have it.
func (r *rendering) turn(ctx context.Context) (*fair.Share, error) {
	limited, cancel := context.WithTimeout(ctx, r.options.RenderPatience)
	defer cancel()
	share, err := r.room.Take(limited, fair.Wish{Namespace: r.in.Namespace, Weight: r.options.RenderBytes / rendersAtOnce, Own: r.weight})
	if err != nil && ctx.Err() == nil {
		err = failure.At(StageBuild, failure.Wait(modulesv1.ProgressingReason, goOn, errBusy))
	}
	return share, err
}

func (r *rendering) lease(ctx context.Context, target *Target) (*fetch.Lease, error) {
	artifact := target.Artifact
	artifact.Namespace = target.Release.Namespace
	lease, err := r.cache.Acquire(ctx, artifact)
	if err == nil {
		return lease, nil
	}
	reason := modulesv1.ArtifactFailedReason
	if failure.Of(err).Reason == fetch.ReasonUnavailable {
		reason = modulesv1.ArtifactUnavailableReason
	}
	return nil, failure.At(StageFetch, rename(reason, err))
}

// close gives back what the renders took.
func (r *rendering) close() {
	for _, share := range r.held {
		share.Release()
	}
}

// request is the installation's config as the builder takes it.
func (r *rendering) request(target *Target) build.Request {
	request := build.Request{Namespace: r.in.Namespace, Path: target.Path, Substitute: r.in.Variables}
	config := r.in.Spec.Config
	if config == nil {
		return request
	}
	request.TargetNamespace, request.Images, request.Patches = config.TargetNamespace, config.Images, config.Patches
	if config.CommonMetadata != nil {
		request.Labels, request.Annotations = config.CommonMetadata.Labels, config.CommonMetadata.Annotations
	}
	return request
}

// rename gives a failure one of modulesv1's reasons, and keeps what is to be done about it.
func rename(reason string, err error) error {
	found := failure.Of(err)
	return &failure.Error{Disposition: found.Disposition, Reason: reason, After: found.After, Err: err}
}

// weigh estimates what objects take in memory, in bytes.
func weigh(objects []*unstructured.Unstructured) int64 {
	var sum int64
	for _, o := range objects {
		sum += weighValue(o.Object)
	}
	return sum
}

func weighValue(value any) int64 {
	const word = 16 // of an interface, a string or a header of a collection
	sum := int64(word)
	switch v := value.(type) {
	case string:
		sum += int64(len(v))
	case []any:
		for _, item := range v {
			sum += weighValue(item)
		}
	case map[string]any:
		sum += 3 * word
		for name, item := range v {
			sum += 2*word + int64(len(name)) + weighValue(item)
		}
	}
	return sum
}
