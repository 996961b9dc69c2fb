// Package build turns the tree of an artifact into Kubernetes objects: plain YAML as it is, kustomizations in a confined
// process of their own, variables replaced inside scalars. The same request gives the same objects in the same order.
// It does not know where a tree came from, what a cluster holds, or what becomes of the objects.
package build

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/transport"
)

var (
	// ErrEmpty says that there is no object at the path. It is never to be taken for a wish to remove everything.
	ErrEmpty = errors.New("nothing to apply")
	// ErrPath says that the path is not a folder of the artifact.
	ErrPath = errors.New("path is not a folder of the artifact")
	// ErrDocument says that a file of the artifact, or an object made from it, cannot be applied.
	ErrDocument = errors.New("not an object that can be applied")
	// ErrLimit says that the artifact asks for more than a build may take.
	ErrLimit = errors.New("build exceeds a limit")
	// ErrForbidden says that a kustomization asks for what no build does: remote bases, files outside the artifact,
	// plugins, Helm charts.
	ErrForbidden = errors.New("kustomization asks for what is not allowed")
	// ErrKustomize says that kustomize cannot build what is there.
	ErrKustomize = errors.New("kustomize build")
	// ErrVariable says that a variable has no value or no valid name, or that its use is not valid.
	ErrVariable = errors.New("variable substitution")
	// ErrWorker says that the process which builds could not start, crashed, or ran into one of its limits.
	ErrWorker = errors.New("build process")
)

// Request is what to build. All that is not content of the tree comes from the one who installs it.
type Request struct {
	// Namespace is whose turn a worker process is taken in.
	Namespace string
	// Tree is the artifact.
	Tree fs.FS `json:"-"`
	// Path is a folder of the tree, "" for its root.
	Path string
	// Substitute are the variables. Without any, nothing is substituted.
	Substitute map[string]string
	// Patches are strategic merge or JSON patches.
	Patches []modulesv1.Patch
	// Images are changed wherever kustomize looks for them. What one leaves out stays as the artifact's kustomization has it.
	Images []modulesv1.Image
	// TargetNamespace is set on every object that kustomize takes for namespaced.
	TargetNamespace string
	// Labels and Annotations are set on every object itself, over those that it has.
	Labels      map[string]string
	Annotations map[string]string
}

// Subcommand is the argument with which the default worker is started.
const Subcommand = "build-worker"

// Options tune a Builder. Zero values mean the defaults.
type Options struct {
	// Worker is the command that calls Main. It is started with an empty environment. Default: this program with the
	// argument Subcommand.
	Worker []string
	// Workers is how many worker processes run at once. Default 2.
	Workers int
	// Memory bounds what a worker may allocate, in bytes. Default 256 MiB.
	Memory int64
	// CPU bounds the processor time of a worker, to the second. Default 30 s.
	CPU time.Duration
	// Wall bounds a worker from its start to its end. Default 60 s.
	Wall time.Duration
	// Room is asked before an object is kept, with its JSON: an error is why there is none, and ends the build. Default: there is room.
	Room func(ctx context.Context, object []byte) error `json:"-"`
}

func (o Options) withDefaults() Options {
	if len(o.Worker) == 0 {
		// Not by name: the file may have been replaced since.
		o.Worker = []string{"/proc/self/exe", Subcommand}
	}
	o.Workers = cmp.Or(max(o.Workers, 0), 2)
	o.Memory = cmp.Or(max(o.Memory, 0), 256<<20)
	o.CPU = cmp.Or(max(o.CPU, 0), 30*time.Second)
	o.Wall = cmp.Or(max(o.Wall, 0), 60*time.Second)
	return o
}

// The limits of every build.
const (
	maxInput     = 64 << 20  // bytes read from the artifact
	maxDocument  = 5 << 20   // bytes of a document
	maxDocuments = 10_000    // documents, and objects
	maxDepth     = 200       // collections inside each other
	maxAliases   = 1_000     // aliases in a document
	maxValues    = 1_000_000 // scalars and collections of all objects, aliases followed
	maxText      = 64 << 20  // bytes of all scalars, aliases followed and variables replaced
	maxObject    = 8 << 20   // bytes of an object as JSON, twice what an API server stores at most
)

