package function

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// rendering is one package on its way through its pipelines.
type rendering struct {
	options   Options
	resources *kpt.Resources
	folders   []string
	objects   []*object
	room      *room
	used      usedSchemas
	compat    bool
	results   []Result
	// origins are what the Kptfiles said of where their packages come from, before any function ran.
	origins map[string]origin
	// written are objects with aliases as they stand in their files, and expanded what they were read as.
	written, expanded map[*object]*yaml.Node
}

// run renders the package.
func (r *Renderer) run(ctx context.Context, p kpt.Package, room *room) (*rendered, error) {
	resources, err := kpt.Open(p)
	if err != nil {
		return nil, &Error{Err: err}
	}
	if len(resources.Items) > r.options.MaxItems {
		return nil, &Error{Err: fmt.Errorf("%w: it has %d objects, and %d are allowed", ErrTooLarge, len(resources.Items), r.options.MaxItems)}
	}
	g := &rendering{options: r.options, resources: resources, room: room, used: usedSchemas{}, origins: map[string]origin{}, written: map[*object]*yaml.Node{}, expanded: map[*object]*yaml.Node{}}
	if err := g.begin(ctx); err != nil {
		return nil, err
	}
	if g.compat, err = readCompat(resources); err != nil {
		return nil, err
	}
	idle, err := g.checkPipelines()
	if err != nil {
		return nil, err
	}
	if idle {
		return &rendered{pkg: p, results: []Result{}}, nil
	}
	for _, folder := range g.order() {
		if err := g.pipeline(ctx, folder); err != nil {
			return nil, err
		}
	}
	if err := g.checkOrigins(); err != nil {
		return nil, err
	}
	made, err := g.end()
	if err != nil {
		return nil, &Error{Err: err}
	}
	if total, _ := weigh(made); total > r.options.MaxBytes {
		return nil, &Error{Err: fmt.Errorf("%w: more than %d bytes", ErrTooLarge, r.options.MaxBytes)}
	}
	return &rendered{pkg: made, results: g.results, schemas: g.used}, nil
}

// begin takes the objects in hand. Functions see no aliases: whoever changes one of two places that are written once would
// change both.
func (g *rendering) begin(ctx context.Context) error {
	for _, resource := range g.resources.Items {
		if err := ctx.Err(); err != nil {
			return err
		}
		o := &object{resource: resource, root: resource.Node.YNode()}
		if hasAlias(o.root) {
			expanded, err := expand(o.root, g.room)
			if err != nil {
				return o.failAt("", err)
			}
			g.written[o], g.expanded[o] = o.root, yaml.CopyYNode(expanded)
			o.root = expanded
			resource.Node = yaml.NewRNode(expanded)
		}
		if path := twice(o.root, nil); path != nil {
			return o.fail(path, errors.New("is there twice"))
		}
		o.namespace = o.current()
		g.objects = append(g.objects, o)
	}
	for _, folder := range g.resources.Folders() {
		kptfile, err := g.resources.Kptfile(folder)
		if errors.Is(err, kpt.ErrNoKptfile) {
			continue // The folder is left out of what is read.
		}
		if err != nil {
			return &Error{Package: folder, Err: err}
		}
		g.folders = append(g.folders, folder)
		g.origins[folder] = originOf(kptfile)
	}
	return nil
}

// origin is what a Kptfile says of where its package comes from. It is not a function's to say.
type origin struct {
	variant, config, base, applied string
	upstream                       kpt.Upstream
	lock                           kpt.Lock
}

func originOf(kptfile *kpt.Kptfile) origin {
	facts := kptfile.Facts()
	said := origin{variant: facts.Variant, config: facts.Config, base: facts.Base, applied: facts.Applied}
	if facts.Upstream != nil {
		said.upstream = *facts.Upstream
	}
	if facts.Lock != nil {
		said.lock = *facts.Lock
	}
	return said
}

// checkOrigins fails if a function changed one.
func (g *rendering) checkOrigins() error {
	for _, folder := range g.folders {
		kptfile, err := g.resources.Kptfile(folder)
		if err == nil && originOf(kptfile) != g.origins[folder] {
			err = errors.New("a function changed what the Kptfile says of where the package comes from")
		}
		if err != nil {
			return &Error{Package: folder, Err: err}
		}
	}
	return nil
}

// end writes the objects back. Aliases stay where no function changed anything.
func (g *rendering) end() (kpt.Package, error) {
	for o, written := range g.written {
		if sameNode(o.root, g.expanded[o]) {
			o.resource.Node = yaml.NewRNode(written)
		}
	}
	return g.resources.Package()
}

// checkPipelines reads them all and names every function that there is not, before anything is run. It tells whether there is
// nothing to do.
func (g *rendering) checkPipelines() (idle bool, err error) {
	idle = true
	missing := map[string]*Error{}
	for _, folder := range g.folders {
		pipeline, err := g.read(folder)
		if err != nil {
			return false, err
		}
		for _, entry := range slices.Concat(pipeline.Mutators, pipeline.Validators) {
			idle = false
			if name, _, err := g.lookup(folder, &entry, false); err != nil && missing[name] == nil {
				missing[name] = &Error{Package: folder, Entry: entry.Name, Err: err}
			}
		}
	}
	switch names := slices.Sorted(maps.Keys(missing)); len(names) {
	case 0:
		return idle, nil
	case 1:
		return false, missing[names[0]]
	default:
		first := missing[names[0]]
		first.Err = unknown(strings.Join(names, ", "))
		return false, first
	}
}

// read is the pipeline of the folder's package, as its Kptfile has it now.
func (g *rendering) read(folder string) (kpt.Pipeline, error) {
	kptfile, err := g.resources.Kptfile(folder)
	if err != nil {
		return kpt.Pipeline{}, &Error{Package: folder, Err: err}
	}
	pipeline, err := kptfile.Pipeline()
	if err != nil {
		return kpt.Pipeline{}, &Error{Package: folder, Err: err}
	}
	return pipeline, nil
}

// breadthFirst is the annotation of the root's Kptfile that has packages rendered before those beneath them.
const breadthFirst = "kpt.dev/bfs-rendering"

// order is that in which packages are rendered: every one behind those beneath it, or before them if the root says so.
func (g *rendering) order() []string {
	if root, err := g.resources.Kptfile(""); err == nil && root.Annotations()[breadthFirst] == "true" {
		return slices.SortedStableFunc(slices.Values(g.folders), func(a, b string) int { return cmp.Compare(depth(a), depth(b)) })
	}
	return slices.SortedStableFunc(slices.Values(g.folders), beneathFirst)
}

// depth is how many folders there are on the way.
func depth(folder string) int {
	if folder == "" {
		return 0
	}
	return 1 + strings.Count(folder, "/")
}

// beneathFirst compares folders part by part; of two on one way down, the lower comes first.
func beneathFirst(a, b string) int {
	left, right := strings.Split(a, "/"), strings.Split(b, "/")
	if a == "" || b == "" {
		return cmp.Compare(len(b), len(a))
	}
	for i := range min(len(left), len(right)) {
		if order := cmp.Compare(left[i], right[i]); order != 0 {
			return order
		}
	}
	return cmp.Compare(len(right), len(left))
}
