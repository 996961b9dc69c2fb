// Package generator makes artifacts of parts of others, as an ArtifactGenerator asks for them.
// It does not know how parts are copied, or what an ExternalArtifact looks like.
package generator

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/opencontainers/go-digest"

	extensionsv1 "sluice.dev/sluice/api/extensions/v1beta1"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/storage"
)

const (
	// Dir is the folder of what generators make, as paths and URLs spell it.
	Dir = "externalartifact"

	externalArtifact = "ExternalArtifact"
	// maxKnown is of how many generators it is remembered what they have made of what.
	maxKnown = 4096
	// timeout is how long all that one generator makes may take.
	timeout = 10 * time.Minute
)

// Outputs are the ExternalArtifacts of one generator.
type Outputs interface {
	// Claim makes or mends the ExternalArtifact that a name stands for, without saying what it is. The error is ErrTaken
	// for one that somebody else has made.
	Claim(ctx context.Context, name string, labels map[string]string) (Claimed, error)
	// Publish says what it is.
	Publish(ctx context.Context, claimed Claimed, artifact storage.Artifact) error
	// Prune removes all of the generator but those of the names, and returns what they were called.
	Prune(ctx context.Context, names map[string]bool) ([]string, error)
}

// Claimed is an ExternalArtifact of the generator.
type Claimed struct {
	Name, UID string
	// Reported is what its status names; nil for nothing.
	Reported *storage.Artifact
}

// ErrStale says that an ExternalArtifact was another one by the time it was written: look again.
var ErrStale = errors.New("it has changed meanwhile")

// ErrTaken says that there is an ExternalArtifact of the name which the generator has not made.
var ErrTaken = errors.New("it was not made by this generator")

// Options are what a Maker works with.
type Options struct {
	Artifacts Artifacts
	Downloads Downloads
	Pipeline  *source.Pipeline
	// Limits bound what all sources of a generator hold together, and each artifact.
	Limits archive.Limits
	// TempDir has what is unpacked meanwhile; the system's folder for these if empty.
	TempDir string
	// CrossNamespace allows sources of other namespaces.
	CrossNamespace bool
}

// Maker makes what generators ask for.
type Maker struct {
	Options

	known *lru.Cache[string, known]
}

// known is what a generator was found to make of what.
type known struct {
	shape   string
	sources digest.Digest
	outputs []output
}

// NewMaker returns a Maker.
func NewMaker(options Options) *Maker {
	all, _ := lru.New[string, known](maxKnown) // It fails for a size below one alone.
	return &Maker{Options: options, known: all}
}

// Forget drops what is remembered of a generator.
func (m *Maker) Forget(uid string) { m.known.Remove(uid) }

// Made is an artifact of a generator.
type Made struct {
	Name     string
	Artifact storage.Artifact
}

// Result is what a generator has come to.
type Result struct {
	// Known tells whether it could be found out what it makes; without that, nothing may be concluded about the rest.
	Known bool
	// Made are its artifacts as they are stored, in the order of the spec.
	Made []Made
	// Changed are those of them that are other ones than before, and Removed the names of those that it makes no more.
	Changed []Made
	Removed []string
	// Sources names what all sources have.
	Sources digest.Digest
}

// Make makes what a generator asks for, as far as it is not made already. What can be made is made, whatever else cannot.
// Begin is called once, before anything is stored. Errors have reasons.
func (m *Maker) Make(ctx context.Context, obj *extensionsv1.ArtifactGenerator, outputs Outputs, unready bool, begin func(context.Context) error) (Result, error) {
	if obj.Undecodable != "" {
		return Result{}, failure.Stall(extensionsv1.ValidationFailedReason, errors.New(obj.Undecodable))
	}
	if err := m.check(obj); err != nil {
		return Result{}, err
	}
	r := &round{Maker: m, obj: obj, outputs: outputs, begin: begin}
	var err error
	if r.inputs, err = m.look(ctx, obj); err != nil {
		r.heal(ctx)
		return Result{}, err
	}
	if err := r.name(); err != nil {
		return Result{}, err
	}
	if !r.upToDate(ctx) {
		if err := r.remake(ctx, fair.Wish{Namespace: obj.Namespace, Unready: unready}); err != nil {
			return Result{}, r.reasoned(err)
		}
	}
	return r.end(ctx)
}

// remake makes what is not stored as it should be. Where the sources cannot be read, what shows artifacts is put right all the same.
func (r *round) remake(ctx context.Context, wish fair.Wish) error {
	making, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := r.make(making, wish)
	if err != nil && !r.isNotOurs(making, err) {
		r.heal(ctx)
	}
	if err == nil || r.begin == nil { // What comes of what was stored is not known until it ends well.
		r.Forget(string(r.obj.UID))
	}
	return err
}

