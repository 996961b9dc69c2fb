package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"sluice.dev/sluice/internal/view"
)

// getter is one call of get.
type getter struct {
	*base

	output   *genericclioptions.PrintFlags
	all      bool
	labelled string
	selector labels.Selector // labelled, read
	states   []string
	sort     string
	watch    bool
}

func getCommand(b *base) *cobra.Command {
	g := &getter{base: b, output: genericclioptions.NewPrintFlags("").WithTypeSetter(b.scheme)}
	command := &cobra.Command{
		Use:   "get [KIND|all|sources] [NAME...] | KIND/NAME...",
		Short: "Show objects and the state that they are in; installations, if nothing else is said",
		Example: `  sluice get
  sluice get all -A --state Failed,Stalled
  sluice get gitrepositories -o wide
  sluice get mi/redis -o yaml`,
	}
	flags := command.Flags()
	g.output.AddFlags(command)
	bindColor(command)
	flags.Lookup("output").Usage = "Output format. One of: (wide, " + list(g.output.AllowedFormats()) + ")."
	flags.BoolVarP(&g.all, "all-namespaces", "A", false, "Show the objects of all namespaces.")
	flags.StringVarP(&g.labelled, "selector", "l", "", "Show the objects with these labels.")
	flags.StringSliceVar(&g.states, "state", nil, "Show the objects in these states: "+list(stateNames())+".")
	flags.BoolVarP(&g.watch, "watch", "w", false, "Go on with each object whose line changes, until interrupted.")
	flags.StringVar(&g.sort, "sort", "name", "Order of the objects: name, or state, in which the first need somebody most.")
	command.ValidArgsFunction = g.complete(kindNames("all", "sources"))
	cobra.CheckErr(command.RegisterFlagCompletionFunc("state", completeStates))
	return g.on(command, g.run)
}

func stateNames() []string {
	var names []string
	for _, state := range view.States() {
		names = append(names, string(state))
	}
	return names
}

// run shows what is there, and then says what could not be had.
func (g *getter) run(ctx context.Context, args []string) error {
	asked, err := parse(args)
	if err != nil {
		return err
	}
	if err := g.check(); err != nil {
		return err
	}
	if g.watch && (len(asked) != 1 || !isText(g.output)) {
		return usage("--watch shows lines of objects of one kind", "leave out -o, and name one kind")
	}
	found := make([][]unstructured.Unstructured, len(asked))
	var problems []error
	for i, one := range asked {
		var err error
		if found[i], err = g.find(ctx, one); err != nil {
			problems = append(problems, err)
		}
		found[i] = g.choose(found[i])
		if isGeneral(err) {
			break
		}
	}
	if len(problems) == 0 && !g.all && !slices.ContainsFunc(found, func(some []unstructured.Unstructured) bool { return len(some) > 0 }) {
		if err := g.unfounded(ctx); err != nil {
			return err
		}
	}
	if g.watch && len(problems) == 0 {
		return ended("watch "+asked[0].kind.resource, g.goOn(ctx, asked[0], found[0]))
	}
	if err := g.print(asked, found, len(problems) == 0); err != nil {
		return err
	}
	return errors.Join(problems...)
}

// table is the one that is asked for.
func (g *getter) table() table { return newTable(g.Out, *g.output.OutputFormat == "wide") }

// check reads the flags, and refuses those that mean nothing.
func (g *getter) check() error {
	for _, state := range g.states {
		if !slices.Contains(stateNames(), state) {
			return usage(fmt.Sprintf("--state %s is none", state), "the states are "+list(stateNames()))
		}
	}
	if g.sort != "name" && g.sort != "state" {
		return usage(fmt.Sprintf("--sort %s is no order", g.sort), "objects are sorted by name or state")
	}
	if !isText(g.output) {
		if _, err := printerOf(g.output); err != nil {
			return usage(err.Error())
		}
	}
	var err error
	if g.selector, err = labels.Parse(g.labelled); err != nil {
		return usage("--selector: " + err.Error())
	}
	return nil
}

// choose keeps those in the states that are asked for, in the order that is.
func (g *getter) choose(found []unstructured.Unstructured) []unstructured.Unstructured {
	rank := func(obj unstructured.Unstructured) int { return slices.Index(view.States(), view.Of(&obj).State) }
	if len(g.states) > 0 {
		found = slices.DeleteFunc(found, func(obj unstructured.Unstructured) bool {
			return !slices.Contains(g.states, string(view.Of(&obj).State))
		})
	}
	slices.SortStableFunc(found, func(a, b unstructured.Unstructured) int {
		order := cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
		if g.sort == "state" {
			return cmp.Or(rank(a)-rank(b), order)
		}
		return order
	})
	return found
}

// print shows tables, or objects as Kubernetes has them.
func (g *getter) print(asked []wanted, found [][]unstructured.Unstructured, whole bool) error {
	if isText(g.output) {
		return g.tables(asked, found, whole)
	}
	format := *g.output.OutputFormat
	printer, err := printerOf(g.output)
	if err != nil {
		return usage(err.Error())
	}
	all := &corev1.List{Items: []runtime.RawExtension{}}
	all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("List"))
	var each []runtime.Object
	for _, some := range found {
		for i := range some {
			all.Items = append(all.Items, runtime.RawExtension{Object: &some[i]})
			each = append(each, &some[i])
		}
	}
	if len(each) == 0 && !whole {
		return nil // An empty list would say that there are none.
	}
	if named := len(asked) == 1 && len(asked[0].names) == 1; format != "name" && (!named || len(each) == 0) {
		each = []runtime.Object{all}
	}
	for _, obj := range each {
		if err := printer.PrintObj(obj, g.Out); err != nil {
			return unprinted(err)
		}
	}
	return nil
}

func (g *getter) tables(asked []wanted, found [][]unstructured.Unstructured, whole bool) error {
	made := g.table()
	made.spaced, made.named = g.all, len(asked) > 1
	shown := 0
	for i, some := range found {
		if len(some) == 0 {
			continue
		}
		if shown > 0 {
			fmt.Fprintln(g.Out)
		}
		shown++
		if err := made.printTo(&columns{out: g.Out}, asked[i].kind, some); err != nil {
			return unprinted(err)
		}
	}
	if shown == 0 && whole {
		fmt.Fprintf(g.ErrOut, "There are none%s.\n", g.where())
	}
	return nil
}

// where says among which objects there are none.
func (g *getter) where() string {
	among := ""
	if len(g.states) > 0 {
		among += " in state " + strings.Join(g.states, " or ")
	}
	if g.labelled != "" {
		among += " with these labels"
	}
	if !g.all {
		among += " in namespace " + g.namespace
	}
	return among
}