// Builder builds. It is safe for concurrent use.
type Builder struct {
	options Options
	workers *fair.Pool
}

// New returns a Builder. No process is started before it is needed.
func New(options Options) *Builder {
	options = options.withDefaults()
	return &Builder{options: options, workers: fair.New(int64(options.Workers), 0)}
}

// Built is what was made of a request.
type Built struct {
	Objects []*unstructured.Unstructured
	// Unused are the names of variables that no object asked for, in order.
	Unused []string
}

// Build gives the objects at the path, in the order of the files and of the documents in them.
//
// Without a kustomization file these are the documents of all .yaml, .yml and .json files at and beneath the path, in
// lexical order; a folder beneath that has a kustomization file stands for what that builds. Lists are taken apart and
// empty documents skipped, as are objects annotated as local configuration of kustomize. Files are never read by
// following a link. Whatever needs kustomize, or much memory, happens in a worker process.
//
// Every object is complete (API version, kind, name), the only one of its group, kind, namespace and name, and passed
// Normalise. Apart from ErrWorker and the context's, errors are about the artifact or the request, and come again for the same.
func (b *Builder) Build(ctx context.Context, r Request) (Built, error) {
	work, err := plan(ctx, r)
	if err != nil {
		return Built{}, err
	}
	var made output
	if !work.heavy() {
		if made, err = work.plain(&treeSource{tree: r.Tree}, true); err == nil {
			err = b.hasRoom(ctx, made.objects)
		}
	}
	if work.heavy() || errors.Is(err, errHeavy) {
		made, err = b.delegate(ctx, work, &treeSource{tree: r.Tree})
	}
	var objects []*unstructured.Unstructured
	if err == nil {
		objects, err = finish(made.objects, r)
	}
	if err != nil {
		return Built{}, fmt.Errorf("build %s: %w", transport.PrintableQuoted(work.Path), err)
	}
	unused := slices.DeleteFunc(slices.Sorted(maps.Keys(r.Substitute)), func(name string) bool { return slices.Contains(made.used, name) })
	return Built{Objects: objects, Unused: unused}, nil
}

// hasRoom asks for the room of what was not made by a worker, which is not much.
func (b *Builder) hasRoom(ctx context.Context, made []rendered) error {
	if b.options.Room == nil {
		return nil
	}
	for _, one := range made {
		raw, err := json.Marshal(one.object)
		if err == nil {
			err = b.options.Room(ctx, raw)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// job is a request as a worker gets it, with what was found at its path.
type job struct {
	Request
	// Own says that the path has a kustomization file. Otherwise what was found is to be built, of which some are folders.
	Own, Folders bool
	Found        []found
	// Large says that there is much to parse.
	Large  bool
	Limits Options
}

// heavy says whether the job is for a worker.
func (j *job) heavy() bool { return j.Large || j.kustomized() }

// kustomized says whether kustomize has a part in it.
func (j *job) kustomized() bool {
	return j.Own || j.Folders || len(j.Patches) > 0 || len(j.Images) > 0 || j.TargetNamespace != ""
}

// plan looks at what is there.
func plan(ctx context.Context, r Request) (*job, error) {
	folder, err := cleanPath(r.Path)
	if err != nil {
		return nil, err
	}
	if err := checkNames(r.Substitute); err != nil {
		return nil, err
	}
	work := &job{Request: r}
	work.Path = folder
	return work, work.survey(ctx)
}

// cleanPath makes "", "./a/" and "/a" names of an fs.FS.
func cleanPath(given string) (string, error) {
	if slices.Contains(strings.Split(given, "/"), "..") {
		return "", fmt.Errorf("%w: %s has a part \"..\"", ErrPath, transport.PrintableQuoted(given))
	}
	cleaned := cmp.Or(strings.TrimPrefix(path.Clean("/"+given), "/"), ".")
	if !fs.ValidPath(cleaned) {
		return "", fmt.Errorf("%w: %s", ErrPath, transport.PrintableQuoted(given))
	}
	return cleaned, nil
}