// round is one look at a generator.
type round struct {
	*Maker

	obj     *extensionsv1.ArtifactGenerator
	outputs Outputs
	inputs  []input

	begin  func(context.Context) error // nil once it was called
	halted error                       // why there is no beginning

	shape   string // of the spec
	sources digest.Digest
	planned []output
	changed []Made // shown as other ones than before
	failed  []problem
}

// problem is why an artifact is not what it should be.
type problem struct {
	name string
	err  error
}

// name names what the spec asks for and what the sources have.
func (r *round) name() (err error) {
	if r.shape, err = source.ConfigChecksum("artifactgenerator", r.obj.Spec); err != nil {
		return err
	}
	inputs := make([][4]string, len(r.inputs))
	for i, input := range r.inputs {
		inputs[i] = [4]string{input.alias, input.revision, input.origin, input.digest.String()}
	}
	all, err := source.ConfigChecksum("sources", inputs)
	r.sources = digest.Digest(all)
	return err
}

// upToDate tells whether everything is stored as it should be, as far as that shows without reading a source.
func (r *round) upToDate(ctx context.Context) bool {
	known, ok := r.known.Get(string(r.obj.UID))
	switch {
	case ok && known.shape == r.shape && known.sources == r.sources:
		r.planned = known.outputs
	case r.obj.Spec.PathPattern == "":
		r.planned, ok = plain(r.obj.Spec), false
	default:
		return false
	}
	for _, made := range r.planned {
		if made.taken {
			// Nothing of it would be stored, unless what is in its way has gone.
			if _, err := r.outputs.Claim(ctx, made.Name, made.labels); errors.Is(err, ErrTaken) {
				r.fail(made.Name, err)
				continue
			}
			return false
		}
		record, err := r.Pipeline.Store.Record(ctx, r.object(made.Name))
		if err != nil || !r.isShaped(record, made) || !ok && record.Proof != r.proof(made) {
			return false
		}
	}
	return true
}

func (r *round) object(name string) storage.Object {
	return storage.Object{Kind: Dir, Namespace: r.obj.Namespace, Name: name}
}

// isShaped tells whether what is stored is what the spec asks for, whatever the sources have.
func (r *round) isShaped(record storage.Record, made output) bool {
	return made.shape != "" && record.ConfigChecksum == made.shape && record.Memo == string(r.obj.UID)
}

// proof names what the sources have that an artifact may depend on.
func (r *round) proof(made output) string {
	used := map[string]bool{}
	for _, operation := range made.Copy {
		used[aliasOf(operation.From)] = true
	}
	var inputs [][2]string
	for _, input := range r.inputs {
		if used[input.alias] {
			inputs = append(inputs, [2]string{input.alias, input.digest.String()})
		}
	}
	proof, err := source.ConfigChecksum("inputs", []any{inputs, r.revision(made), r.metadata(made)})
	if err != nil {
		return ""
	}
	return proof
}

func aliasOf(reference string) string {
	alias, _, _ := strings.Cut(strings.TrimPrefix(reference, "@"), "/")
	return alias
}

func (r *round) input(reference string) (found input) {
	for _, input := range r.inputs {
		if input.alias == aliasOf(reference) {
			return input
		}
	}
	return found
}

// revision is that of a source, where the spec asks for it; else empty.
func (r *round) revision(made output) string { return r.input(made.Revision).revision }

// metadata says where the content came from, where the spec asks for it.
func (r *round) metadata(made output) map[string]string {
	if made.OriginRevision == "" {
		return nil
	}
	from := r.input(made.OriginRevision)
	return map[string]string{originRevision: cmp.Or(from.origin, from.revision)}
}

// start says once that something is going to be stored.
func (r *round) start(ctx context.Context) error {
	if begin := r.begin; begin != nil {
		r.begin, r.halted = nil, begin(ctx)
	}
	return r.halted
}

// isNotOurs tells errors that say nothing about what is made: the work is to be begun anew, or is over.
func (r *round) isNotOurs(ctx context.Context, err error) bool {
	return errors.Is(err, memory.ErrShortage) || errors.Is(err, ErrStale) || ctx.Err() != nil || r.halted != nil
}

// reasoned gives an error a reason that has none, unless it is that of the beginning.
func (r *round) reasoned(err error) error {
	if _, has := errors.AsType[*failure.Error](err); has || r.halted != nil || errors.Is(err, ErrStale) {
		return err
	}
	return failure.Retry(extensionsv1.ReconciliationFailedReason, err)
}
