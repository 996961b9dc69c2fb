// Package script runs Starlark that somebody else wrote on objects of YAML, with a bound on what it takes, whatever it does.
// It does not know what the objects are about, or where they come from.
//
// The language has no files, no network, no clock and no randomness. What the library leaves unbounded is guarded: the tree of a
// script is rewritten before it is compiled, so that every operation whose work is not told by the steps of the interpreter goes
// through a function of this package, which counts what it makes before it makes it; see rewrite.go.
package script

import (
	"context"
	"errors"
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/printable"
)

// ErrLimit says that a script takes more than it may.
var ErrLimit = errors.New("the script takes too much")

const (
	// maxSource bounds the text of a script, in bytes.
	maxSource = 64 << 10
	// maxSteps bounds the steps of the interpreter; long operations count as several.
	maxSteps = 2_000_000
	// maxBytes bounds all that a script makes, what it throws away included.
	maxBytes = 128 << 20
	// maxCalls bounds how deep functions call each other.
	maxCalls = 100
	// maxDepth bounds how deep values are in each other, wherever somebody looks at all of them.
	maxDepth = 200
	// maxBits bounds integers.
	maxBits = 1024
	// maxMessage bounds what a script says when it fails, in bytes.
	maxMessage = 4096
	// maxPrinted bounds the lines that print keeps.
	maxPrinted = 10
)

// Script is a text and what it works on.
type Script struct {
	Source string
	// Items are the objects, maps without aliases; they are not changed. Config is the object that the script is configured by,
	// or nil.
	Items  []*yaml.Node
	Config *yaml.Node
}

// Outcome is what the script made.
type Outcome struct {
	// Items are those of the list when the script ended, in its order.
	Items []Item
	// Results are what the script reports, and Printed what it printed.
	Results []Result
	Printed []string
}

// Item is an object of the list.
type Item struct {
	// From is the place, among the items that were given, of the one that this one is; -1 for one that the script made.
	From int
	// Node is all that it says, without comments.
	Node *yaml.Node
}

// Result is something that the script reports.
type Result struct{ Severity, Message string }

// Run runs the script. It finds the objects in ctx.resource_list["items"], and the configuration in
// ctx.resource_list["functionConfig"]; what it reports goes to ctx.resource_list["results"]. What it takes is drawn from the
// account of memory in the context. Errors are ErrLimit, those of memory and of the context, and otherwise the script's own, with
// the line.
func Run(ctx context.Context, s Script) (Outcome, error) {
	m := &machine{ctx: ctx, left: maxBytes}
	defer m.giveBack()
	program, err := compile(s.Source, m)
	if err != nil {
		return Outcome{}, err
	}
	list, given, err := m.resourceList(s)
	if err != nil {
		return Outcome{}, err
	}
	m.thread = &starlark.Thread{Name: "script", Print: func(*starlark.Thread, string) {}, OnMaxSteps: func(*starlark.Thread) { m.tick() }}
	m.thread.SetMaxExecutionSteps(stride)
	predeclared := m.predeclared()
	predeclared["ctx"] = &surroundings{list: list}
	if _, err := program.Init(m.thread, predeclared); err != nil {
		return Outcome{}, m.explain(err)
	}
	return m.outcome(list, given)
}

// compile reads the text and makes a program of it whose operations are guarded.
func compile(source string, m *machine) (*starlark.Program, error) {
	if len(source) > maxSource {
		return nil, fmt.Errorf("%w: its source has %d bytes, and %d are allowed", ErrLimit, len(source), maxSource)
	}
	if err := m.take(int64(len(source)) * perSource); err != nil {
		return nil, err
	}
	options := syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true, Recursion: true}
	file, err := options.Parse("source", source, 0)
	if err != nil {
		return nil, fmt.Errorf("read the script: %w", err)
	}
	if err := guard(file); err != nil {
		return nil, fmt.Errorf("read the script: %w", err)
	}
	predeclared := m.predeclared()
	program, err := starlark.FileProgram(file, func(name string) bool { return name == "ctx" || predeclared.Has(name) })
	if err != nil {
		return nil, fmt.Errorf("read the script: %w", err)
	}
	return program, nil
}

// explain says in which line a script failed.
func (m *machine) explain(err error) error {
	if m.failed != nil {
		return m.failed
	}
	failed, ok := errors.AsType[*starlark.EvalError](err)
	if !ok {
		return err
	}
	if limit := failed.Unwrap(); limit != nil {
		err = limit
	} else {
		err = errors.New(failed.Msg)
	}
	if text := err.Error(); len(text) > maxMessage {
		err = errors.New(printable.Line(text, maxMessage))
	}
	for i := range failed.CallStack {
		if position := failed.CallStack.At(i).Pos; position.Filename() == "source" {
			return fmt.Errorf("line %d: %w", position.Line, err)
		}
	}
	return err
}

// surroundings are what a script knows of: the list of objects, and nothing else.
type surroundings struct{ list *starlark.Dict }

// Attr finds resource_list.
func (s *surroundings) Attr(name string) (starlark.Value, error) {
	switch name {
	case "resource_list":
		return s.list, nil
	case "environment", "open_api":
		return nil, starlark.NoSuchAttrError(fmt.Sprintf("ctx has no %s: what a script makes follows from the package alone", name))
	default:
		return nil, nil
	}
}

// AttrNames are those of Attr.
func (s *surroundings) AttrNames() []string { return []string{"resource_list"} }

// String does not say what is in the list.
func (s *surroundings) String() string { return "ctx" }

// Type is context.
func (s *surroundings) Type() string { return "context" }

// Freeze does nothing: the script changes the list.
func (s *surroundings) Freeze() {}

// Truth is always true.
func (s *surroundings) Truth() starlark.Bool { return starlark.True }

// Hash fails.
func (s *surroundings) Hash() (uint32, error) { return 0, errors.New("unhashable: context") }
