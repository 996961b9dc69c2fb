package function

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/script"
)

// functionGroup is that of the functions' own kinds.
const functionGroup = "fn.kpt.dev"

// runStarlark runs a script on the objects. Kptfiles and the functions' own kinds are not shown to it. What it changes keeps its
// comments, its order and its style wherever it says the same.
func runStarlark(ctx context.Context, r *run) error {
	read, err := readScript(r.config)
	if err != nil {
		return err
	}
	s := scripted{run: r}
	for _, o := range r.objects {
		if !o.resource.IsKptfile() && o.group() != functionGroup {
			s.given = append(s.given, o)
			read.Items = append(read.Items, o.root)
		}
	}
	outcome, err := script.Run(ctx, read)
	if err != nil {
		return err
	}
	for _, line := range outcome.Printed {
		r.note("%s", printable.Line(line, maxLine))
	}
	if err := s.report(outcome.Results); err != nil {
		return err
	}
	return s.apply(ctx, outcome.Items)
}

// maxLine bounds what a script says at once.
const maxLine = 300

// scriptConfig is the function's own kind.
type scriptConfig struct {
	head   `yaml:",inline"`
	Source string    `yaml:"source"`
	Params yaml.Node `yaml:"params"`
}

// readScript reads the source. A ConfigMap has it as well; its other values are then the parameters.
func readScript(c *config) (script.Script, error) {
	read := scriptConfig{}
	made := script.Script{}
	switch {
	case c == nil:
		return made, errNoConfig
	case c.own != nil:
		if err := c.decode(&read, "StarlarkRun"); err != nil {
			return made, err
		}
		made.Config = c.own
	default:
		read.Source = c.data["source"]
		params := &yaml.Node{Kind: yaml.MappingNode, Tag: tagMap}
		for _, key := range slices.Sorted(maps.Keys(c.data)) {
			if key != "source" {
				params.Content = append(params.Content, newText(key), newText(c.data[key]))
			}
		}
		made.Config = &yaml.Node{Kind: yaml.MappingNode, Tag: tagMap, Content: []*yaml.Node{
			newText("apiVersion"), newText(apiVersion), newText("kind"), newText("StarlarkRun"), newText("params"), params,
		}}
	}
	if strings.TrimSpace(read.Source) == "" {
		return made, errors.New("there is no source to run")
	}
	made.Source = read.Source
	return made, nil
}

// scripted is what a script worked on.
type scripted struct {
	*run
	given []*object
}

// report passes on what the script has to say. An error among it fails the function.
func (s *scripted) report(results []script.Result) error {
	failures := []string{}
	for _, result := range results {
		if result.Severity == "error" {
			if len(failures) < maxProblems {
				failures = append(failures, printable.Line(result.Message, maxLine))
			}
			continue
		}
		s.note("%s", printable.Line(strings.TrimPrefix(result.Severity+": "+result.Message, ": "), maxLine))
	}
	if len(failures) > 0 {
		return errors.New(strings.Join(failures, ", "))
	}
	return nil
}

// apply makes the package what the script left: an object of the list that it was given is that one, and so is one of the same
// kind, namespace and name; the others are new, and those that are missing go.
func (s *scripted) apply(ctx context.Context, items []script.Item) error {
	left := map[*object]bool{}
	for _, item := range items {
		if item.From < 0 {
			continue
		}
		o := s.given[item.From]
		if left[o] {
			return o.failAt("", errors.New("is in the script's list of items twice"))
		}
		left[o] = true
	}
	missing := map[kpt.ID]*object{}
	for _, o := range slices.Backward(s.given) {
		if !left[o] {
			missing[o.resource.ID()] = o // The first of several that are alike.
		}
	}
	for i, item := range items {
		if err := ctx.Err(); err != nil {
			return err
		}
		made := &kpt.Resource{Node: yaml.NewRNode(item.Node)}
		if !mayBeAdded(made) {
			return fmt.Errorf("items[%d] of the script is no object that may be in a package: it needs an apiVersion, a kind that is no Kptfile, and a name", i)
		}
		o := missing[made.ID()]
		if item.From >= 0 {
			o = s.given[item.From]
		} else {
			delete(missing, made.ID())
		}
		left[o] = true
		if err := s.put(o, made); err != nil {
			return err
		}
	}
	s.removeOthers(left)
	return nil
}

func mayBeAdded(made *kpt.Resource) bool {
	id := made.ID()
	return id.Kind != "" && id.Name != "" && kpt.Text(made.Node.YNode(), "apiVersion") != "" && !made.IsKptfile()
}

// put makes the object what the script made of it; without one, that is new.
func (s *scripted) put(o *object, made *kpt.Resource) error {
	if o == nil {
		return s.add(made)
	}
	return s.change(o, made.Node.YNode())
}

func (s *scripted) removeOthers(left map[*object]bool) {
	for _, o := range s.given {
		if !left[o] {
			s.remove(o)
		}
	}
}

// change makes the object say what the script left of it.
func (s *scripted) change(o *object, wanted *yaml.Node) error {
	respell(o.root, wanted)
	if sameValue(o.root, wanted) {
		return nil
	}
	if err := o.keepsOrigin(wanted); err != nil {
		return err
	}
	if err := s.room.put(o.root, wanted); err != nil {
		return o.fail(nil, err)
	}
	quote(wanted)
	overwrite(o.root, wanted)
	s.changed++
	return nil
}

// What tools for kpt say of where an object stands. The second is what others read.
const (
	pathAnnotation  = "config.kubernetes.io/path"
	indexAnnotation = "config.kubernetes.io/index"
	internalMark    = "internal."
)

// add puts an object that the script made into the file that its annotation names.
func (s *scripted) add(made *kpt.Resource) error {
	root, id := made.Node.YNode(), made.ID()
	for _, o := range s.seen {
		if o.resource.ID() == id && !s.gone[o] {
			return fmt.Errorf("the script adds %s, which is in %s already", id, o.resource.File)
		}
	}
	file := made.Annotation(pathAnnotation)
	if file == "" {
		file = made.Annotation(internalMark + pathAnnotation)
	}
	if file == "" {
		file = strings.ToLower(id.Kind) + "_" + strings.ReplaceAll(id.Name, ":", "_") + ".yaml"
	}
	metadata := kpt.Lookup(root, "metadata")
	annotations := kpt.Lookup(metadata, "annotations")
	removeKey(annotations, pathAnnotation, indexAnnotation, internalMark+pathAnnotation, internalMark+indexAnnotation)
	if annotations != nil && len(annotations.Content) == 0 {
		removeKey(metadata, "annotations")
	}
	if err := checkFile(file); err != nil {
		return fmt.Errorf("the script adds %s: %w", id, err)
	}
	quote(root)
	return s.insert(path.Clean(file), root)
}
